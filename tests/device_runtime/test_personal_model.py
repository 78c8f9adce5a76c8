"""The model that stays on the device: what a task goes on from, whatever happened before it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device_runtime.personal_model import PersonalModel, load_personal, own_submodel, own_weights, save_personal
from edgefl.errors import EdgeFLError
from edgefl.local_rules.base_networks import base_networks, joined_networks
from edgefl.masks import Mask, full_mask, gather, leading_channels
from edgefl.model_graph import ModelGraph
from tests.device_runtime.federation import bundle, plan_of
from tests.masks.test_slicing import held_coordinates, kept_coordinates
from tests.random_models import masks, model_graphs, numbered

WHOLE = full_mask(bundle().graph)


def filled(value: float, mask: Mask = WHOLE) -> dict[str, Any]:
    return {name: np.full(shape, value, mask.graph.tensor[name].dtype.value) for name, shape in mask.shapes.items()}


def model(value: float, task: str, mask: Mask = WHOLE, device: str = "pi-1") -> PersonalModel:
    return PersonalModel(mask, filled(value, mask), b"graph", int(value), device, task)


def found(folder: Path, task: str, mask: Mask = WHOLE, **plan: Any) -> float | None:
    """The value that every entry of the device's own model has."""
    own = own_weights(folder, plan_of(mask, task_id=task, **plan), mask, filled(0, mask))
    if own is None:
        return None
    values = {float(value) for array in own.values() for value in array.ravel()}
    assert {name: array.shape for name, array in own.items()} == dict(mask.shapes)
    assert len(values) == 1
    return values.pop()


def test_a_task_goes_on_from_the_model_of_the_one_before(tmp_path: Path) -> None:
    assert found(tmp_path, "a") is None
    save_personal(tmp_path, model(1, "a"))
    assert found(tmp_path, "b") == 1
    save_personal(tmp_path, model(2, "b"))
    assert found(tmp_path, "c") == 2
    assert load_personal(tmp_path).round == 2


def test_a_task_that_is_done_again_does_not_go_on_from_its_own_result(tmp_path: Path) -> None:
    save_personal(tmp_path, model(1, "a"))
    assert found(tmp_path, "a") is None
    save_personal(tmp_path, model(2, "b"))
    save_personal(tmp_path, model(2, "b"))
    assert found(tmp_path, "b") == 1
    assert found(tmp_path, "c") == 2


def test_a_crash_while_a_model_is_kept_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*args: Any, **settings: Any) -> None:
        raise KeyboardInterrupt

    save_personal(tmp_path, model(1, "a"))
    monkeypatch.setattr("device_runtime.personal_model.write_atomically", crash)
    with pytest.raises(KeyboardInterrupt):
        save_personal(tmp_path, model(2, "b"))
    monkeypatch.undo()
    assert load_personal(tmp_path).round == 1
    assert found(tmp_path, "b") == 1
    save_personal(tmp_path, model(2, "b"))
    assert found(tmp_path, "b") == 1
    assert found(tmp_path, "c") == 2


def test_a_damaged_file_is_not_used_but_the_one_before_it_is(tmp_path: Path) -> None:
    save_personal(tmp_path, model(1, "a"))
    save_personal(tmp_path, model(2, "b"))
    path = tmp_path / "personal.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    assert found(tmp_path, "c") == 1
    with pytest.raises(EdgeFLError):
        load_personal(tmp_path)
    save_personal(tmp_path, model(3, "c"))
    assert found(tmp_path, "c") == 1
    assert found(tmp_path, "d") == 3


def test_who_kept_the_model_before_need_not_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = save_personal(tmp_path, model(1, "a"))
    read: list[Path] = []
    with monkeypatch.context() as context:
        context.setattr("device_runtime.personal_model._read", read.append)
        kept = save_personal(tmp_path, model(2, "b"), kept)
        kept = save_personal(tmp_path, model(2, "b"), kept)
    assert not read
    assert found(tmp_path, "b") == 1
    path = tmp_path / "personal.safetensors"
    path.write_bytes(path.read_bytes()[:-3])  # somebody else was there since
    save_personal(tmp_path, model(3, "c"), kept)
    assert found(tmp_path, "c") == 1


def test_models_of_other_federations_and_networks_do_not_count(tmp_path: Path) -> None:
    save_personal(tmp_path, model(1, "a"))
    assert found(tmp_path, "b", device_id="pi-2") is None
    graph = replace(bundle().graph, name="another")
    assert found(tmp_path, "b", full_mask(graph)) is None


def test_a_narrower_part_is_cut_from_the_own_model_and_a_wider_one_filled_up(tmp_path: Path) -> None:
    narrow = leading_channels(bundle().graph, 0.5)
    save_personal(tmp_path, model(1, "a"))
    assert found(tmp_path, "b", narrow) == 1
    save_personal(tmp_path, model(2, "b", narrow))
    own = own_weights(tmp_path, plan_of(WHOLE, task_id="c"), WHOLE, filled(7))
    assert own is not None
    for name, array in own.items():
        expected = np.full(array.shape, 7, array.dtype)
        expected[narrow.index(name)] = 2
        assert np.array_equal(array, expected), name


@st.composite
def two_masks(draw: st.DrawFn) -> tuple[ModelGraph, Mask, Mask]:
    graph = draw(model_graphs())
    return graph, draw(masks(graph)), draw(masks(graph))


@settings(max_examples=40)
@given(two_masks())
def test_what_two_parts_share_is_the_devices_and_the_rest_the_coordinators(case: tuple[ModelGraph, Mask, Mask]) -> None:
    graph, had, mask = case
    sent = gather(mask, numbered(graph))
    mine = {name: -array for name, array in numbered(graph).items()}
    part = own_submodel(had, gather(had, mine), mask, sent)
    for name in graph.tensor:
        held, own = set(held_coordinates(mask, name)), set(held_coordinates(had, name))
        whole = numbered(graph)[name]
        values = [0 if c not in held else (-whole[c] if c in own else whole[c]) for c in kept_coordinates(mask, name)]
        assert part[name].ravel().tolist() == values, name


def test_a_split_model_is_kept_with_its_networks(tmp_path: Path) -> None:
    mask = joined_networks(bundle().graph, [0, 2], 4)
    weights = gather(mask, numbered(bundle().graph))
    save_personal(tmp_path, PersonalModel(mask, weights, b"graph", 1, split_into=4))
    kept = load_personal(tmp_path).networks
    assert len(kept) == 2
    for network, one in zip(base_networks(mask, 4), kept, strict=True):
        assert {name: array.shape for name, array in one.items()} == dict(network.shapes)
        assert all(np.array_equal(one[name], array) for name, array in gather(network, numbered(mask.graph)).items())
    save_personal(tmp_path, model(2, "b"))
    assert len(load_personal(tmp_path).networks) == 1

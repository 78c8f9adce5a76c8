import copy
import hashlib
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.masks import Mask, freeze, full_mask, kept_width, leading_channels, random_channels
from edgefl.model_graph import ModelGraph
from examples.networks import cnn4
from tests.random_models import masked_models

GOLDEN_DIGEST = "sha256:8a70cc8c0672fdbfbabe77146879576ea8adb6e58def83d13263ee9cbda43bfc"


def test_a_full_mask_keeps_trains_and_holds_everything() -> None:
    mask = full_mask(cnn4())
    assert mask.trained == {"conv1", "norm1", "conv2", "norm2", "conv3", "norm3", "conv4", "norm4", "head"}
    assert mask.cost.parameters == 390_880
    assert not mask.held
    assert not mask.kept_bitmaps()


@given(masked_models(), st.randoms())
def test_the_digest_does_not_depend_on_the_order_things_are_said(
    case: tuple[ModelGraph, Mask], order: random.Random
) -> None:
    graph, mask = case
    trained, groups, tensors = list(mask.trained), list(mask.kept), list(mask.held)
    for names in (trained, groups, tensors):
        order.shuffle(names)
    kept = {name: order.sample(mask.kept[name].tolist(), mask.kept[name].size) for name in groups}
    again = Mask.of(graph, trained=trained, kept=kept, held={name: mask.held[name] for name in tensors})
    assert again.digest == mask.digest


@given(masked_models())
def test_what_is_said_needlessly_does_not_change_the_digest(case: tuple[ModelGraph, Mask]) -> None:
    graph, mask = case
    kept = {group.name: mask.kept[group.name] for group in graph.groups}
    everything = {name: np.ones(shape, np.bool_) for name, shape in mask.shapes.items()}
    again = Mask.of(graph, trained=mask.trained, kept=kept, held=everything | dict(mask.held))
    assert again.digest == mask.digest


def test_the_digest_is_the_same_in_every_process_and_byte_order() -> None:
    graph = cnn4()
    held = {"conv1.weight": np.arange(16 * 9).reshape(16, 1, 3, 3) % 3 == 0}
    mask = Mask.of(graph, trained=["conv1", "head"], kept={"conv1": range(0, 32, 2)}, held=held)
    big_endian = Mask(
        graph, mask.trained, {"conv1": np.arange(0, 32, 2).astype(">i4")}, {"conv1.weight": held["conv1.weight"]}
    )
    assert mask.digest == big_endian.digest == GOLDEN_DIGEST
    code = (
        "import numpy as np; from edgefl.masks import Mask; from examples.networks import cnn4;"
        "held = {'conv1.weight': np.arange(16 * 9).reshape(16, 1, 3, 3) % 3 == 0};"
        "print(Mask.of(cnn4(), trained=['head', 'conv1'], kept={'conv1': range(0, 32, 2)}, held=held).digest)"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == GOLDEN_DIGEST


def test_the_digest_follows_its_written_specification() -> None:
    graph = cnn4()
    held = np.arange(16 * 9).reshape(16, 1, 3, 3) % 3 == 0
    mask = Mask.of(graph, trained=["head", "conv1"], kept={"conv1": range(0, 32, 2)}, held={"conv1.weight": held})
    fields = [
        b"edgefl.mask/1",
        graph.digest.encode(),
        b"2",
        b"conv1",
        b"head",
        b"group conv1",
        bytes([0b01010101] * 4),
        b"tensor conv1.weight",
        sum(1 << i for i in range(0, 144, 3)).to_bytes(18, "little"),
    ]
    content = b"".join(len(field).to_bytes(8, "little") + field for field in fields)
    assert mask.digest == "sha256:" + hashlib.sha256(content).hexdigest()


def test_different_masks_have_different_digests() -> None:
    graph = cnn4()
    held = np.ones((32, 1, 3, 3), np.bool_)
    held[0] = False
    masks = [
        full_mask(graph),
        freeze(full_mask(graph), ["conv1"]),
        leading_channels(graph, 0.5),
        Mask.of(graph, kept={"conv1": range(1, 32)}),
        Mask.of(graph, held={"conv1.weight": held}),
        full_mask(cnn4(classes=11)),
    ]
    assert len({mask.digest for mask in masks}) == len(masks)


def test_a_mask_can_be_copied_and_so_sent_between_processes() -> None:
    mask = Mask.of(cnn4(), kept={"conv2": [1, 2]}, held={"conv1.weight": np.zeros((32, 1, 3, 3), np.bool_)})
    assert mask.selectors
    assert copy.deepcopy(mask).digest == mask.digest


def test_a_mask_cannot_be_changed() -> None:
    flags = np.zeros((32, 1, 3, 3), np.bool_)
    mask = Mask.of(cnn4(), kept={"conv2": [1, 2]}, held={"conv1.weight": flags})
    flags[:] = True
    assert not mask.held["conv1.weight"].any()
    with pytest.raises(ValueError, match="read-only"):
        mask.kept["conv2"][0] = 0
    with pytest.raises(ValueError, match="read-only"):
        mask.held["conv1.weight"][0] = True
    with pytest.raises(TypeError):
        mask.kept["conv2"] = np.arange(3)  # type: ignore[index]


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ({"conv1": []}, "keeps no channel.*at least 1 of its 32"),
        ({"conv1": [0, 0]}, "repeated"),
        ({"conv1": [32]}, "from 0 to 31"),
        ({"conv1": [-1]}, "from 0 to 31"),
        ({"conv1": [1.5]}, "whole numbers"),
        ({"conv1": [True, False]}, "whole numbers"),
        ({"input": []}, "keeps no channel"),
        ({"head": range(9)}, "classes of the head and keeps 9 of 10"),
        ({"nowhere": [0]}, "no channel group 'nowhere'.*conv1"),
    ],
)
def test_channels_that_cannot_be_are_refused(kept: dict[str, Any], message: str) -> None:
    with pytest.raises(MaskError, match=message):
        Mask.of(cnn4(), kept=kept)


def test_a_width_that_the_norm_cannot_divide_is_refused() -> None:
    graph = cnn4(norm_groups=8)
    with pytest.raises(MaskError, match="multiple of 8"):
        Mask.of(graph, kept={"conv1": range(12)})
    assert Mask.of(graph, kept={"conv1": range(16)}).widths["conv1"] == 16


def test_layers_and_weights_that_cannot_be_are_refused() -> None:
    with pytest.raises(MaskError, match=r"no trainable layer 'conv9'.*conv1, norm1"):
        Mask.of(cnn4(), trained=["conv9"])
    with pytest.raises(MaskError, match="no trainable layer 'conv9'"):
        freeze(full_mask(cnn4()), ["conv9"])
    with pytest.raises(MaskError, match=r"no tensor 'conv9.weight'"):
        Mask.of(cnn4(), held={"conv9.weight": np.ones(3, np.bool_)})
    with pytest.raises(MaskError, match=r"booleans of shape \(2, 1, 3, 3\)"):
        Mask.of(cnn4(), kept={"conv1": [3, 4]}, held={"conv1.weight": np.ones((32, 1, 3, 3), np.bool_)})
    with pytest.raises(MaskError, match="float64"):
        Mask.of(cnn4(), held={"conv1.weight": np.ones((32, 1, 3, 3))})


def test_a_mask_of_another_model_is_refused() -> None:
    with pytest.raises(MaskError, match="digests must be equal"):
        full_mask(cnn4()).check_model(cnn4(classes=11))
    full_mask(cnn4()).check_model(cnn4())


@given(st.floats(0, 1, exclude_min=True), st.sampled_from([1, 2, 4, 8]))
def test_widths_follow_the_fraction_as_the_norm_allows(fraction: float, norm_groups: int) -> None:
    for group in cnn4(norm_groups=norm_groups).groups:
        width = kept_width(group, fraction)
        if group.fixed:
            assert width == group.width
        else:
            assert 1 <= width <= group.width
            assert width % norm_groups == 0
            assert width == norm_groups or abs(width - fraction * group.width) <= norm_groups / 2


@pytest.mark.parametrize("fraction", [0.0, -0.5, 1.01, float("nan")])
def test_a_fraction_outside_its_range_is_refused(fraction: float) -> None:
    with pytest.raises(MaskError, match="kept fraction"):
        leading_channels(cnn4(), fraction)


def test_random_channels_are_reproducible_and_differ() -> None:
    one, again, other = (random_channels(cnn4(), 0.5, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.digest == again.digest != other.digest
    assert one.widths == leading_channels(cnn4(), 0.5).widths

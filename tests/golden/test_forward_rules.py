"""This EdgeFL computes the sums of the golden files, and the biases of personal heads."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from edgefl.federation.submodel_document import submodel_document
from edgefl.local_rules import Batch, State, StepResult, TrainingInput, Update, rule_of
from edgefl.masks import Array, Mask, Weights
from edgefl.model_graph import ModelGraph
from edgefl.values import RuleSettings, loads, to_json
from edgefl.wire import Dense, decode_mask
from tests.golden.encoding import FOLDER, array_of, from_base64

FILES = {
    rule: json.loads((FOLDER / f"rules_{rule}.json").read_text(encoding="utf-8"))
    for rule in ("feature_sums", "head_gradients", "class_prior")
}


def cases(rule: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", FILES[rule]["cases"], ids=lambda case: case["name"])


class Recorded:
    """A graph that returns what the file says."""

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        return StepResult(0.0, np.zeros(0, np.bool_), {}, features=batch.x)


def start_of(case: Mapping[str, Any], rule: str) -> tuple[Mask, dict[str, Array]]:
    start = FILES[rule]["starts"][case["start"]]
    mask = decode_mask(from_base64(start["mask_body"]), loads(ModelGraph, start["model"]))
    return mask, {name: array_of(entry) for name, entry in start["head"].items()}


def run(rule: str, case: Mapping[str, Any]) -> tuple[Update, list[float]]:
    """Return the update of a case, and the losses of its batches."""
    mask, head = start_of(case, rule)
    extras = {name: array_of(entry) for name, entry in case.get("extras", {}).items()}
    chosen, part = rule_of(RuleSettings(**case["rule"])), TrainingInput(mask, head, seed=1, extras=extras)
    assert to_json(submodel_document(chosen.trains(mask), chosen.sends(mask))) == case["submodel"]
    state: State = chosen.begin(part)
    losses = []
    for entry in case["batches"]:
        features = array_of(entry["features"]) if "features" in entry else np.zeros(0)
        batch = Batch(features, np.array(entry["labels"], np.int64))
        losses.append(chosen.step(part, state, batch, Recorded()).loss)
    return chosen.finish(part, state, batch, Recorded()), losses


def sums_of(update: Update) -> dict[str, Array]:
    return {name: payload.array for name, payload in update.tensors.items() if isinstance(payload, Dense)}


def close(found: list[float], expected: list[float], tolerance: float) -> bool:
    return all(abs(one - other) <= tolerance * max(1.0, other) for one, other in zip(found, expected, strict=True))


@cases("feature_sums")
def test_sums_are_equal_to_the_bit(case: dict[str, Any]) -> None:
    update, losses = run("feature_sums", case)
    found, expected = sums_of(update), {name: array_of(entry) for name, entry in case["sums"].items()}
    assert {name: (array.shape, array.tobytes()) for name, array in found.items()} == {
        name: (array.shape, array.tobytes()) for name, array in expected.items()
    }
    assert close(losses, case["losses"], FILES["feature_sums"]["tolerance"])


@cases("head_gradients")
def test_gradients_are_equal_but_for_their_last_bits(case: dict[str, Any]) -> None:
    update, losses = run("head_gradients", case)
    tolerance = FILES["head_gradients"]["tolerance"]
    found, expected = sums_of(update), {name: array_of(entry) for name, entry in case["sums"].items()}
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].shape == array.shape
        assert np.abs(found[name] - array).max() <= tolerance * np.abs(array).max()
    assert close(losses, case["losses"], tolerance)


@cases("class_prior")
def test_a_bias_is_the_nearest_number_or_its_neighbour(case: dict[str, Any]) -> None:
    update, _ = run("class_prior", case)
    for name, entry in case["own"].items():
        expected = array_of(entry)
        assert update.weights[name].dtype == np.float32
        assert np.all(np.abs(update.weights[name] - expected) <= np.spacing(np.abs(expected)))
    assert update.tensors == {}


def case_of(rule: str, name: str) -> dict[str, Any]:
    (found,) = (case for case in FILES[rule]["cases"] if case["name"] == name)
    return dict(found)


def test_the_order_of_samples_shows_in_the_bits() -> None:
    case = case_of("feature_sums", "clipped, more than 64 features, no bias")
    again = {**case, "batches": case["batches"][::-1]}
    found, other = (sums_of(run("feature_sums", one)[0])["sums/gram"] for one in (case, again))
    assert found.tobytes() != other.tobytes()
    assert found == pytest.approx(other, rel=1e-9)


def test_the_clips_of_the_files_leave_some_samples_as_they_are() -> None:
    for name in ("clipped", "clipped, more than 64 features, no bias"):
        case = case_of("feature_sums", name)
        norms = np.concatenate([np.linalg.norm(array_of(entry["features"]), axis=1) for entry in case["batches"]])
        assert (norms > case["rule"]["settings"]["clip"]).any()
        assert (norms < case["rule"]["settings"]["clip"]).any()


def test_the_head_of_the_plan_is_another_than_the_one_that_was_downloaded() -> None:
    case = case_of("head_gradients", "a head with a bias")
    found, other = (sums_of(run("head_gradients", one)[0])["sums/gradient"] for one in (case, {**case, "extras": {}}))
    assert np.abs(found - other).max() > 0.1


def test_a_prior_by_hand() -> None:
    """Four of seven samples of class 0, of whose kind a quarter of all devices' are."""
    case = case_of("class_prior", "other shares")
    ((name, entry),) = case["own"].items()
    before = start_of(case, "class_prior")[1][name][0]
    assert array_of(entry)[0] == np.float32(before + np.log(4 / 7 / 0.25))

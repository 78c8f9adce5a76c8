"""This EdgeFL computes the traces of the golden files, step by step."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from edgefl import noise
from edgefl.local_rules import Batch, TrainingInput, rule_of
from edgefl.local_rules.channel_pruning import magnitudes
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import RuleSettings, loads
from edgefl.wire import Body, BodyKind, decode_mask, decode_result, encode
from tests.golden.encoding import FOLDER, array_of, from_base64
from tests.golden.rule_files import RecordedStep

FILES = {
    rule: json.loads((FOLDER / f"rules_{rule}.json").read_text(encoding="utf-8"))
    for rule in ("sgd", "fine_tune", "masked_noise")
}
CASES = [(rule, number) for rule, file in FILES.items() for number in range(len(file["cases"]))]
SCORES = json.loads((FOLDER / "channel_scores.json").read_text(encoding="utf-8"))
BATCH = Batch(np.zeros(1), np.zeros(1, np.int64))


def arrays(data: Mapping[str, str], mask: Mask) -> dict[str, Any]:
    """Return the arrays of tensors, or of what a rule remembers about them."""
    found = {}
    for key, text in data.items():
        tensor = mask.graph.tensor[key.rpartition(":")[2]]
        dtype = np.dtype(tensor.dtype.value).newbyteorder("<")
        found[key] = np.frombuffer(from_base64(text), dtype).reshape(mask.shapes[tensor.name])
    return found


def same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }


@pytest.mark.parametrize(("rule", "number"), CASES)
def test_a_rule_follows_its_trace(rule: str, number: int) -> None:
    file = FILES[rule]
    case, graph = file["cases"][number], loads(ModelGraph, file["model"])
    start = file["starts"][case["start"]]
    mask = decode_mask(from_base64(start["mask_body"]), graph)
    chosen = rule_of(RuleSettings(**case["rule"]))
    where = {key: case[key] for key in ("round", "rounds", "steps")}
    inputs = TrainingInput(mask, arrays(start["weights"], mask), int(case["seed"]), **where)
    state = chosen.begin(inputs)
    run = RecordedStep(chosen.trains(mask), int(case["recorded"]["seed"]), case["recorded"]["bound"])
    assert same(arrays(case.get("noise", {}), mask), {k: v for k, v in state.memory.items() if k.startswith("noise:")})
    for expected in case["trace"]:
        assert chosen.step(inputs, state, BATCH, run).loss == expected["loss"]
        weights = arrays(expected["weights"], mask)
        assert same({name: state.weights[name] for name in weights}, weights)
        assert same({k: v for k, v in state.memory.items() if "noise:" not in k}, arrays(expected["memory"], mask))
        forward = arrays(expected.get("forward", {}), mask)
        assert same({name: run.seen[name] for name in forward}, forward)
    update = chosen.finish(inputs, state, BATCH, run)
    own = arrays(case["own"], mask)
    assert same({name: update.weights[name] for name in own}, own)
    assert dict(update.metrics) == pytest.approx(case["metrics"], rel=1e-15)
    about = {"result": file["result"], "model": graph.digest, "mask": mask.digest}
    body = encode(Body(BodyKind.UPDATE, update.tensors, seed=int(case["seed"]), about=about))
    assert body == from_base64(case["body"])
    read = decode_result(body, graph)
    document = file["submodels"][case["submodel"]]
    sent = {row["name"]: row["sent"] for row in document["tensors"]}
    sent |= {row["name"]: row["codec"] for row in document["payloads"]}
    assert {name: payload.codec for name, payload in read.tensors.items()} == {
        name: codec for name, codec in sent.items() if codec is not None
    }


def case_of(rule: str, name: str) -> Any:
    return next(case for case in FILES[rule]["cases"] if case["name"] == name)


def first(case: Any, rule: str, tensor: str, field: str, step: int = 0) -> np.float32:
    """Return the first entry of a tensor before the first step, or after a step."""
    data = FILES[rule]["starts"][case["start"]]["weights"] if field == "start" else case["trace"][step][field]
    return np.float32(np.frombuffer(from_base64(data[tensor]), "<f4")[0])


def recorded(case: Any, step: int, tensor: str, size: int) -> Any:
    stream = noise.derive(int(case["recorded"]["seed"]), "gradient", step, tensor)
    return noise.symmetric(stream, 0, size, case["recorded"]["bound"])


def test_two_steps_of_momentum_by_hand() -> None:
    case = case_of("sgd", "Nesterov")
    rate, momentum = np.float32(0.1), np.float32(0.9)
    w, v = first(case, "sgd", "head.weight", "start"), np.float32(0)
    for step in range(2):
        d = recorded(case, step, "head.weight", 6)[0]
        v = v * momentum + d
        w = w - (d + v * momentum) * rate
        assert w == first(case, "sgd", "head.weight", "weights", step)
        assert v == first(case, "sgd", "momentum:head.weight", "memory", step)


def test_a_clipped_step_by_hand() -> None:
    case = case_of("sgd", "clipped, tensors of more than 64 entries")
    graph = loads(ModelGraph, FILES["sgd"]["model"])
    total = 0.0
    for tensor in graph.tensors:
        if tensor.role != "statistic":
            lanes = [0.0] * 64
            for index, value in enumerate(recorded(case, 0, tensor.name, tensor.size).tolist()):
                lanes[index % 64] += value * value
            total += _in_order(lanes)
    factor = np.float32(min(1.0, 1 / (math.sqrt(total) + 1e-6)))
    w, g = first(case, "sgd", "conv.weight", "start"), recorded(case, 0, "conv.weight", 72)[0]
    assert w - (g * factor) * np.float32(0.1) == first(case, "sgd", "conv.weight", "weights")


def _in_order(numbers: list[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def test_a_step_of_masked_noise_by_hand() -> None:
    case = case_of("masked_noise", "binary, progressive_stochastic")
    seed, tensor, size = int(case["seed"]), "head.weight", 6
    n = noise.symmetric(noise.derive(seed, "noise", tensor), 0, size, 0.01)[4]
    u = -(recorded(case, 0, tensor, size)[4] * np.float32(0.01))  # after the first step
    # Words of a step: conv 54 / 2, the gate 18 / 2, the linear layer 24 / 2, the head 6 / 2.
    word = int(noise.bits(noise.derive(seed, "draws"), (27 + 9 + 12 + 3) + 27 + 9 + 12 + 2, 1)[0])
    draw = np.float32((word & 0xFFFFFFFF) >> 8)  # entry 4 is even: the low half
    limit = np.float32(2 / 4 * 2**24)
    ratio = np.clip(u / n, np.float32(0), np.float32(1))
    factor = np.float32(draw < ratio * limit) if draw < limit else ratio
    start = np.frombuffer(from_base64(FILES["masked_noise"]["starts"]["narrow"]["weights"][tensor]), "<f4")[4]
    found = np.frombuffer(from_base64(case["trace"][1]["forward"][tensor]), "<f4")[4]
    assert found == start + factor * n


def test_a_report_of_sensitivities_by_hand() -> None:
    """A kernel of 3 of 4 channels: sums over the indices of its first axis, and of the gate's second."""
    case = case_of("sgd", "sensitivity")
    body = decode_result(from_base64(case["body"]), loads(ModelGraph, FILES["sgd"]["model"]))
    start = FILES["sgd"]["starts"]["narrow"]["weights"]
    for tensor, shape, axis in (("conv.weight", (3, 2, 3, 3), 0), ("\ufb00.weight", (6, 3), 1)):
        squares, before = np.zeros(shape, np.float32), start[tensor]
        for step in range(4):
            w = np.frombuffer(from_base64(before), "<f4").reshape(shape)
            product = w * recorded(case, step, tensor, w.size).reshape(shape)
            squares += product * product
            before = case["trace"][step]["weights"][tensor]
        sums = [_in_order(np.take(squares, index, axis).ravel().tolist()) for index in range(shape[axis])]
        payload: Any = body.tensors[f"sensitivity/{axis}/{tensor}"]
        assert payload.array.tolist() == np.array(sums, np.float32).tolist()


def test_a_sum_without_end_is_the_largest() -> None:
    case = case_of("sgd", "sensitivity beyond the largest sum")
    body = decode_result(from_base64(case["body"]), loads(ModelGraph, FILES["sgd"]["model"]))
    report: Any = body.tensors["sensitivity/0/conv.weight"]
    assert report.array.tolist() == [np.float32(1e18)] * 3


def test_noise_of_zero_is_the_least_noise() -> None:
    case = case_of("masked_noise", "noise of zero")
    values = np.frombuffer(from_base64(case["noise"]["noise:\U0001f41d.weight"]), "<f4")
    assert np.abs(values).min() == np.float32(1e-8)


@pytest.mark.parametrize("case", SCORES["cases"], ids=lambda case: case["name"])
def test_channels_have_these_scores(case: dict[str, Any]) -> None:
    graph = loads(ModelGraph, SCORES["model"])
    mask = decode_mask(from_base64(case["mask_body"]), graph)
    weights = {name: array_of(entry) for name, entry in case["weights"].items()}
    scores = {name: array.tolist() for name, array in magnitudes(mask, weights).items()}
    assert scores == {name: group["scores"] for name, group in case["groups"].items()}


def test_a_score_by_hand() -> None:
    (case,) = (case for case in SCORES["cases"] if case["name"] == "narrow")
    weights = {name: array_of(entry) for name, entry in case["weights"].items()}
    taken = [*weights["\U0001f41d.weight"][1], *weights["head.weight"][:, 1]]  # row 1, then column 1
    total = _in_order([float(value) * float(value) for value in taken])
    assert case["groups"]["hidden"]["scores"][1] == math.sqrt(total / 15)
    assert case["groups"]["hidden"]["entries"] == 15

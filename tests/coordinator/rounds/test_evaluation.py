"""The evaluation of the global model between rounds."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coordinator.federations.model_downloads import Part, global_model
from coordinator.rounds.context import Context
from coordinator.rounds.evaluation import Evaluator
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.storage.records import Device, RoundState
from device_runtime.engines import ThreadSettings, open_engine
from edgefl.artifacts.bundle import INFER, Bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import DataError, EdgeFLError, SchemaError
from edgefl.federation.settings import EvaluationSettings, RoundSettings, SelectionSettings, StrategyChoice
from edgefl.local_rules.base_networks import joined_networks
from edgefl.masks import full_mask, gather, leading_channels
from edgefl.wire import decode_mask, decode_result, encode_result
from tests.artifacts.hostile_graphs import HOSTILE, spoiled
from tests.coordinator.fleet import answer
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle, digits

PARTS: tuple[Part, ...] = ("whole", "held")


def test_evaluation_that_fails_is_told_and_stops_no_round(stage: Stage) -> None:
    devices = stage.begin(evaluation=EvaluationSettings(data="digits"))
    stage.advance()
    for device in devices:
        stage.do(device)
    stage.advance()
    assert stage.federation is not None

    def fail(weights: object) -> Any:
        raise DataError("the data are gone", fix="Bring them back.")

    RoundStateMachine(stage.context, stage.federation, fail).advance()
    assert stage.state == RoundState.DONE
    assert "the data are gone" in json.loads(stage.round.report)["evaluation_error"]


def test_the_global_model_is_evaluated_on_the_coordinators_data(stage: Stage) -> None:
    devices = stage.begin(evaluation=EvaluationSettings(data="digits"))
    stage.advance()
    for device in devices:
        stage.do(device, shift=0.0)
    stage.advance()
    assert stage.federation is not None
    evaluator = Evaluator(bundle(), EvaluationSettings(data="digits"))
    RoundStateMachine(stage.context, stage.federation, evaluator.score).advance()
    report = json.loads(stage.round.report)
    assert 0 <= report["accuracy"] <= 1
    assert report["test_samples"] > 100


HALF = StrategyChoice(name="heterofl", settings={"levels": "0.5"})


def test_the_part_that_devices_hold_is_judged_and_told(stage: Stage) -> None:
    data = EvaluationSettings(data="digits")
    devices = stage.begin(evaluation=data, strategy=HALF)
    stage.advance()
    for device in devices:
        stage.do(device, shift=0.01)
    stage.advance()
    assert stage.federation is not None
    evaluator = Evaluator(bundle(), data)
    RoundStateMachine(stage.context, stage.federation, evaluator.score).advance()
    half, report = leading_channels(bundle().graph, 0.5), json.loads(stage.round.report)
    weights = stage.weights(0)
    part, whole = evaluator.score([gather(half, weights)]), evaluator.score([weights])
    assert (report["accuracy"], report["test_loss"]) == (part.accuracy, part.loss)
    assert report["test_loss"] != whole.loss
    assert report["judged_fraction"] == half.cost.parameters / bundle().graph.parameters


def test_networks_are_exported_side_by_side_in_one_graph_that_has_the_mean_of_their_logits(stage: Stage) -> None:
    stage.begin(strategy=StrategyChoice(name="split_mix", settings={"base_networks": 2}))
    graph, context = bundle().graph, stage.context
    held = decode_mask(global_model(context, "digits", "mask", part="held"), graph)
    assert held.digest == joined_networks(graph, [0, 1], 2).digest
    x, _ = digits().batch(np.arange(5), "test")
    engine = open_engine("onnx", ThreadSettings(1))
    weights = bundle_weights(bundle())
    networks = [gather(joined_networks(graph, [number], 2), weights) for number in range(2)]
    apart = [engine.predictor(bundle().files[INFER])(network, x) for network in networks]
    for part in PARTS:
        made = global_model(context, "digits", "onnx", part=part)
        assert engine.predictor(made)({}, x) == pytest.approx(np.mean(apart, axis=0), abs=1e-5)
    one = joined_networks(graph, [0], 2).cost.parameters / graph.parameters
    small = global_model(context, "digits", "onnx", fraction=one)
    assert engine.predictor(small)({}, x) == pytest.approx(apart[0], abs=1e-5)


def test_a_coordinator_that_starts_again_knows_what_devices_held(stage: Stage) -> None:
    devices = stage.begin(strategy=HALF)
    stage.advance()
    for device in devices:
        stage.do(device)
    stage.advance(2)
    again = Context(stage.context.store, stage.context.blobs, stage.clock)
    assert held_widths(again) == leading_channels(bundle().graph, 0.5).widths


def test_a_federation_of_an_earlier_version_has_the_whole_model_until_half_of_the_rounds_say_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = stage.begin(strategy=HALF, rounds=RoundSettings(count=5, deadline=60))
    whole, half = full_mask(bundle().graph).widths, leading_channels(bundle().graph, 0.5).widths
    widths = []
    with monkeypatch.context() as earlier:
        earlier.setattr("coordinator.rounds.round_models.arrays_beside", lambda model: model.state)
        play(stage, devices)
        widths.append(held_widths(stage.context))
    assert stage.round.next_state_arrays is None
    for _ in range(2):
        play(stage, devices)
        widths.append(held_widths(stage.context))
    assert widths == [whole, half, half]


def test_channels_count_as_the_coordinator_planned_them_whatever_devices_claim(stage: Stage) -> None:
    """A device says that it has no samples, another sends a body for a mask of its own."""
    narrow, wide = stage.begin(strategy=HALF, selection=SelectionSettings(devices=2))
    stage.advance()
    stage.do(narrow)
    plan = stage.plan(wide)
    body = decode_result(answer(stage.context, plan), bundle().graph)
    claimed = replace(body, mask=full_mask(bundle().graph).digest)
    with pytest.raises(EdgeFLError):
        stage.upload(wide, plan, encode_result(claimed, bundle().graph))
    stage.do(wide, samples=0)
    stage.advance(2)
    assert held_widths(stage.context) == leading_channels(bundle().graph, 0.5).widths


def held_widths(context: Context) -> dict[str, int]:
    mask = decode_mask(global_model(context, "digits", "mask", part="held"), bundle().graph)
    return dict(mask.widths)


def play(stage: Stage, devices: Sequence[Device]) -> None:
    stage.advance()
    for device in devices:
        stage.do(device)
    stage.advance(2)


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_graph_is_refused_before_it_is_evaluated(how: str) -> None:
    """A bundle may have been stored before bundles were checked."""
    files = {**bundle().files, INFER: spoiled(bundle().files[INFER], how)}
    stored = Bundle(bundle().manifest, bundle().graph, files)
    with pytest.raises(SchemaError, match="the graph"):
        Evaluator(stored, EvaluationSettings(data="digits"))


def test_several_networks_are_judged_by_the_mean_of_their_logits() -> None:
    evaluator, whole = Evaluator(bundle(), EvaluationSettings(data="digits")), bundle_weights(bundle())
    opposite = {name: -array if name.startswith("9.") else array for name, array in whole.items()}
    alone, twice = evaluator.score([whole]), evaluator.score([whole, whole])
    assert twice.loss == pytest.approx(alone.loss)
    assert evaluator.score([whole, opposite]).loss == pytest.approx(np.log(10))  # logits that cancel say nothing

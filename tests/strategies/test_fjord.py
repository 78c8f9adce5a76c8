"""FjORD: the rule that it sends, the average by level, and rounds that bring every leading part to its goal."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_runtime.engines import ThreadSettings
from device_runtime.engines.onnx import OnnxEngine
from edgefl.artifacts.bundle import TRAIN, read_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import SchemaError, WireFormatError
from edgefl.local_rules import Batch, Descent, OrderedDropout, TrainingInput, rule_of
from edgefl.masks import gather, leading_channels
from edgefl.model_graph import ModelGraph
from edgefl.strategies import ClientUpdate, FjORD, Model, Participant, RoundContext, strategy_of
from edgefl.values import Budget, LocalWork
from edgefl.wire import Dense
from examples.networks import cnn4
from tests.local_rules.quadratic import Quadratic, nth_batch
from tests.strategies.rounds import ROUND_CONTEXT, client_update, random_weights
from tests.values.samples import PROFILE, RESULT

GRAPH = cnn4()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))


def devices(graph: ModelGraph = GRAPH) -> list[Participant]:
    """One device for each of the paper's levels, the widest first."""
    sizes = [leading_channels(graph, level).cost.parameters for level in (1, 0.8, 0.6, 0.4, 0.2)]
    return [Participant(f"d{n}", PROFILE, Budget(trainable_parameters=size)) for n, size in enumerate(sizes)]


def test_devices_get_their_level_and_draw_from_those_below_it() -> None:
    planned_tasks = FjORD().plan(MODEL, devices(), ROUND_CONTEXT)
    for number, level in enumerate((1, 0.8, 0.6, 0.4, 0.2)):
        assert planned_tasks[f"d{number}"].mask.digest == leading_channels(GRAPH, level).digest
    rule = rule_of(planned_tasks["d1"].rule)
    assert rule == OrderedDropout(descent=FjORD().descent, levels="1, 0.8, 0.6, 0.4, 0.2")


def test_settings_reach_strategy_and_rule() -> None:
    strategy = strategy_of("fjord", {"levels": "1, 0.5", "momentum": 0.9})
    assert isinstance(strategy, FjORD)
    rule: Any = rule_of(strategy.plan(MODEL, devices(), ROUND_CONTEXT)["d1"].rule)
    assert rule.levels == "1, 0.5"
    assert rule.descent.momentum == 0.9


def test_a_coordinate_is_averaged_over_those_whose_level_reaches_it() -> None:
    made = []
    for number, planned in enumerate(FjORD().plan(MODEL, devices(), ROUND_CONTEXT).values()):
        new = {name: array + np.float32(number) for name, array in MODEL.weights.items()}
        made.append(client_update(planned.mask, MODEL.weights, new, samples=10 * (number + 1)))
        FjORD().check(made[-1])
    change = FjORD().combine(MODEL, made, ROUND_CONTEXT).weights["conv4.weight"] - MODEL.weights["conv4.weight"]
    ends = [made[number].mask.widths["conv4"] for number in range(5)]
    for number in range(5):
        reaching = range(number + 1)  # the widest ones
        mean = sum(10 * (n + 1) * n for n in reaching) / sum(10 * (n + 1) for n in reaching)
        assert np.allclose(change[ends[number] - 1, 0], mean, atol=1e-5), number


def test_rounds_bring_every_leading_part_to_its_goal() -> None:
    strategy = strategy_of("fjord", {"learning_rate": 0.3, "weight_decay": 0})
    model = strategy.begin(GRAPH, MODEL.weights)
    distances = []
    for number in range(3):
        round_context = RoundContext(number, 3, 1, LocalWork())
        made = []
        for name, asked in strategy.plan(model, devices(), round_context).items():
            rule, part = (
                rule_of(asked.rule),
                TrainingInput(asked.mask, gather(asked.mask, model.weights), seed=number, steps=4),
            )
            state = rule.begin(part)
            for step in range(4):
                rule.step(part, state, nth_batch(step), towards_one)
            update = rule.finish(part, state, nth_batch(0), towards_one)
            result = dataclasses.replace(RESULT, device_id=name)
            made.append(ClientUpdate(name, asked.mask, asked.rule, 1, model.weights, result, update.tensors))
            strategy.check(made[-1])
        model = strategy.combine(model, made, round_context)
        small = gather(strategy.extract(model, 0.1, 0), model.weights)
        distances.append(sum(float(np.square(array - 1).sum()) for array in small.values()))
    assert distances == sorted(distances, reverse=True)
    # The first channel is in every width: three rounds of four steps at a rate of 0.3.
    first, given = model.weights["conv2.weight"][0, 0], MODEL.weights["conv2.weight"][0, 0]
    assert np.allclose(first - 1, 0.7**12 * (given - 1), atol=1e-4)


def towards_one(weights: Any, batch: Any) -> Any:
    result = Quadratic(GRAPH)(weights, batch)
    return dataclasses.replace(result, gradients={name: weights[name] - 1 for name in result.gradients})


def test_uploads_of_another_shape_are_refused() -> None:
    mask = leading_channels(GRAPH, 0.4)
    found = client_update(mask, MODEL.weights, MODEL.weights)
    FjORD().check(found)
    tensors = dict(found.tensors)
    tensors["conv1.weight"] = Dense(MODEL.weights["conv1.weight"])
    with pytest.raises(WireFormatError, match=r"conv1.weight"):
        FjORD().check(dataclasses.replace(found, tensors=tensors))
    with pytest.raises(WireFormatError, match="changes no mask"):
        FjORD().check(dataclasses.replace(found, next_mask=leading_channels(GRAPH, 0.2)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"placement": "rolling"}, r"'settings.placement' is 'rolling', but ordered dropout works on leading channels"),
        ({"sent": "masked_noise"}, r"'settings.sent' is 'masked_noise', but FjORD's devices send new values"),
        ({"levels": "2"}, r"'settings.levels' must be a list of fractions above 0 and up to 1, got '2'"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        strategy_of("fjord", settings)


def test_a_real_training_graph_runs_at_every_width() -> None:
    bundle = read_bundle(Path(__file__).parents[1] / "device_runtime" / "small_cnn.zip")
    mask = leading_channels(bundle.graph, 0.8)
    step = OnnxEngine(ThreadSettings(1)).train_step(bundle.files[TRAIN], mask)
    generator = np.random.default_rng(3)
    batch = Batch(generator.normal(size=(16, 1, 8, 8)).astype(np.float32), generator.integers(0, 10, 16))
    rule = OrderedDropout(descent=Descent(learning_rate=0.1))
    part = TrainingInput(mask, gather(mask, bundle_weights(bundle)), seed=2, steps=40)
    state = rule.begin(part)
    losses = [rule.step(part, state, batch, step).loss for _ in range(40)]
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])
    assert set(rule.finish(part, state, batch, step).tensors) == set(mask.trained_tensors)

"""FedPM: its posterior by hand, what devices are sent and send, and the model that a round hands on."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from edgefl.errors import SchemaError, WireFormatError
from edgefl.local_rules import Batch, SampledMasks, StepResult, rule_of
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.sampled_masks import random_weights as random_part
from edgefl.masks import Mask, Weights, full_mask, gather, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import (
    ClientUpdate,
    FedPM,
    Model,
    Participant,
    PlannedTask,
    Posterior,
    RoundContext,
    ServedMask,
    strategy_of,
)
from edgefl.values import Budget, LocalWork
from edgefl.wire import Bits, Dense, Payload
from examples.networks import cnn4
from tests.local_rules.quadratic import Quadratic
from tests.strategies.rounds import ROUND_CONTEXT, random_weights
from tests.strategies.wired import order_of, wired
from tests.values.samples import PROFILE, RESULT

GRAPH = cnn4()
BASE = random_weights(GRAPH, 0, 0.1)
WORK = LocalWork(epochs=2, batch_size=32)


def row() -> ModelGraph:
    """Four weights and a bias."""
    build = GraphBuilder("row", channels=4)
    build.linear("head", build.input, 1, head=True)
    return build.finish()


ROW = row()
W, P = "head.weight", "p/head.weight"


def started(strategy: FedPM, graph: ModelGraph = ROW) -> Model:
    return strategy.begin(graph, random_weights(graph, 0))


def sent(bits: list[int], *, bias: float = 0.0, mask: Mask | None = None, **how: Any) -> ClientUpdate:
    """What a device sends that drew these bits."""
    part = full_mask(ROW) if mask is None else mask
    tensors: dict[str, Payload] = {
        W: Bits.of(np.array([bits], np.bool_)),
        "head.bias": Dense(np.array([bias], np.float32)),
    }
    result = dataclasses.replace(RESULT, samples=how.pop("samples", 10))
    return ClientUpdate("d", part, FedPM().uplink.rule, 1, started(FedPM()).weights, result, tensors, **how)


DRAWS = [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 1]]


def thetas(strategy: FedPM, draws: list[list[int]], **how: Any) -> list[float]:
    model = strategy.combine(started(strategy), [sent(bits, **how) for bits in draws], ROUND_CONTEXT)
    return [round(float(theta), 6) for theta in model.state[P][0]]


def test_the_posterior_by_hand() -> None:
    """Three devices; of the four weights 3, 2, 0 and 1 draws say keep. A draw counts as 0.99 or 0.01."""
    counts = [3 * 0.99, 2 * 0.99 + 0.01, 3 * 0.01, 0.99 + 2 * 0.01]
    assert thetas(FedPM(), DRAWS) == pytest.approx([c / 3 for c in counts], abs=1e-6)
    # alpha = 1 + count, beta = 1 + 3 - count; so far the mode (alpha - 1) / (alpha + beta - 2), now the mean
    assert thetas(FedPM(posterior=Posterior.MEAN), DRAWS) == pytest.approx([(1 + c) / 5 for c in counts], abs=1e-6)
    # lambda_0 = 4 is three draws for and three against
    assert thetas(FedPM(prior=4.0), DRAWS) == pytest.approx([(3 + c) / 9 for c in counts], abs=1e-6)
    small = FedPM(draw_margin=1e-6)
    assert thetas(small, DRAWS) == pytest.approx([1, 2 / 3, 0, 1 / 3], abs=1e-5)


def test_devices_count_the_same_whatever_their_samples_and_less_with_an_old_model() -> None:
    strategy = FedPM(draw_margin=1e-6)
    made = [sent([1, 1, 0, 0], samples=1000), sent([0, 1, 0, 1], samples=1), sent([1, 0, 0, 0], trust=0.5)]
    found = strategy.combine(started(strategy), [*made, sent([0, 0, 0, 0], samples=0)], ROUND_CONTEXT).state[P][0]
    assert found == pytest.approx([1.5 / 2.5, 2 / 2.5, 0, 1 / 2.5], abs=1e-5)


def test_counting_goes_on_until_it_begins_anew() -> None:
    strategy = FedPM(draw_margin=1e-6, reset_every=3)
    model, found = started(strategy), []
    for number, bits in enumerate([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]]):
        model = strategy.combine(model, [sent(bits)], RoundContext(number, 10, 1))
        found.append(model.state[P][0])
    expected: list[list[float]] = [[1, 1, 0, 0], [1, 0.5, 0, 0], [2 / 3, 2 / 3, 0, 1 / 3], [0, 0, 1, 1]]
    assert np.allclose(found, expected, atol=1e-5)
    assert set(model.state) == {P, "alpha/head.weight", "beta/head.weight"}
    assert set(FedPM().combine(started(FedPM()), [sent([1, 1, 1, 1])], ROUND_CONTEXT).state) == {P}


def test_a_weight_that_nobody_held_keeps_its_probability() -> None:
    build = GraphBuilder("two", channels=3)
    build.linear("head", build.linear("hidden", build.input, 4, bias=False), 2, bias=False, head=True)
    graph = build.finish()
    strategy = FedPM(draw_margin=1e-6)
    model = started(strategy, graph)
    masks = [Mask.of(graph, kept={"hidden": [0, 2]}), Mask.of(graph, kept={"hidden": [2]})]
    made = []
    for mask, keep in zip(masks, (True, False), strict=True):
        tensors: dict[str, Payload] = {n: Bits.of(np.full(mask.shapes[n], keep)) for n in mask.trained_tensors}
        made.append(ClientUpdate("d", mask, strategy.uplink.rule, 1, model.weights, RESULT, tensors))
    found = strategy.combine(model, made, ROUND_CONTEXT)
    assert np.allclose(found.state["p/hidden.weight"][[0, 2]], [[1.0] * 3, [0.5] * 3], atol=1e-5)
    assert np.allclose(found.state["p/head.weight"][:, [0, 2]], [[1.0, 0.5]] * 2, atol=1e-5)
    untouched = [1, 3]
    assert np.array_equal(found.state["p/hidden.weight"][untouched], model.state["p/hidden.weight"][untouched])
    assert np.array_equal(found.state["p/head.weight"][:, untouched], model.state["p/head.weight"][:, untouched])


def test_biases_and_norms_are_averaged_by_samples() -> None:
    strategy = FedPM()
    model = started(strategy)
    made = [sent([1, 0, 0, 0], bias=1.0, samples=30), sent([1, 0, 0, 0], bias=5.0, samples=10)]
    assert strategy.combine(model, made, ROUND_CONTEXT).weights["head.bias"] == pytest.approx([2.0])


@pytest.mark.parametrize("served", ServedMask)
def test_the_model_of_a_round_is_random_weights_times_a_mask(served: ServedMask) -> None:
    strategy = FedPM(served_mask=served, weight_gain=2.0, weight_seed=9)
    model = strategy.begin(GRAPH, BASE)
    for now in (model, strategy.combine(model, [], ROUND_CONTEXT)):
        for name in weight_tensors(full_mask(GRAPH)):
            w, theta = random_part(full_mask(GRAPH), name, 9, 2.0), now.state[f"p/{name}"]
            kept = now.weights[name] != 0
            assert np.array_equal(now.weights[name], np.where(kept, w, 0))
            if served is ServedMask.LIKELY:
                assert np.array_equal(kept, theta > 0.5)
            else:  # four standard deviations of so many draws
                assert abs(kept.mean() - theta.mean()) < 2 / math.sqrt(theta.size)
                assert not np.array_equal(kept, theta > 0.5)
    others = set(GRAPH.tensor) - set(weight_tensors(full_mask(GRAPH)))
    assert all(np.array_equal(model.weights[name], BASE[name]) for name in others)


def test_the_first_probabilities_are_sigmoids_of_normal_numbers() -> None:
    theta = started(FedPM(), GRAPH).state["p/conv4.weight"].astype(np.float64)
    score = np.log(theta / (1 - theta)).ravel()
    assert abs(score.mean()) < 0.01
    assert abs(score.std() - 1) < 0.01
    assert abs((np.abs(score) < 1.96).mean() - 0.95) < 0.003
    assert not np.array_equal(theta, started(FedPM(weight_seed=1), GRAPH).state["p/conv4.weight"])


def device(name: str, **limits: Any) -> Participant:
    return Participant(name, PROFILE, Budget(**limits), 320)


def orders_of(strategy: FedPM, model: Model, round_context: RoundContext = ROUND_CONTEXT) -> dict[str, PlannedTask]:
    few = [device("a"), device("b", kept_fraction=0.3), device("c", kept_fraction=0.3)]
    return dict(strategy.plan(model, few, dataclasses.replace(round_context, work=WORK)))


def test_devices_are_sent_the_probabilities_of_their_part_and_equal_ones_share_them() -> None:
    strategy = FedPM()
    model = started(strategy, GRAPH)
    planned_tasks = orders_of(strategy, model)
    for planned in planned_tasks.values():
        assert planned.rule.name == "sampled_masks"
        assert set(planned.extras) == {f"p/{name}" for name in weight_tensors(full_mask(GRAPH))}
        for name in weight_tensors(planned.mask):
            theta = gather(planned.mask, {name: model.state[f"p/{name}"]}, [name])[name]
            assert np.array_equal(planned.extras[f"p/{name}"], theta)
    assert planned_tasks["b"].extras["p/conv2.weight"] is planned_tasks["c"].extras["p/conv2.weight"]
    assert planned_tasks["a"].extras["p/conv2.weight"].shape == (64, 32, 3, 3)


def test_what_arrives_is_the_devices_own_model() -> None:
    strategy = FedPM(weight_seed=5)
    model = started(strategy, GRAPH)
    for number, planned in enumerate(orders_of(strategy, model).values()):
        found = wired(planned, model.weights, seed=number)
        strategy.check(found.client_update)
        values = strategy.uplink.values(found.client_update)
        assert set(values.tensors) == set(planned.mask.trained_tensors)
        for name, payload in values.tensors.items():
            assert isinstance(payload, Dense)
            assert np.array_equal(payload.array, found.update.weights[name]), name
        change = [
            (found.update.weights[n] - found.part.weights[n]).astype(np.float64) for n in planned.mask.trained_tensors
        ]
        exact = math.sqrt(sum(float(np.square(c).sum()) for c in change))
        assert strategy.movement(found.client_update) == pytest.approx(exact, rel=1e-5)


def test_bits_a_parameter_as_sent() -> None:
    """Headers, report and norms included."""
    model = started(FedPM(), GRAPH)
    body = wired(orders_of(FedPM(), model)["a"], model.weights).body
    bits = 8 * len(body) / GRAPH.parameters
    assert 1 < bits <= 1.15, f"{len(body):,} bytes for {GRAPH.parameters:,} parameters"


def test_rounds_find_the_weights_that_help() -> None:
    """Where the goal is the random weight or nothing, half of each: the probabilities go to 1 and 0."""
    strategy = strategy_of("fedpm", {"score_rate": 0.3})
    assert isinstance(strategy, FedPM)
    model = started(strategy, GRAPH)
    w = {name: random_part(full_mask(GRAPH), name, 0, math.e) for name in weight_tensors(full_mask(GRAPH))}
    good = {name: np.indices(array.shape).sum(axis=0) % 2 == 0 for name, array in w.items()}

    def run(weights: Weights, batch: Batch) -> StepResult:
        result = Quadratic(GRAPH)(weights, batch)
        found = dict(result.gradients)
        for name in w:
            here = tuple(slice(n) for n in weights[name].shape)
            found[name] = weights[name] - np.where(good[name], w[name], -w[name])[here]
        return dataclasses.replace(result, gradients=found)

    right = []
    for number in range(4):
        round_context = RoundContext(number, 4, 1, WORK)
        planned_tasks = orders_of(strategy, model, round_context)
        made = [
            wired(o, model.weights, seed=7 * number + n, run=run, steps=6).client_update
            for n, o in enumerate(planned_tasks.values())
        ]
        model = strategy.combine(model, made, round_context)
        theta, kept = model.state["p/conv2.weight"][:16, :8], good["conv2.weight"][:16, :8]
        right.append(float(np.where(kept, theta, 1 - theta).mean()))
        served = model.weights["conv2.weight"][:16, :8] != 0
    assert right == sorted(right)
    assert right[-1] > 0.9
    assert (served == kept).mean() > 0.85


def test_settings_reach_the_rule() -> None:
    given = {"score_rate": 0.2, "weight_seed": 4, "weight_gain": 1.4, "learning_rate": 0.02}
    strategy = strategy_of("fedpm", given)
    assert isinstance(strategy, FedPM)
    rule = rule_of(strategy.uplink.rule)
    assert isinstance(rule, SampledMasks)
    assert (rule.score_rate, rule.weight_seed, rule.weight_gain, rule.descent.learning_rate) == (0.2, 4, 1.4, 0.02)
    assert rule_of(FedPM().uplink.rule) == SampledMasks()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sent": "eden"}, r"'settings.sent' is 'eden', but FedPM's devices train no weights"),
        ({"sent": "values"}, r"'settings.sent' is 'values', but FedPM's devices train no weights"),
        ({"frozen": "head"}, r"'settings.frozen' is 'head', but in FedPM no weight is ever trained"),
        ({"prior": 0.5}, r"'settings.prior' must be a number of 1 or more"),
        ({"draw_margin": 0.5}, r"'settings.draw_margin' must be a small probability"),
    ],
)
def test_what_cannot_be_combined_is_refused_with_the_reason(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        strategy_of("fedpm", given)
    assert strategy_of("fedpm", {"frozen": "none"}) == FedPM()


def test_hostile_uploads_are_refused() -> None:
    strategy = FedPM()
    model = started(strategy, GRAPH)
    mask = leading_channels(GRAPH, 0.5)
    planned = order_of(mask, strategy.uplink.rule, strategy.extras(model, mask, ROUND_CONTEXT))
    honest = wired(planned, model.weights).client_update
    strategy.check(honest)
    name = "conv2.weight"
    for wrong, message in (
        (Dense(np.ones(mask.shapes[name], np.float32)), "codec dense, and the plan says bits"),
        (Bits.of(np.ones((64, 32, 3, 3), np.bool_)), "has shape"),
        (None, "'conv2.weight' is missing"),
    ):
        tensors = {n: p for n, p in honest.tensors.items() if n != name} | ({} if wrong is None else {name: wrong})
        with pytest.raises(WireFormatError, match=message):
            strategy.check(dataclasses.replace(honest, tensors=tensors))
    huge = {**honest.tensors, "norm1.weight": Dense(np.full(16, np.inf, np.float32))}
    with pytest.raises(WireFormatError, match=r"'norm1.weight' holds a number beyond"):
        strategy.check(dataclasses.replace(honest, tensors=huge))
    with pytest.raises(WireFormatError, match=r"'p/conv1.weight' is not expected"):
        strategy.check(
            dataclasses.replace(honest, tensors={**honest.tensors, "p/conv1.weight": Bits.of(np.ones(3, bool))})
        )
    with pytest.raises(WireFormatError, match="changes no mask"):
        strategy.check(dataclasses.replace(honest, next_mask=full_mask(GRAPH)))

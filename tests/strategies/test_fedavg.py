"""FedAvg: what it asks of devices, and what it makes of their answers."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from edgefl.errors import MaskError
from edgefl.local_rules import Sgd, TrainingInput, rule_of
from edgefl.masks import full_mask, gather, leading_channels
from edgefl.strategies import (
    AggregationMethod,
    AggregationSettings,
    ClientUpdate,
    FedAvg,
    Model,
    Participant,
    PlannedTask,
    RoundContext,
    UpdateWeighting,
    strategy_of,
)
from edgefl.strategies.update_checks import movement
from edgefl.values import Budget, LocalWork
from examples.networks import cnn4
from tests.local_rules.quadratic import Quadratic, nth_batch
from tests.strategies.rounds import ROUND_CONTEXT, client_update, random_weights
from tests.values.samples import PROFILE, RESULT

GRAPH = cnn4()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))
WORK = LocalWork(epochs=2, batch_size=32)


def device(name: str = "pi-4", *, samples: int | None = None, **limits: Any) -> Participant:
    return Participant(name, PROFILE, Budget(**limits), samples)


def planned(participant: Participant, work: LocalWork = WORK, **settings: Any) -> PlannedTask | None:
    round_context = RoundContext(round=0, rounds=10, seed=1, work=work)
    return strategy_of("fedavg", settings).plan(MODEL, [participant], round_context).get(participant.device_id)


def needed(participant: Participant, work: LocalWork = WORK, **settings: Any) -> PlannedTask:
    found = planned(participant, work, **settings)
    assert found is not None
    return found


def test_a_device_without_limits_trains_the_whole_model() -> None:
    found = needed(device())
    assert found.mask.digest == full_mask(GRAPH).digest
    assert found.work == WORK


def test_the_settings_of_the_descent_reach_the_device() -> None:
    strategy = strategy_of("fedavg", {"learning_rate": 0.02, "proximal": 0.1, "clip_norm": 5, "schedule": "cosine"})
    assert isinstance(strategy, FedAvg)
    found = strategy.plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"]
    rule = rule_of(found.rule)
    assert isinstance(rule, Sgd)
    assert rule.descent == strategy.descent


def test_a_slow_device_gets_what_it_can_train_in_time() -> None:
    whole = needed(device()).predicted
    assert whole is not None
    assert whole.seconds is not None
    found = needed(device(round_seconds=whole.seconds / 3))
    assert found.predicted is not None
    assert found.predicted.seconds is not None
    assert whole.seconds / 6 < found.predicted.seconds <= whole.seconds / 3
    assert found.mask.digest == leading_channels(GRAPH, found.mask.widths["conv4"] / 256, multiple=8).digest


@pytest.mark.parametrize(
    "limits",
    [
        {"peak_bytes": 90 * 2**20},
        {"joules": 20.0},
        {"trainable_parameters": 100_000},
        {"kept_fraction": 0.25},
        {"round_seconds": 5.0, "peak_bytes": 90 * 2**20, "kept_fraction": 0.5},
    ],
)
def test_every_limit_binds(limits: dict[str, Any]) -> None:
    found = needed(device(**limits))
    cost = found.mask.cost
    assert cost.parameters < GRAPH.parameters
    assert found.predicted is not None
    use = Budget(
        trainable_parameters=cost.trained_parameters,
        kept_fraction=cost.parameters / GRAPH.parameters,
        round_seconds=found.predicted.seconds,
        peak_bytes=found.predicted.peak_bytes,
        joules=found.predicted.joules,
    )
    assert not Budget(**limits).exceeded_by(use)


def test_more_samples_mean_more_steps_and_a_narrower_part() -> None:
    known = [needed(device(samples=samples, round_seconds=8.0)).mask for samples in (200, 1000, 4000)]
    assert known[0].cost.parameters > known[1].cost.parameters > known[2].cost.parameters
    assumed = needed(device(round_seconds=8.0), assumed_samples=1000)
    assert assumed.mask.digest == known[1].digest
    few_steps = LocalWork(epochs=2, batch_size=32, most_steps=3)
    assert needed(device(samples=4000, round_seconds=8.0), few_steps).mask.digest == full_mask(GRAPH).digest


def test_nothing_is_assumed_of_a_device_that_told_its_samples_not_even_of_none() -> None:
    for told in (0, 1, 7, 4000):
        one, other = (needed(device(samples=told), assumed_samples=assumed) for assumed in (1, 10**9))
        assert one.predicted == other.predicted
    assert needed(device(samples=0)).predicted == needed(device(samples=1)).predicted


def test_steps_are_counted_as_the_device_counts_them() -> None:
    seconds = {}
    for samples in (10, 32, 33, 34, 64):
        predicted = needed(device(samples=samples), LocalWork(epochs=3, batch_size=32)).predicted
        assert predicted is not None
        seconds[samples] = predicted.seconds
    # A last batch of one sample is left out; one of two is not. A small data set is one small batch.
    assert seconds[33] == seconds[32]
    assert seconds[34] == seconds[64] == pytest.approx(2 * (seconds[32] or 0))
    assert (seconds[10] or 0) < (seconds[32] or 0)


def test_devices_that_can_train_nothing_are_left_out() -> None:
    few = [device("a", peak_bytes=2**20), device("b"), device("c", round_seconds=0.001)]
    assert set(FedAvg().plan(MODEL, few, ROUND_CONTEXT)) == {"b"}
    assert planned(device(round_seconds=1.0), width="full") is None
    assert needed(device(round_seconds=100.0), width="full").mask.digest == full_mask(GRAPH).digest
    assert planned(device(weight_density=0.5)) is None


def test_equal_devices_share_one_mask() -> None:
    many = [device(f"d{n}", round_seconds=5.0 + n % 2) for n in range(6)]
    planned_tasks = FedAvg().plan(MODEL, many, ROUND_CONTEXT)
    assert len({id(found.mask) for found in planned_tasks.values()}) == 2


def test_a_plan_is_the_same_when_it_is_asked_for_again() -> None:
    many = [device(f"d{n}", round_seconds=2.0 + n) for n in range(4)]
    plans = [FedAvg().plan(MODEL, many, ROUND_CONTEXT) for _ in range(2)]
    assert [o.mask.digest for o in plans[0].values()] == [o.mask.digest for o in plans[1].values()]


def test_weights_that_are_not_the_models_are_refused() -> None:
    weights = dict(MODEL.weights)
    with pytest.raises(MaskError, match=r"'head.weight' is missing"):
        FedAvg().begin(GRAPH, {name: array for name, array in weights.items() if name != "head.weight"})
    with pytest.raises(MaskError, match="no tensor 'tail', but the weights do"):
        FedAvg().begin(GRAPH, {**weights, "tail": np.zeros(1)})
    with pytest.raises(MaskError, match=r"'head.weight' is of dtype float64, but the model needs float32"):
        FedAvg().begin(GRAPH, {**weights, "head.weight": weights["head.weight"].astype(np.float64)})
    with pytest.raises(MaskError, match=r"'head.weight' has shape"):
        FedAvg().begin(GRAPH, {**weights, "head.weight": weights["head.weight"].T})


def moved(value: float, *, samples: int = 10, trust: float = 1.0) -> ClientUpdate:
    new = {name: array + np.float32(value) for name, array in MODEL.weights.items()}
    return client_update(full_mask(GRAPH), MODEL.weights, new, samples=samples, trust=trust)


def change(strategy: FedAvg, made: list[ClientUpdate]) -> float:
    """How far all weights moved, which all of them do alike."""
    found = strategy.combine(MODEL, made, ROUND_CONTEXT)
    differences = np.concatenate([(found.weights[n] - MODEL.weights[n]).ravel() for n in MODEL.weights])
    assert np.ptp(differences) < 1e-4
    return float(differences.mean())


def test_updates_weigh_by_samples_and_trust_or_alike() -> None:
    made = [moved(1, samples=30), moved(5, samples=10), moved(9, samples=40, trust=0.25)]
    assert change(FedAvg(), made) == pytest.approx((30 * 1 + 10 * 5 + 10 * 9) / 50, rel=1e-5)
    alike = FedAvg(averaging=AggregationSettings(weighing=UpdateWeighting.EQUAL))
    assert change(alike, made) == pytest.approx((1 + 5 + 0.25 * 9) / 2.25, rel=1e-5)
    assert change(alike, [moved(1), moved(5, samples=0)]) == pytest.approx(1, rel=1e-5)


def test_a_change_that_is_too_large_is_scaled_down_and_others_are_not() -> None:
    one = movement(moved(1))
    clipped = FedAvg(averaging=AggregationSettings(average=AggregationMethod.CLIPPED, clip_update_norm=2 * one))
    assert change(clipped, [moved(1), moved(3000)]) == pytest.approx((1 + 2) / 2, rel=1e-4)
    assert change(clipped, [moved(1), moved(2)]) == pytest.approx(1.5, rel=1e-4)


@pytest.mark.parametrize(("average", "expected"), [(AggregationMethod.MEDIAN, 2), (AggregationMethod.TRIMMED, 3)])
def test_medians_and_trimmed_means_are_chosen_by_name(average: AggregationMethod, expected: float) -> None:
    strategy = FedAvg(averaging=AggregationSettings(average=average, trim=0.2))
    made = [moved(v, samples=s) for v, s in ((1, 1), (2, 1), (1, 1), (6, 1), (800, 999))]
    assert change(strategy, made) == pytest.approx(expected, rel=1e-4)


def test_a_model_keeps_its_state_and_graph() -> None:
    model = dataclasses.replace(MODEL, state={"kept": np.arange(3)})
    found = FedAvg().combine(model, [moved(1)], ROUND_CONTEXT)
    assert found.graph is GRAPH
    assert found.state is model.state


@pytest.mark.parametrize("settings", [{}, {"average": "median"}, {"overlap": "participants"}])
def test_rounds_of_unequal_devices_bring_the_model_to_its_goal(settings: dict[str, Any]) -> None:
    """The whole way: plan, train by the rule that was sent, check, combine; the loss of every coordinate falls."""
    strategy = strategy_of("fedavg", {"learning_rate": 0.3, **settings})
    model = strategy.begin(GRAPH, MODEL.weights)
    devices = [device("a"), device("b", round_seconds=4.0), device("c", round_seconds=1.0)]
    losses = []
    for number in range(4):
        round_context = RoundContext(number, 4, 1, WORK)
        made = []
        for name, asked in strategy.plan(model, devices, round_context).items():
            rule, part = rule_of(asked.rule), TrainingInput(asked.mask, gather(asked.mask, model.weights), seed=1)
            state = rule.begin(part)
            rule.step(part, state, nth_batch(0), towards_one)
            update = rule.finish(part, state, nth_batch(1), towards_one)
            result = dataclasses.replace(RESULT, device_id=name)
            made.append(ClientUpdate(name, asked.mask, asked.rule, 1, model.weights, result, update.tensors))
            strategy.check(made[-1])
        model = strategy.combine(model, made, round_context)
        losses.append(sum(float(np.square(array - 1).sum()) for array in model.weights.values()))
    assert losses == sorted(losses, reverse=True)
    # Everybody held the first channels: with a rate of 0.3 they went 0.7 of the way four times.
    first = model.weights["conv2.weight"][0, 0] - 1
    assert np.allclose(first, 0.7**4 * (MODEL.weights["conv2.weight"][0, 0] - 1), atol=1e-5)


def towards_one(weights: Any, batch: Any) -> Any:
    """A loss that is least where every weight is 1."""
    result = Quadratic(GRAPH)(weights, batch)
    return dataclasses.replace(result, gradients={name: weights[name] - 1 for name in result.gradients})

"""Per-FedAvg: the rule that devices get, what they make together, and how they adapt it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgefl.errors import SchemaError
from edgefl.local_rules import Descent, FineTune, Maml, StepResult, rule_of
from edgefl.local_rules.maml import MetaGradient
from edgefl.masks import full_mask
from edgefl.strategies import FedAvg, PerFedAvg, RoundContext, strategy_of
from edgefl.values import LocalWork
from tests.strategies.rounds import ROUND_CONTEXT
from tests.strategies.test_equations_by_hand import W, constant, row
from tests.strategies.test_fedavg import MODEL, WORK, device
from tests.strategies.wired import wired

PERSONAL: list[tuple[str, dict[str, Any]]] = [
    ("fedavg", {}),
    ("per_fedavg", {"variant": "first_order"}),
    ("per_fedavg", {}),
]


def bowl(steepness: float, bottom: float) -> Any:
    """The loss steepness / 2 * (w - bottom)^2."""

    def run(weights: Any, batch: Any) -> Any:
        gradient = np.float32(steepness) * (weights[W] - np.float32(bottom))
        return StepResult(0.0, np.ones(1, np.bool_), {W: gradient})

    return run


def test_two_devices_meet_where_one_step_is_best() -> None:
    """Losses (w - 0)^2 / 2 and 3 (w - 4)^2 / 2, alpha 0.2, beta 0.5, from w = 2, one update each.

    First: w' = 2 - 0.2 * 2 = 1.6, g = 1.6, (1 - 0.2) g = 1.28, w = 2 - 0.64 = 1.36.
    Second: w' = 2 + 0.2 * 6 = 3.2, g = -2.4, (1 - 0.6) g = -0.96, w = 2 + 0.48 = 2.48.
    The mean is 1.92, whatever their samples. After many rounds it is where 0.8^2 w + 3 * 0.4^2 (w - 4) = 0.
    """
    strategy, graph = strategy_of("per_fedavg", {"learning_rate": 0.5, "inner_rate": 0.2, "difference": 0.1}), row(1)
    model = strategy.begin(graph, constant(graph, 2))
    found = []
    for number in range(30):
        (planned,) = strategy.plan(model, [device()], RoundContext(number, 30, 1, WORK)).values()
        made = [
            wired(planned, model.weights, steps=3, samples=samples, run=run).client_update
            for run, samples in ((bowl(1, 0), 30), (bowl(3, 4), 10))
        ]
        for one in made:
            strategy.check(one)
        model = strategy.combine(model, made, ROUND_CONTEXT)
        found.append(float(model.weights[W][0, 0]))
    assert found[0] == pytest.approx(1.92, rel=1e-5)
    assert found[-1] == pytest.approx(4 * 0.48 / (0.64 + 0.48), rel=1e-4)


def test_the_settings_reach_the_device() -> None:
    said: dict[str, Any] = {"variant": "first_order", "inner_rate": 0.05, "difference": 0.01, "learning_rate": 0.3}
    planned = strategy_of("per_fedavg", said).plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"]
    first_order = MetaGradient.FIRST_ORDER
    assert rule_of(planned.rule) == Maml(
        descent=Descent(learning_rate=0.3), variant=first_order, inner_rate=0.05, difference=0.01
    )


STRATEGIES = (FedAvg(), PerFedAvg(variant=MetaGradient.FIRST_ORDER), PerFedAvg())


@pytest.mark.parametrize(("batches", "runs"), [(6, (6, 6, 8)), (7, (7, 8, 12)), (1, (1, 2, 4))])
def test_an_update_is_planned_with_its_runs_of_the_engine(batches: int, runs: tuple[int, int, int]) -> None:
    """FO takes 2 runs in 2 steps, HF 4 in 3; an update that a round ends within is completed."""
    round_context = replace(ROUND_CONTEXT, work=LocalWork(epochs=1, batch_size=10))
    found = [one.plan(MODEL, [device(samples=10 * batches)], round_context)["pi-4"].predicted for one in STRATEGIES]
    plain, *_ = found
    assert plain is not None
    for one, times in zip(found, runs, strict=True):
        assert one is not None
        assert one.seconds == pytest.approx((plain.seconds or 0) * times / runs[0])
        assert one.joules == pytest.approx((plain.joules or 0) * times / runs[0])


def test_an_update_is_planned_with_its_copies_of_the_weights() -> None:
    """FO keeps the adapted weights; HF, as it runs beside the model, g, the direction and the weights beside it."""
    peaks = []
    for one in STRATEGIES:
        predicted = one.plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"].predicted
        assert predicted is not None
        peaks.append(predicted.peak_bytes or 0)
    plain, first, free = peaks
    one_more = full_mask(MODEL.graph).cost.parameter_bytes
    assert (first - plain, free - plain) == (one_more, 3 * one_more)


def test_adapting_at_the_end_is_planned_as_plain_descent() -> None:
    plain, first, free = (
        strategy_of(name, {"fine_tune_epochs": 1, **said}).personalise(MODEL, [device()], ROUND_CONTEXT)["pi-4"]
        for name, said in PERSONAL
    )
    assert plain.predicted == first.predicted == free.predicted


@pytest.mark.parametrize(("said", "rate"), [({}, 0.03), ({"fine_tune_rate": 0.2}, 0.2)])
def test_devices_adapt_the_last_model_at_the_rate_that_it_was_learned_for(said: dict[str, float], rate: float) -> None:
    strategy = strategy_of("per_fedavg", {"inner_rate": 0.03, "learning_rate": 0.5, **said})
    planned = strategy.personalise(MODEL, [device()], RoundContext(10, 10, 1, WORK))["pi-4"]
    rule = rule_of(planned.rule)
    assert isinstance(rule, FineTune)
    assert (rule.descent.learning_rate, planned.work.epochs) == (rate, 1)


def test_what_cannot_be_combined_is_refused_with_the_reason() -> None:
    with pytest.raises(SchemaError, match="'masked_noise', but Per-FedAvg's devices send new values"):
        strategy_of("per_fedavg", {"sent": "masked_noise"})
    strategy_of("per_fedavg", {"frozen": "head", "width": "levels"})

"""FedNova: the paper's sums by hand, a slow loop, and federated averaging where all devices take equal steps."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import SchemaError
from edgefl.local_rules import Descent, TrainingInput, rule_of
from edgefl.local_rules.descent import Schedule, ScheduleUnit
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph, TensorRole
from edgefl.strategies import ClientUpdate, FedAvg, FedNova, FedProx, Model, RoundContext, strategy_of
from edgefl.strategies.fednova import plausible_steps, reach
from edgefl.values import LocalWork
from tests.local_rules.quadratic import Quadratic, nth_batch, part_of
from tests.random_models import masks
from tests.strategies.rounds import changes_of, client_update, counted, random_weights
from tests.values.samples import RESULT

WORK = LocalWork(epochs=3, batch_size=10)
ROUND_CONTEXT = RoundContext(round=0, rounds=10, seed=1, work=WORK)


def small() -> ModelGraph:
    build = GraphBuilder("small", channels=2)
    x = build.norm("norm", build.linear("a", build.input, 4), statistics=True)
    build.linear("head", x, 3, head=True)
    return build.finish()


GRAPH = small()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))


def made(mask: Mask, samples: int, steps: int, seed: int) -> ClientUpdate:
    """What a device sends; round 0, as the moment says."""
    change = random_weights(GRAPH, seed)
    new = {name: array + change[name] for name, array in MODEL.weights.items()}
    found = client_update(mask, MODEL.weights, new, samples=samples, device=f"d{seed}")
    return dataclasses.replace(found, result=dataclasses.replace(found.result, steps=steps, round=0))


def part(steps: int, **others: Any) -> TrainingInput:
    return dataclasses.replace(part_of(full_mask(GRAPH), 1), steps=steps, **others)


@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_the_reach_is_the_papers_norm_of_a(steps: int) -> None:
    rate, rho, mu = 0.1, 0.9, 0.5
    assert reach(Descent(learning_rate=rate), part(steps)) == pytest.approx(rate * steps)
    momentum = reach(Descent(learning_rate=rate, momentum=rho), part(steps))
    assert momentum == pytest.approx(rate * (steps - rho * (1 - rho**steps) / (1 - rho)) / (1 - rho))
    proximal = reach(Descent(learning_rate=rate, proximal=mu), part(steps))
    assert proximal == pytest.approx(rate * (1 - (1 - rate * mu) ** steps) / (rate * mu))


def test_the_reach_of_momentum_by_hand() -> None:
    # v = 1, 1.5, 1.75 with a momentum of a half: three steps go 4.25 rates, and with Nesterov half of each v further.
    assert reach(Descent(learning_rate=1.0, momentum=0.5), part(3)) == pytest.approx(4.25)
    nesterov = Descent(learning_rate=1.0, momentum=0.5, nesterov=True)
    assert reach(nesterov, part(3)) == pytest.approx(3 + 0.5 * 4.25)


@pytest.mark.parametrize(
    "descent",
    [
        Descent(learning_rate=0.05),
        Descent(learning_rate=0.05, momentum=0.9, nesterov=True, proximal=0.3),
        Descent(learning_rate=0.05, momentum=0.5, schedule=Schedule.COSINE, schedule_by=ScheduleUnit.STEP),
        Descent(learning_rate=0.05, schedule=Schedule.STEP_DECAY, decay_at="0.1", decay_factor=0.5),
    ],
)
def test_the_reach_is_how_far_the_rule_really_goes(descent: Descent) -> None:
    """Gradient descent with a gradient of 1 everywhere moves every weight by the reach."""
    strategy = FedNova(descent=descent)
    given = part(9, round=2, rounds=10)

    def ones(weights: Any, batch: Any) -> Any:
        result = Quadratic(GRAPH)(weights, batch)
        return dataclasses.replace(result, gradients={n: np.ones_like(g) for n, g in result.gradients.items()})

    rule = rule_of(strategy.uplink.rule)
    state = rule.begin(given)
    for step in range(9):
        rule.step(given, state, nth_batch(step), ones)
    assert np.allclose(given.weights["a.weight"] - state.weights["a.weight"], reach(descent, given), atol=1e-5)


def slow(model: Model, found: list[ClientUpdate], norms: list[float]) -> dict[str, Any]:
    """The sums of the paper, coordinate by coordinate."""
    weights = [c.result.samples for c in counted(found)]
    most = 4 * float(np.median(norms))
    effective = sum(w * min(a, most) for w, a in zip(weights, norms, strict=True)) / sum(weights)
    exact = {}
    for name, now in model.weights.items():
        statistic = model.graph.tensor[name].role is TensorRole.STATISTIC
        exact[name] = now.astype(np.float64)
        changes = [changes_of(model, c, name) for c in found]
        for place in np.ndindex(now.shape):
            holders = [
                (w, change[place] * (1 if statistic else effective / a))
                for w, a, change in zip(weights, norms, changes, strict=True)
                if place in change
            ]
            if holders:
                exact[name][place] += sum(w * change for w, change in holders) / sum(w for w, _ in holders)
    return exact


@settings(deadline=None)
@given(st.data())
def test_changes_are_normalised_as_in_a_slow_loop(data: st.DataObject) -> None:
    momentum = data.draw(st.sampled_from([0.0, 0.5]))
    found, norms = [], []
    for number in range(data.draw(st.integers(1, 4))):
        samples = data.draw(st.integers(1, 80))
        steps = WORK.epochs * max(1, -(-samples // 10) if data.draw(st.booleans()) else samples // 10)
        found.append(made(data.draw(masks(GRAPH)), samples, steps, 100 + number))
        pulls = [sum(momentum**age for age in range(step + 1)) for step in range(steps)]
        norms.append(sum(pulls))
    strategy = FedNova(descent=Descent(momentum=momentum))
    combined = strategy.combine(MODEL, found, ROUND_CONTEXT).weights
    for name, exact in slow(MODEL, found, norms).items():
        assert np.allclose(combined[name], exact, atol=1e-4), name


@settings(deadline=None)
@given(st.data())
def test_equal_steps_give_federated_averaging(data: st.DataObject) -> None:
    descent = data.draw(st.sampled_from([Descent(), Descent(momentum=0.9), Descent(proximal=0.1)]))
    found = [
        made(data.draw(masks(GRAPH)), data.draw(st.integers(31, 39)), 12, 100 + number)
        for number in range(data.draw(st.integers(1, 4)))
    ]
    nova = FedNova(descent=descent).combine(MODEL, found, ROUND_CONTEXT).weights
    plain = FedAvg(descent=descent).combine(MODEL, found, ROUND_CONTEXT).weights
    assert all(np.allclose(nova[name], plain[name], atol=1e-5) for name in plain)


def test_a_device_of_many_steps_counts_for_its_samples_alone() -> None:
    # Everybody moves by 1 a step: 3 steps and 9 steps, 10 and 30 samples. tau_eff = (10 * 3 + 30 * 9) / 40 = 7.5.
    few, many = (
        dataclasses.replace(
            client_update(full_mask(GRAPH), MODEL.weights, moved(steps), samples=samples),
            result=dataclasses.replace(RESULT, samples=samples, steps=steps, round=0),
        )
        for samples, steps in ((10, 3), (30, 9))
    )
    combined = FedNova().combine(MODEL, [few, many], ROUND_CONTEXT).weights
    assert np.allclose(combined["a.weight"] - MODEL.weights["a.weight"], 7.5, atol=1e-5)
    # Statistics are means of values: (10 * 3 + 30 * 9) / 40 as well, and (3 + 9) / 2 where all devices count the same.
    assert np.allclose(combined["norm.running_var"] - MODEL.weights["norm.running_var"], 7.5, atol=1e-5)
    alike = strategy_of("fednova", {"weighing": "equal"}).combine(MODEL, [few, many], ROUND_CONTEXT).weights
    assert np.allclose(alike["a.weight"] - MODEL.weights["a.weight"], 6, atol=1e-5)


def moved(value: float) -> dict[str, Any]:
    return {name: array + np.float32(value) for name, array in MODEL.weights.items()}


def test_what_nobody_holds_keeps_its_value_and_no_update_changes_nothing() -> None:
    mask = Mask.of(GRAPH, trained=["a"], kept={"a": [0, 2]})
    combined = FedNova().combine(MODEL, [made(mask, 20, 6, 1)], ROUND_CONTEXT).weights
    assert np.array_equal(combined["head.weight"], MODEL.weights["head.weight"])
    assert np.array_equal(combined["a.weight"][[1, 3]], MODEL.weights["a.weight"][[1, 3]])
    assert not np.array_equal(combined["a.weight"][[0, 2]], MODEL.weights["a.weight"][[0, 2]])
    for few in ([], [made(mask, 0, 3, 1)]):
        found = FedNova().combine(MODEL, few, ROUND_CONTEXT).weights
        assert all(np.array_equal(found[name], array) for name, array in MODEL.weights.items())


@pytest.mark.parametrize(
    ("samples", "said", "believed"),
    [
        (95, 30, 30),  # 9 batches and a rest, 3 times
        (95, 27, 27),  # without the rest
        (95, 12, 12),  # not all of the passes that it was asked for
        (95, 1, 9),  # one step would make its change count 9 times
        (95, 10**15, 30),
        (4, 0, 1),
        (10**15, 10**15, 100_000),  # and does not take for ever
    ],
)
def test_steps_are_believed_as_far_as_samples_allow(samples: int, said: int, believed: int) -> None:
    assert plausible_steps(dataclasses.replace(RESULT, samples=samples, steps=said), WORK) == believed


def test_the_most_steps_of_the_work_are_the_most() -> None:
    work = LocalWork(epochs=3, batch_size=10, most_steps=5)
    assert plausible_steps(dataclasses.replace(RESULT, samples=95, steps=27), work) == 5
    assert plausible_steps(dataclasses.replace(RESULT, samples=4, steps=27), work) == 3


@pytest.mark.parametrize("average", ["mean", "median"])
def test_a_device_that_claims_very_many_steps_moves_the_model_no_further(average: str) -> None:
    strategy = strategy_of("fednova", {"average": average, "weighing": "equal"})
    honest = [made(full_mask(GRAPH), 40, 12, number) for number in range(9)]
    idle = client_update(full_mask(GRAPH), MODEL.weights, MODEL.weights, samples=40_000)
    liar = dataclasses.replace(idle, result=dataclasses.replace(RESULT, samples=40_000, steps=12_000, round=0))
    alone, together = (strategy.combine(MODEL, found, ROUND_CONTEXT).weights for found in (honest, [*honest, liar]))
    moved_alone, moved_together = (
        np.abs(now["a.weight"] - MODEL.weights["a.weight"]).max() for now in (alone, together)
    )
    assert moved_together < 1.5 * moved_alone


def test_a_proximal_term_that_overshoots_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"'settings.proximal' is 10, which times the learning rate is 1 or more"):
        strategy_of("fednova", {"learning_rate": 0.1, "proximal": 10})


def test_a_rate_of_zero_divides_by_nothing() -> None:
    still = Descent(schedule=Schedule.STEP_DECAY, decay_at="0", decay_factor=0.0)
    mask = full_mask(GRAPH)
    found = FedNova(descent=still).combine(MODEL, [made(mask, 20, 6, 1)], ROUND_CONTEXT).weights
    assert all(np.isfinite(array).all() for array in found.values())


def test_fedprox_is_federated_averaging_with_a_proximal_term() -> None:
    prox, plain = FedProx(), FedAvg(descent=Descent(proximal=0.01))
    assert prox.uplink == plain.uplink
    found = [made(full_mask(GRAPH), 20, 6, 1), made(full_mask(GRAPH), 50, 15, 2)]
    one, other = (strategy.combine(MODEL, found, ROUND_CONTEXT).weights for strategy in (prox, plain))
    assert all(np.array_equal(one[name], other[name]) for name in one)

"""FedMRN: its mean by the paper's formula and noise by the specification, and its mixtures with widths and freezing."""

import dataclasses
import hashlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from edgefl.errors import SchemaError
from edgefl.local_rules import Batch, MaskedNoise, StepResult, rule_of
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.masked_noise import MaskKind
from edgefl.masks import Mask, Weights, full_mask, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import ClientUpdate, FedMRN, Model, Participant, RoundContext, UplinkKind, strategy_of
from edgefl.values import Budget, LocalWork
from edgefl.wire import Bits
from examples.networks import cnn4
from tests.local_rules.quadratic import Quadratic
from tests.masks.test_slicing import held_coordinates, kept_coordinates
from tests.strategies.rounds import ROUND_CONTEXT, random_weights
from tests.strategies.wired import order_of, wired
from tests.values.samples import PROFILE

GRAPH = cnn4()
BASE = random_weights(GRAPH, 0, 0.1)
WORK = LocalWork(epochs=2, batch_size=32)
_WORD = 2**64


# The noise once more, one number at a time, from the words of `edgefl.noise`


def word_of(seed: int, index: int) -> int:
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) % _WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _WORD
    return z ^ (z >> 31)


def seed_for(seed: int, *parts: str) -> int:
    for part in parts:
        seed = word_of(seed, int.from_bytes(hashlib.sha256(part.encode()).digest()[:8], "little"))
    return seed


def noise_at(seed: int, tensor: str, place: int, bound: float, distribution: str) -> float:
    word = word_of(seed_for(seed, "noise", tensor), place)
    number = float(np.float32(bound))
    match distribution:
        case "uniform":
            number *= ((word >> 40) - 2**23) * 2.0**-23
        case "gaussian":
            number *= statistics.NormalDist().inv_cdf(((word >> 32) + 0.5) * 2.0**-32)
        case "bernoulli":
            number *= 1 if word >> 63 else -1
    return 1e-8 if abs(number) < 1e-8 else number


def slow_fedmrn(
    model: Model, made: Sequence[ClientUpdate], kind: MaskKind, bound: float, distribution: str
) -> dict[str, Any]:
    """Eq. 5, over the holders of each coordinate: w + sum of p_k G(s_k) m_k / sum of p_k, in double precision."""
    exact = {}
    for name in weight_tensors(full_mask(model.graph)):
        sums, totals = np.zeros(model.weights[name].shape), np.zeros(model.weights[name].shape)
        for one in made:
            payload, share = one.tensors.get(name), one.result.samples * one.trust
            if not isinstance(payload, Bits):
                continue
            held, bits = set(held_coordinates(one.mask, name)), payload.to_bool().ravel()
            for place, coordinate in enumerate(kept_coordinates(one.mask, name)):
                if coordinate in held:
                    m = int(bits[place]) if kind is MaskKind.BINARY else 2 * int(bits[place]) - 1
                    sums[coordinate] += share * noise_at(one.seed, name, place, bound, distribution) * m
                    totals[coordinate] += share
        exact[name] = model.weights[name] + sums / np.where(totals == 0, 1, totals)
    return exact


def small() -> ModelGraph:
    build = GraphBuilder("small", channels=2, positions=16)
    x = build.norm("norm1", build.conv("conv1", build.input, 6, kernel=3, positions=16), statistics=True)
    x = build.conv("conv2", x, 4, kernel=3, positions=16, bias=True)
    build.linear("head", build.flatten(build.pool(x, positions=4)), 3, head=True)
    return build.finish()


@pytest.mark.parametrize(("kind", "bound"), [(MaskKind.BINARY, 0.01), (MaskKind.SIGNED, 0.005)])
@pytest.mark.parametrize("distribution", ["uniform", "gaussian", "bernoulli"])
def test_the_next_model_is_equation_five_by_a_slow_loop(kind: MaskKind, bound: float, distribution: str) -> None:
    graph = small()
    held = np.arange(4 * 6 * 9).reshape(4, 6, 3, 3) % 3 > 0
    masks = [
        full_mask(graph),
        leading_channels(graph, 0.5),
        Mask.of(graph, kept={"conv1": [0, 3, 4]}),
        Mask.of(graph, held={"conv2.weight": held}),
        Mask.of(graph, trained=["conv2", "head"]),
    ]
    strategy = strategy_of("fedmrn", {"noise_masks": kind.value, "noise_distribution": distribution})
    assert isinstance(strategy, FedMRN)
    model = strategy.begin(graph, random_weights(graph, 1))
    made = [
        wired(order_of(mask, strategy.uplink.rule), model.weights, seed=100 + n, samples=5 + n).client_update
        for n, mask in enumerate(masks)
    ]
    made[1] = dataclasses.replace(made[1], trust=0.5)
    for one in made:
        strategy.check(one)
    found = strategy.combine(model, made, ROUND_CONTEXT).weights
    for name, exact in slow_fedmrn(model, made, kind, bound, distribution).items():
        rounding = 2e-7 * (np.abs(exact) + 4 * bound)
        assert np.all(np.abs(found[name] - exact) <= rounding), name
        assert np.abs(found[name] - model.weights[name]).max() > bound / 10


def test_defaults_are_the_papers() -> None:
    rule = rule_of(FedMRN().uplink.rule)
    assert rule == MaskedNoise()
    assert isinstance(rule, MaskedNoise)
    assert (rule.noise_bound, rule.descent.learning_rate, rule.descent.momentum) == (0.01, 0.1, 0.0)
    signed = strategy_of("fedmrn", {"noise_masks": "signed"})
    assert isinstance(signed, FedMRN)
    rule = rule_of(signed.uplink.rule)
    assert isinstance(rule, MaskedNoise)
    assert (rule.masks, rule.noise_bound) == (MaskKind.SIGNED, 0.005)
    assert FedMRN().uplinks.sent is UplinkKind.MASKED_NOISE


def test_plans_with_uniform_noise_are_as_they_were_before_there_was_another() -> None:
    def settings(**given: Any) -> Any:
        strategy = strategy_of("fedmrn", given)
        assert isinstance(strategy, FedMRN)
        return strategy.uplink.rule.settings

    assert "distribution" not in settings()
    assert settings(noise_distribution="uniform") == settings()
    assert settings(noise_distribution="bernoulli") == {**settings(), "distribution": "bernoulli"}


def test_another_uplink_is_refused_with_the_reason() -> None:
    with pytest.raises(SchemaError, match=r"'settings.sent' is 'eden', but fedmrn is federated averaging that sends"):
        strategy_of("fedmrn", {"sent": "eden"})
    assert strategy_of("fedmrn", {"sent": "masked_noise", "noise_bound": 0.02})


def devices() -> list[Participant]:
    limits: Mapping[str, dict[str, Any]] = {"a": {}, "b": {"kept_fraction": 0.4}, "c": {"kept_fraction": 0.1}}
    return [Participant(name, PROFILE, Budget(**limit), 320) for name, limit in limits.items()]


@pytest.mark.parametrize("placement", ["leading", "rolling", "random"])
@pytest.mark.parametrize("frozen", ["none", "head"])
def test_bits_go_with_parts_of_any_width_and_with_frozen_layers(placement: str, frozen: str) -> None:
    """FedMRN's uplink, HeteroFL's or another's channels and PerFedMask's frozen head in one round."""
    strategy = strategy_of("fedmrn", {"placement": placement, "frozen": frozen})
    model = strategy.begin(GRAPH, BASE)
    round_context = RoundContext(round=3, rounds=10, seed=1, work=WORK)
    planned_tasks = strategy.plan(model, devices(), round_context)
    assert len({planned.mask.cost.parameters for planned in planned_tasks.values()}) == 3
    made = []
    for number, (name, planned) in enumerate(planned_tasks.items()):
        found = wired(planned, model.weights, seed=number, device=name)
        strategy.check(found.client_update)
        assert ("head.weight" in found.client_update.tensors) == (frozen == "none")
        assert strategy.movement(found.client_update) > 0
        made.append(found)
    after = strategy.combine(model, [one.client_update for one in made], round_context)
    assert np.array_equal(after.weights["head.weight"], BASE["head.weight"]) == (frozen == "head")
    for name in ("conv1.weight", "conv3.weight"):
        mean, holders = np.zeros(GRAPH.tensor[name].shape), np.zeros(GRAPH.tensor[name].shape)
        for one in made:  # all have as many samples
            mean[one.part.mask.index(name)] += one.update.weights[name] - one.part.weights[name]
            holders[one.part.mask.index(name)] += 1
        assert np.allclose(after.weights[name] - BASE[name], mean / np.maximum(holders, 1), atol=1e-6)
        assert holders.max() > 1


@pytest.mark.parametrize("settings", [{}, {"noise_masks": "signed"}, {"average": "median"}, {"frozen": "head"}])
def test_rounds_bring_the_model_to_its_goal(settings: dict[str, Any]) -> None:
    """Every round moves each weight by at most the noise, so the goal is a few steps of noise away."""
    strategy = strategy_of("fedmrn", {"learning_rate": 0.3, **settings})
    model = strategy.begin(GRAPH, BASE)
    goal = {name: array + np.float32(0.02) for name, array in BASE.items()}

    def run(weights: Weights, batch: Batch) -> StepResult:
        result = Quadratic(GRAPH)(weights, batch)
        cut = {name: goal[name][tuple(slice(n) for n in weights[name].shape)] for name in result.gradients}
        return dataclasses.replace(result, gradients={name: weights[name] - cut[name] for name in cut})

    distances = []
    for number in range(6):
        round_context = RoundContext(number, 6, 1, WORK)
        planned_tasks = strategy.plan(model, devices(), round_context)
        made = [wired(o, model.weights, seed=31 * number + n, run=run) for n, o in enumerate(planned_tasks.values())]
        model = strategy.combine(model, [one.client_update for one in made], round_context)
        kernel = model.weights["conv2.weight"][:8, :8] - goal["conv2.weight"][:8, :8]  # what everybody holds
        distances.append(float(np.abs(kernel).mean()))
    assert distances[0] > 1.3 * distances[-1]
    assert distances[-1] < 0.012


def test_a_device_of_any_width_may_go_on_alone_at_the_end() -> None:
    strategy = strategy_of("fedmrn", {"fine_tune_epochs": 2})
    planned_tasks = strategy.personalise(strategy.begin(GRAPH, BASE), devices(), RoundContext(10, 10, 1, WORK))
    assert {planned.rule.name for planned in planned_tasks.values()} == {"fine_tune"}
    assert len(planned_tasks) == 3

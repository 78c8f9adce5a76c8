"""Examples of strategies' equations that were computed by hand, of those whose own files have none."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgefl.local_rules import StepResult
from edgefl.masks import full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import Participant, RoundContext, strategy_of
from edgefl.values import Budget
from edgefl.wire import Bits
from tests.strategies.rounds import ROUND_CONTEXT, client_update
from tests.strategies.simulated import device
from tests.strategies.wired import order_of, wired
from tests.values.samples import PROFILE

W = "head.weight"


def row(weights: int = 4) -> ModelGraph:
    build = GraphBuilder("row", channels=weights)
    build.linear("head", build.input, 1, bias=False, head=True)
    return build.finish()


def two_layers() -> ModelGraph:
    build = GraphBuilder("two", channels=1)
    build.linear("head", build.linear("body", build.input, 4, bias=False), 1, bias=False, head=True)
    return build.finish()


def constant(graph: ModelGraph, value: float) -> dict[str, Any]:
    return {tensor.name: np.full(tensor.shape, value, np.float32) for tensor in graph.tensors}


def sloped(slopes: list[float]) -> Any:
    """A loss of constant gradient."""

    def run(weights: Any, batch: Any) -> Any:
        return StepResult(0.0, np.ones(1, np.bool_), {W: np.array([slopes], np.float32)})

    return run


def test_fedprox_pulls_two_devices_back_and_averages_them() -> None:
    """Rate 0.1, mu 1, two steps from 1. A gradient of 1: 1 - 0.1 = 0.9, then 0.9 - 0.1 (1 + 0.9 - 1) = 0.81. A gradient
    of 2: 0.8, then 0.8 - 0.1 (2 + 0.8 - 1) = 0.62. With 30 and 10 samples: (30 * 0.81 + 10 * 0.62) / 40 = 0.7625."""
    strategy, graph = strategy_of("fedprox", {"learning_rate": 0.1, "proximal": 1.0}), row(1)
    model = strategy.begin(graph, constant(graph, 1))
    (planned,) = strategy.plan(model, [device()], ROUND_CONTEXT).values()
    made = [
        wired(planned, model.weights, steps=2, samples=samples, run=sloped([slope])).client_update
        for slope, samples in ((1.0, 30), (2.0, 10))
    ]
    assert strategy.combine(model, made, ROUND_CONTEXT).weights[W] == pytest.approx(0.7625)


def test_fedrolex_averages_a_window_that_begins_anew() -> None:
    """In round 3 a window of 2 of the 4 channels is {3, 0}. The whole model moves by 1 (10 samples), the window by 3
    (30 samples): channels 3 and 0 move by (10 * 1 + 30 * 3) / 40 = 2.5, the others by 1."""
    graph, when = two_layers(), RoundContext(3, 10, 1)
    strategy = strategy_of("fedrolex", {"levels": "1, 0.5"})
    model = strategy.begin(graph, constant(graph, 5))
    devices = [Participant("all", PROFILE, Budget()), Participant("half", PROFILE, Budget(trainable_parameters=4))]
    planned_tasks = strategy.plan(model, devices, when)
    made = [
        client_update(planned_tasks[name].mask, model.weights, constant(graph, 5 + step), samples=samples)
        for name, step, samples in (("all", 1, 10), ("half", 3, 30))
    ]
    found = strategy.combine(model, made, when).weights
    assert found["body.weight"].ravel().tolist() == [7.5, 6, 6, 7.5]
    assert found[W].ravel().tolist() == [7.5, 6, 6, 7.5]


def test_fedbabu_averages_the_body_and_leaves_the_head() -> None:
    """Two devices move the body by 1 (30 samples) and by 5 (10 samples): by 2. Nobody is asked for the head."""
    strategy, graph = strategy_of("fedbabu", {}), two_layers()
    model = strategy.begin(graph, constant(graph, 5))
    (planned,) = strategy.plan(model, [device()], ROUND_CONTEXT).values()
    made = [
        client_update(planned.mask, model.weights, constant(graph, 5 + step), samples=samples)
        for step, samples in ((1, 30), (5, 10))
    ]
    for one in made:
        strategy.check(one)
    found = strategy.combine(model, made, ROUND_CONTEXT).weights
    assert found["body.weight"].ravel().tolist() == [7] * 4
    assert found[W].ravel().tolist() == [5] * 4


NOISE = {1: [3330923, 3120521, -8084434, -6976034], 2: [-3054900, -2907607, -7485032, 8353060]}
"""The first noise of the seeds 1 and 2 for a tensor of this name, in units of 2^-23 of the bound."""


def test_fedmrn_adds_the_mean_of_two_devices_masked_noise() -> None:
    """Eq. 5 with 30 and 10 samples: the first takes noise 0, 2 and 3, the second 0 and 1."""
    strategy: Any = strategy_of("fedmrn", {"noise_bound": 1.0})
    graph = row()
    model = strategy.begin(graph, constant(graph, 1))
    planned = order_of(full_mask(graph), strategy.uplink.rule)
    made = []
    for seed, samples, bits in ((1, 30, [1, 0, 1, 1]), (2, 10, [1, 1, 0, 0])):
        one = wired(planned, model.weights, seed=seed, samples=samples).client_update
        made.append(replace(one, tensors={W: Bits.of(np.array([bits], np.bool_))}))
        strategy.check(made[-1])
    n, k = ([word / 2**23 for word in NOISE[seed]] for seed in (1, 2))
    expected = [1 + (30 * n[0] + 10 * k[0]) / 40, 1 + 10 * k[1] / 40, 1 + 30 * n[2] / 40, 1 + 30 * n[3] / 40]
    assert strategy.combine(model, made, ROUND_CONTEXT).weights[W][0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "updates", "expected"),
    [
        # The scales are 4 and 2. Seed 1 draws 0.64 and -0.64 for the last two entries, not below 2 / 4, and below 0:
        # (4, -4, -4, 4). Seed 2 draws 0.16 for the last, below 1 / 2: (2, 2, -2, 2).
        ("signsgd", [[4, -4, 2, 0], [2, 2, -2, 1]], [3.5, -2.5, -3.5, 3.5]),
        # Two of four entries: (3, 0, 2, 0) and (0, 0, 2, 4).
        ("topk", [[3, 1, 2, 0], [0, -1, 2, 4]], [2.25, 0, 2, 1]),
        # The scales are 4 and 2, and nothing is clipped. Seed 1 draws 0.7 for the third entry, not below 2 / 4:
        # (4, -4, 0, 0). Seed 2 draws 0.30 and 0.13 for the last two, below 1 / 2: (2, -2, 2, 2).
        ("terngrad", [[4, -4, 2, 0], [2, -2, 1, 1]], [3.5, -3.5, 0.5, 0.5]),
        # Rotated, and whatever the signs are, 3 and 1 are two of magnitude 2 and two of 1, all with the sign of the 3.
        # The scale is (2 + 1 + 2 + 1) / 4 = 1.5, and turned back (3, 0, 0, 0). The other comes back as it was.
        ("drive", [[3, 1, 0, 0], [0, 0, 0, -5]], [2.25, 0, 0, -1.25]),
        # The scale is (4 + 1 + 4 + 1) / (2 + 1 + 2 + 1) = 5/3, and turned back (10/3, 0, 0, 0).
        ("eden", [[3, 1, 0, 0], [0, 0, 0, -5]], [2.5, 0, 0, -1.25]),
        # Two of four entries, twice as large: with seed 1 the first two, (6, 2, 0, 0), with seed 2 (0, 0, 4, 8).
        ("random_subsampling", [[3, 1, 2, 0], [0, -1, 2, 4]], [4.5, 1.5, 1, 2]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_compressed_updates_of_two_devices(name: str, updates: list[list[float]], expected: list[float]) -> None:
    """One step of rate 1 down a constant gradient is the update; the devices have 30 and 10 samples."""
    strategy: Any = strategy_of(name, {"learning_rate": 1.0, "sent_share": 0.5})
    graph = row()
    model = strategy.begin(graph, constant(graph, 10))
    planned = order_of(full_mask(graph), strategy.uplink.rule)
    made = []
    for seed, samples, update in ((1, 30, updates[0]), (2, 10, updates[1])):
        run = sloped([-entry for entry in update])
        made.append(wired(planned, model.weights, seed=seed, samples=samples, steps=1, run=run).client_update)
        strategy.check(made[-1])
    found = strategy.combine(model, made, ROUND_CONTEXT).weights[W][0] - 10
    assert found == pytest.approx(expected, abs=1e-5)

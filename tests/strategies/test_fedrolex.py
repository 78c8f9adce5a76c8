"""FedRolex: windows against the paper's index sets, and a model that fits nobody."""

from typing import Any

import numpy as np

from edgefl.masks import Mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import FedRolex, Model, Participant, RoundContext, strategy_of
from edgefl.values import Budget
from tests.strategies.rounds import client_update, random_weights
from tests.values.samples import PROFILE


def two_layers() -> ModelGraph:
    build = GraphBuilder("two", channels=2)
    build.linear("head", build.linear("b", build.linear("a", build.input, 8), 4), 3, head=True)
    return build.finish()


GRAPH = two_layers()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))


def papers_window(number: int, capacity: float, width: int) -> set[int]:
    """Algorithm 1, line by line: from i on, and what would be beyond the last channel at the front."""
    i, size = number % width, int(capacity * width)
    if i + size <= width:
        return set(range(i, i + size))
    return set(range(i, width)) | set(range(i + size - width))


def plan(number: int, **settings: Any) -> dict[str, Mask]:
    limits = {"half": 31, "quarter": 15, "whole": None}
    devices = [Participant(n, PROFILE, Budget(trainable_parameters=most)) for n, most in limits.items()]
    strategy = strategy_of("fedrolex", {"levels": "1, 0.5, 0.25", **settings})
    planned_tasks = strategy.plan(MODEL, devices, RoundContext(number, 100, seed=number))
    return {name: planned.mask for name, planned in planned_tasks.items()}


def test_every_device_has_the_papers_window_in_every_round() -> None:
    for number in range(20):
        masks = plan(number)
        for device, capacity in (("whole", 1.0), ("half", 0.5), ("quarter", 0.25)):
            for group in ("a", "b"):
                expected = papers_window(number, capacity, GRAPH.group[group].width)
                assert set(masks[device].kept[group].tolist()) == expected, (number, device, group)


def test_smaller_windows_lie_within_larger_ones() -> None:
    for number in range(9):
        masks = plan(number)
        assert set(masks["quarter"].kept["a"].tolist()) <= set(masks["half"].kept["a"].tolist())


def test_every_channel_is_held_as_often_as_every_other() -> None:
    counts: Any = np.zeros(8)
    for number in range(8 * 3):
        for mask in plan(number).values():
            counts[mask.kept["a"]] += 1
    assert set(counts) == {3 * (8 + 4 + 2)}


def test_every_channel_of_a_model_that_fits_nobody_is_trained() -> None:
    """Every device moves what it holds to 1; in as many rounds as there are channels, everything gets there."""
    strategy = FedRolex()
    devices = [Participant("weak", PROFILE, Budget(trainable_parameters=31))]
    model = MODEL
    goal = {name: np.ones_like(array) for name, array in MODEL.weights.items()}
    for number in range(8):
        planned = strategy.plan(model, devices, RoundContext(number, 8, 1))["weak"]
        found = client_update(planned.mask, model.weights, goal)
        strategy.check(found)
        before = model
        model = strategy.combine(model, [found], RoundContext(number, 8, 1))
        outside = np.setdiff1d(np.arange(8), planned.mask.kept["a"])
        assert np.array_equal(model.weights["a.weight"][outside], before.weights["a.weight"][outside])
    assert np.allclose(model.weights["a.weight"], 1)
    assert np.allclose(model.weights["head.weight"], 1)
    # Windows of two groups roll together, so of the weights between them only those are trained that ever meet.
    met = np.zeros((4, 8), np.bool_)
    for number in range(8):
        met[np.ix_(sorted(papers_window(number, 0.5, 4)), sorted(papers_window(number, 0.5, 8)))] = True
    assert np.allclose(model.weights["b.weight"][met], 1)
    assert np.array_equal(model.weights["b.weight"][~met], MODEL.weights["b.weight"][~met])

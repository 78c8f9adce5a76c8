"""Which channels a device gets: levels by budget, and where they lie, against the papers' formulas by hand."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import SchemaError
from edgefl.masks import Mask, full_mask, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import Participant, RoundContext, strategy_of
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.widths import Placement, Width, Widths
from edgefl.values import Budget, LocalWork
from examples.networks import cnn4
from tests.random_models import model_graphs
from tests.values.samples import PROFILE

GRAPH = cnn4()


def small() -> ModelGraph:
    """Groups of 4 and 6 channels, the second in steps of 2."""
    build = GraphBuilder("small", channels=1)
    x = build.linear("a", build.input, 4)
    build.linear("head", build.norm("norm", build.linear("b", x, 6), groups=2), 3, head=True)
    return build.finish()


def rounds(graph: ModelGraph, **budgets: Budget) -> dict[str, RoundEstimate]:
    return {
        name: RoundEstimate(graph, Participant(name, PROFILE, budget), LocalWork(), 1000)
        for name, budget in budgets.items()
    }


def round_context(number: int, seed: int = 1) -> RoundContext:
    return RoundContext(number, 1000, seed)


def masks(widths: Widths, graph: ModelGraph, when: RoundContext, **budgets: Budget) -> dict[str, Mask]:
    return widths.masks(rounds(graph, **budgets), when)


def kept(mask: Mask) -> dict[str, list[int]]:
    return {name: mask.kept[name].tolist() for name in ("a", "b")}


LEVELS = Widths(width=Width.LEVELS)


def test_a_device_gets_the_widest_level_that_it_can_train() -> None:
    sizes = {level: leading_channels(GRAPH, level).cost.parameters for level in (1.0, 0.5, 0.25, 0.125, 0.0625)}
    for level, size in sizes.items():
        found = masks(LEVELS, GRAPH, round_context(0), d=Budget(trainable_parameters=size))["d"]
        assert found.digest == leading_channels(GRAPH, level).digest
    just_less = Budget(trainable_parameters=sizes[0.5] - 1)
    assert masks(LEVELS, GRAPH, round_context(0), d=just_less)["d"].digest == leading_channels(GRAPH, 0.25).digest
    assert masks(LEVELS, GRAPH, round_context(0), d=Budget(trainable_parameters=sizes[0.0625] - 1)) == {}


def test_a_level_stays_as_long_as_the_budget_does() -> None:
    limits = Budget(round_seconds=5.0)
    found = {masks(LEVELS, GRAPH, round_context(number, seed=number), d=limits)["d"].digest for number in range(5)}
    assert len(found) == 1


def test_own_levels_may_be_named() -> None:
    thirds = Widths(width=Width.LEVELS, levels="0.3333, 1, 0.6667")
    found = masks(thirds, small(), round_context(0), d=Budget(kept_fraction=0.7))["d"]
    assert kept(found) == {"a": [0, 1, 2], "b": [0, 1, 2, 3]}


def test_only_what_is_to_be_trained_must_fit() -> None:
    head = GRAPH.tensor["head.weight"].size
    limits = Budget(trainable_parameters=GRAPH.parameters - head)
    body = set(GRAPH.trainable_layers) - {"head"}
    for width in (Width.LEVELS, Width.FULL, Width.FIT):
        here = rounds(GRAPH, d=limits)
        found = Widths(width=width).masks(here, round_context(0), trained=body)["d"]
        assert found.cost.parameters == GRAPH.parameters
        assert found.trained == body
        narrower = Widths(width=width).masks(here, round_context(0))
        assert "d" not in narrower or narrower["d"].cost.parameters < GRAPH.parameters


def test_a_window_rolls_as_in_fedrolex() -> None:
    rolling = Widths(width=Width.LEVELS, levels="0.5", placement=Placement.ROLLING)
    found = [kept(masks(rolling, small(), round_context(number), d=Budget())["d"]) for number in range(7)]
    # Half of 4 channels is 2, half of 6 is 3, which the norm rounds to 4; i = round mod K.
    assert [each["a"] for each in found] == [[0, 1], [1, 2], [2, 3], [0, 3], [0, 1], [1, 2], [2, 3]]
    assert [each["b"] for each in found] == [
        [0, 1, 2, 3],
        [1, 2, 3, 4],
        [2, 3, 4, 5],
        [0, 3, 4, 5],
        [0, 1, 4, 5],
        [0, 1, 2, 5],
        [0, 1, 2, 3],
    ]


@given(model_graphs(), st.sampled_from([0.5, 0.25, 0.125]), st.integers(0, 50))
def test_in_as_many_rounds_as_channels_a_window_covers_each_equally(
    graph: ModelGraph, level: float, first: int
) -> None:
    rolling = Widths(width=Width.LEVELS, levels=str(level), placement=Placement.ROLLING)
    group = max(graph.groups, key=lambda group: group.width if group.fixed is None else 0)
    seen: Counter[int] = Counter()
    for number in range(first, first + group.width):
        mask = masks(rolling, graph, round_context(number), d=Budget())["d"]
        seen.update(mask.kept[group.name].tolist())
    assert set(seen) == set(range(group.width))
    assert len(set(seen.values())) == 1


@given(model_graphs(), st.sampled_from(Placement), st.sampled_from([1.0, 0.5, 0.3]), st.integers(0, 40))
def test_where_channels_lie_changes_neither_widths_nor_cost(
    graph: ModelGraph, placement: Placement, level: float, number: int
) -> None:
    chosen = Widths(width=Width.LEVELS, levels=str(level), placement=placement)
    found = masks(chosen, graph, round_context(number), d=Budget())["d"]
    leading = leading_channels(graph, level)
    assert found.widths == leading.widths
    assert found.cost == leading.cost
    assert all(found.widths[group.name] == group.width for group in graph.groups if group.fixed)


def test_random_channels_are_the_devices_own_and_the_same_on_every_worker() -> None:
    chosen = Widths(width=Width.LEVELS, placement=Placement.RANDOM)
    half, quarter = Budget(kept_fraction=0.3), Budget(kept_fraction=0.1)
    first = masks(chosen, GRAPH, round_context(0, seed=7), a=half, b=half, c=quarter)
    again = masks(chosen, GRAPH, round_context(0, seed=7), b=half, a=half)
    assert first["a"].digest == again["a"].digest
    assert first["b"].digest == again["b"].digest
    assert first["a"].digest != first["b"].digest
    assert masks(chosen, GRAPH, round_context(0, seed=8), a=half)["a"].digest != first["a"].digest
    assert first["c"].cost.parameters < first["a"].cost.parameters


def test_random_channels_are_all_alike_in_the_long_run() -> None:
    chosen = Widths(width=Width.LEVELS, levels="0.5", placement=Placement.RANDOM)
    counts: Any = np.zeros(6)
    for seed in range(600):
        counts[masks(chosen, small(), round_context(0, seed=seed), d=Budget())["d"].kept["b"]] += 1
    assert np.all(np.abs(counts - 400) < 60)  # five standard deviations of a draw of 4 out of 6


@pytest.mark.parametrize("width", Width)
@pytest.mark.parametrize("placement", Placement)
def test_a_strong_device_has_the_whole_model_wherever_channels_lie(width: Width, placement: Placement) -> None:
    found = masks(Widths(width=width, placement=placement), GRAPH, round_context(3), d=Budget())["d"]
    assert found.digest == full_mask(GRAPH).digest


def test_levels_that_are_none_are_refused() -> None:
    with pytest.raises(
        SchemaError, match=r"'settings.levels' must be a list of fractions above 0 and up to 1, got '1, 0'"
    ):
        strategy_of("fedavg", {"levels": "1, 0"})

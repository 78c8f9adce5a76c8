"""FjORD on a device: which widths are trained, against a slow transcription, and what is sent."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import SchemaError
from edgefl.local_rules import Batch, Descent, OrderedDropout, Sgd, rule_of
from edgefl.local_rules.ordered_dropout import nested_submodels, parse_levels
from edgefl.masks import Mask, freeze, full_mask, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.noise import bits, derive
from edgefl.values import RuleSettings, settings_from
from edgefl.wire import Dense
from tests.local_rules.quadratic import (
    Quadratic,
    assert_frozen_stay,
    assert_resumes,
    assert_same,
    nth_batch,
    part_of,
    train,
)
from tests.masks.test_slicing import kept_coordinates
from tests.random_models import masked_models, model_graphs

MOVING = Descent(learning_rate=0.1, momentum=0.9, weight_decay=0.01)


def recurrent() -> ModelGraph:
    """A flatten, an LSTM's stacked gates, a norm in two groups with statistics: channels that do not lie in a row."""
    build = GraphBuilder("recurrent", channels=2, positions=3)
    x = build.lstm("lstm", build.input, 5)
    x = build.norm("norm", build.conv("conv", x, 8, kernel=1, positions=3), groups=2, statistics=True)
    build.linear("head", build.flatten(x), 3, head=True)
    return build.finish()


def slow_round(graph: ModelGraph, mask: Mask, levels: list[float], part: Any, descent: Descent, steps: int) -> Any:
    """Algorithm 1's local training, entry by entry: a dictionary of coordinates for every tensor."""
    values: dict[str, dict[Any, float]] = {}
    for name in graph.tensor:
        entries = part.weights[name].ravel().tolist()
        values[name] = dict(zip(kept_coordinates(mask, name), entries, strict=True))
    speed = {name: dict.fromkeys(entries, 0.0) for name, entries in values.items()}
    for step in range(steps):
        level = levels[int(bits(derive(part.seed, "width"), step, 1)[0]) % len(levels)]
        drawn = leading_channels(graph, level)
        weights = {
            name: np.array([values[name][c] for c in kept_coordinates(drawn, name)], np.float32).reshape(
                drawn.shapes[name]
            )
            for name in graph.tensor
        }
        result = Quadratic(graph)(weights, nth_batch(step))
        for name, new in result.statistics.items():
            values[name] |= dict(zip(kept_coordinates(drawn, name), new.ravel().tolist(), strict=True))
        for name, found in result.gradients.items():
            gradient = dict(zip(kept_coordinates(drawn, name), found.ravel().tolist(), strict=True))
            for entry, value in values[name].items():
                d = gradient.get(entry, 0.0) + descent.weight_decay * value
                speed[name][entry] = descent.momentum * speed[name][entry] + d
                values[name][entry] = value - descent.learning_rate * speed[name][entry]
    return values


@pytest.mark.parametrize("own", [1.0, 0.5])
def test_a_round_is_the_papers(own: float) -> None:
    graph = recurrent()
    mask = leading_channels(graph, own)
    part = part_of(mask, 5, steps=12)
    rule = OrderedDropout(descent=MOVING, levels="0.25, 1, 0.5")
    _, update = train(rule, part, Quadratic(graph), 12)
    levels = [level for level in (1.0, 0.5, 0.25) if level <= own]
    expected = slow_round(graph, mask, levels, part, MOVING, 12)
    for name, entries in expected.items():
        wanted = np.array([entries[c] for c in kept_coordinates(mask, name)]).reshape(mask.shapes[name])
        assert np.allclose(update.weights[name], wanted, atol=1e-5), name
        payload = update.tensors[name]
        assert isinstance(payload, Dense)
        assert np.array_equal(payload.array, update.weights[name])


def test_every_width_that_the_part_contains_is_trained_about_as_often() -> None:
    graph = recurrent()
    run = Quadratic(graph)
    train(OrderedDropout(levels="1, 0.75, 0.5, 0.25"), part_of(leading_channels(graph, 0.75), 1), run, 300)
    widths = [shapes["conv.weight"][0] for shapes in run.shapes_seen]
    assert set(widths) == {2, 4, 6}
    assert all(70 < widths.count(width) < 130 for width in (2, 4, 6))


def test_a_part_between_two_levels_is_drawn_too() -> None:
    graph = recurrent()
    mask = Mask.of(graph, kept={"conv": range(6), "lstm": range(3)})
    assert [found.widths["conv"] for found in nested_submodels(mask, (1.0, 0.5, 0.25))] == [6, 4, 2]
    assert nested_submodels(mask, (1.0,)) == (mask,)
    whole = full_mask(graph)
    assert nested_submodels(whole, (1.0, 0.5))[0] is whole


@given(model_graphs(), st.sampled_from([1.0, 0.6, 0.3]))
def test_widths_are_nested_leading_and_what_norms_allow(graph: ModelGraph, own: float) -> None:
    mask = leading_channels(graph, own)
    for found in nested_submodels(mask, (1.0, 0.8, 0.6, 0.4, 0.2)):
        for group in graph.groups:
            assert found.widths[group.name] % group.multiple_of == 0
            assert found.kept[group.name].tolist() == list(range(found.widths[group.name]))
            assert found.widths[group.name] <= mask.widths[group.name]


@given(masked_models())
def test_one_level_is_gradient_descent(model: tuple[ModelGraph, Mask]) -> None:
    graph, mask = model
    part = part_of(mask, 2, steps=3)
    ordered = train(OrderedDropout(descent=MOVING, levels="1"), part, Quadratic(graph), 3)[1]
    assert_same(ordered, train(Sgd(descent=MOVING), part, Quadratic(graph), 3)[1])


@given(masked_models(), st.integers(0, 4))
def test_any_part_is_trained_and_a_crash_changes_nothing(model: tuple[ModelGraph, Mask], stop: int) -> None:
    graph, mask = model
    rule, part = OrderedDropout(descent=MOVING, levels="1, 0.5, 0.2"), part_of(mask, 3, steps=5)
    assert_resumes(rule, part, Quadratic(graph), steps=5, stop=stop)
    _, update = train(rule, part, Quadratic(graph), 5)
    assert set(update.tensors) == set(mask.trained_tensors)
    assert update.mask is mask
    for name, held in mask.held.items():
        assert not update.weights[name][~held].any()


def test_frozen_layers_stay_and_are_not_sent() -> None:
    graph = recurrent()
    part = part_of(freeze(full_mask(graph), ["lstm"]), 4)
    _, update = train(OrderedDropout(levels="1, 0.5"), part, Quadratic(graph), 4)
    assert_frozen_stay(part, update)


def test_what_was_not_drawn_does_not_move_without_momentum_and_decay() -> None:
    graph = recurrent()
    part = part_of(full_mask(graph), 6)
    rule = OrderedDropout(descent=Descent(learning_rate=0.1), levels="1, 0.25")
    small = [step for step in range(9) if int(bits(derive(part.seed, "width"), step, 1)[0]) % 2]
    state = rule.begin(part)
    for step in range(9):
        before = state.weights["conv.weight"].copy()
        rule.step(part, state, Batch(np.array([step + 1], np.float32), np.array([0])), Quadratic(graph))
        outer = np.s_[2:]
        assert np.array_equal(before[outer], state.weights["conv.weight"][outer]) == (step in small)
        assert not np.array_equal(before[:2, :1], state.weights["conv.weight"][:2, :1])


def test_levels_are_read_from_a_text() -> None:
    assert parse_levels("0.25, 1,0.5, 1") == (1.0, 0.5, 0.25)
    rule = OrderedDropout(levels="1, 0.5", descent=MOVING)
    assert rule_of(RuleSettings(name="ordered_dropout", settings=settings_from(rule))) == rule


@pytest.mark.parametrize("levels", ["", "1, half", "0, 1", "1.5", "nan", "-0.5"])
def test_levels_that_are_none_are_refused(levels: str) -> None:
    with pytest.raises(SchemaError, match=r"'settings.levels' must be a list of fractions above 0 and up to 1, got"):
        rule_of(RuleSettings(name="ordered_dropout", settings={"levels": levels}))

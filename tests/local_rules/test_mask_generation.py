"""FedMAP's draws: counts by hand, the capacity, the fallback, and the slopes of Eq. 7."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.local_rules.mask_generation import Gradient, generate, logit, sigmoid, slopes
from edgefl.local_rules.maskable_channels import MaskableChannels
from edgefl.local_rules.maskable_weights import MaskableWeights, top_entries
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.noise import derive, unit
from tests.random_models import masked_models

SEED = 20


def four_weights() -> Mask:
    build = GraphBuilder("four", channels=4)
    build.linear("head", build.input, 1, bias=False, head=True)
    return full_mask(build.finish())


def chances(draw: int, count: int = 4) -> list[float]:
    """The numbers of a draw; an entry is in where its probability is above its number."""
    return [float(number) for number in unit(derive(SEED, draw, "head.weight"), 0, count)]


def probabilities_for(survived: list[int], draws: int) -> dict[str, np.ndarray]:
    """Probabilities with which entry i survives exactly `survived[i]` of so many draws."""
    found = []
    for entry, count in enumerate(survived):
        numbers = [chances(draw)[entry] for draw in range(draws)]
        low, high = max(numbers[:count], default=0.0), numbers[count] if count < draws else 1.0
        assert low < high, "choose another SEED"
        found.append((low + high) / 2)
    return {"head.weight": np.array([found], np.float32)}


def test_counts_are_how_often_an_entry_was_drawn_until_the_mask_fits() -> None:
    # Half of four may stay. First draw: 1 1 1 0, three, too many. Second draw: 1 0 1 0, two, and m = 2 1 2 0.
    p = probabilities_for([2, 1, 2, 0], draws=2)
    drawn = generate(MaskableWeights(four_weights(), ("head.weight",), 0.5), p, SEED, max_draws=9)
    assert drawn.counts["head.weight"].tolist() == [[2, 1, 2, 0]]
    assert drawn.flags["head.weight"].astype(int).tolist() == [[1, 0, 1, 0]]
    assert not drawn.fell_back


def test_the_shrink_step_is_one_more_draw() -> None:
    p = probabilities_for([3, 1, 2, 0], draws=3)
    drawn = generate(MaskableWeights(four_weights(), ("head.weight",), 0.5), p, SEED, max_draws=9, shrink=True)
    assert drawn.counts["head.weight"].tolist() == [[3, 1, 2, 0]]
    assert drawn.flags["head.weight"].astype(int).tolist() == [[1, 0, 0, 0]]
    assert drawn.candidates["head.weight"].astype(int).tolist() == [[1, 0, 1, 0]]


def test_the_slope_is_that_of_equation_7() -> None:
    p = probabilities_for([3, 1, 2, 0], draws=3)
    drawn = generate(MaskableWeights(four_weights(), ("head.weight",), 0.5), p, SEED, max_draws=9, shrink=True)
    a, _, c, _ = p["head.weight"][0].tolist()
    expected = [(a**2 - a**8) / (1 + a), 0, (c**2 - c**6) / (1 + c), 0]
    assert slopes(drawn, p, Gradient.PAPER)["head.weight"][0].tolist() == pytest.approx(expected)
    exact = [3 * a * (1 - a), 0, 2 * c * (1 - c), 0]
    assert slopes(drawn, p, Gradient.STRAIGHT_THROUGH)["head.weight"][0].tolist() == pytest.approx(exact)


def test_a_device_that_everything_fits_counts_one_draw_of_all_ones() -> None:
    entries = MaskableWeights(four_weights(), ("head.weight",), 1.0)
    drawn = generate(entries, {"head.weight": np.full((1, 4), 0.01, np.float32)}, SEED, max_draws=9, shrink=True)
    assert drawn.counts["head.weight"].tolist() == [[1, 1, 1, 1]]
    assert drawn.flags["head.weight"].all()


def test_probabilities_near_one_end_in_the_top_entries() -> None:
    p = {"head.weight": np.array([[1, 0.99999999, 1, 0.9999]], np.float32)}
    entries = MaskableWeights(four_weights(), ("head.weight",), 0.75)
    drawn = generate(entries, p, SEED, max_draws=3)
    assert drawn.fell_back
    assert drawn.flags["head.weight"].astype(int).tolist() == [[1, 1, 1, 0]]
    assert drawn.counts["head.weight"].tolist() == [[4, 4, 4, 3]]


def test_a_fallback_among_equals_is_left_to_chance() -> None:
    entries = MaskableWeights(four_weights(), ("head.weight",), 0.5)
    p = {"head.weight": np.ones((1, 4), np.float32)}
    picks = {generate(entries, p, seed, max_draws=2).flags["head.weight"].tobytes() for seed in range(60)}
    assert len(picks) == 6


def test_top_entries_are_those_of_all_arrays_together() -> None:
    p = {"b": np.array([0.9, 0.2], np.float32), "a": np.array([[0.5], [0.95]], np.float32)}
    chosen = top_entries(p, 2, seed=0)
    assert {name: where.tolist() for name, where in chosen.items()} == {"a": [[False], [True]], "b": [True, False]}


def test_a_logit_stays_within_its_margin_and_comes_back() -> None:
    p = np.array([0, 0.25, 1, 1e-9], np.float32)
    assert np.allclose(sigmoid(logit(p, 1e-3)), [1e-3, 0.25, 0.999, 1e-3], rtol=1e-5)
    assert sigmoid(np.array([-1e9, 1e9], np.float32)).tolist() == [pytest.approx(0, abs=1e-30), 1]


def test_a_norm_gets_back_its_most_probable_channels() -> None:
    build = GraphBuilder("normed", channels=1, positions=4)
    x = build.norm("n", build.conv("a", build.input, 6, kernel=1, positions=4), groups=2)
    build.linear("head", build.flatten(build.pool(x, positions=1)), 2, head=True)
    entries = MaskableChannels(full_mask(build.finish()), ("a",), 0.5)
    before = {"a": np.array([1, 1, 1, 1, 0, 0], np.bool_)}
    p = {"a": np.array([0.1, 0.2, 0.3, 0.4, 0.9, 0.9], np.float32)}
    one, none = np.array([1, 0, 0, 0, 0, 0], np.bool_), np.zeros(6, np.bool_)
    assert entries.repair({"a": one}, before, p)["a"].astype(int).tolist() == [1, 0, 0, 1, 0, 0]
    assert entries.repair({"a": none}, before, p)["a"].astype(int).tolist() == [0, 0, 1, 1, 0, 0]
    assert entries.repair(before, before, p)["a"].tolist() == before["a"].tolist()


def test_a_capacity_below_the_smallest_submodel_is_refused() -> None:
    build = GraphBuilder("stiff", channels=3)
    build.linear("head", build.linear("a", build.input, 2), 5, head=True)
    entries = MaskableChannels(full_mask(build.finish()), ("a",), 0.1)
    with pytest.raises(MaskError, match="larger capacity"):
        generate(entries, {"a": np.ones(2, np.float32)}, SEED, max_draws=2)


def random_p(names: dict[str, tuple[int, ...]], seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    level = generator.choice([0.1, 0.5, 0.95, 1.0])
    return {name: np.maximum(level, generator.random(shape)).astype(np.float32) for name, shape in names.items()}


@given(masked_models(), st.integers(0, 999), st.floats(0.05, 1), st.booleans())
def test_masks_of_weights_never_exceed_the_capacity(
    found: tuple[ModelGraph, Mask], seed: int, capacity: float, shrink: bool
) -> None:
    _, mask = found
    names = ("stem.weight", "head.weight")
    p = random_p({name: mask.shapes[name] for name in names}, seed)
    entries = MaskableWeights(mask, names, capacity)
    drawn = generate(entries, p, seed, max_draws=8, shrink=shrink)
    everything = entries.everything()
    size = sum(where.sum() for where in everything.values())
    for flags in (drawn.flags, drawn.candidates):
        assert sum(where.sum() for where in flags.values()) <= capacity * size + 1e-6
    top = max(count.max() for count in drawn.counts.values())
    for name in names:
        assert not (drawn.flags[name] & ~drawn.candidates[name]).any()
        assert not (drawn.candidates[name] & ~everything[name]).any()
        if any(where.any() for where in drawn.flags.values()):
            assert np.array_equal(drawn.counts[name] == top, drawn.flags[name])  # what Eq. 9 relies on


@given(masked_models(), st.integers(0, 999), st.floats(0.05, 1), st.booleans())
def test_masks_of_channels_never_exceed_the_capacity_and_can_be_cut(
    found: tuple[ModelGraph, Mask], seed: int, capacity: float, shrink: bool
) -> None:
    graph, mask = found
    p = random_p({g.name: (mask.widths[g.name],) for g in prunable_groups(mask)}, seed)
    entries = MaskableChannels(mask, tuple(p), capacity)
    try:
        drawn = generate(entries, p, seed, max_draws=8, shrink=shrink)
    except MaskError:
        smallest = {g.name: mask.kept[g.name][: g.multiple_of] for g in prunable_groups(mask)}
        least = Mask(graph, mask.trained, {**mask.kept, **smallest}, {}).cost.parameters
        assert mask.held or least > capacity * mask.cost.parameters
        return
    for flags in (drawn.candidates, drawn.flags):
        assert entries.mask(flags).cost.parameters <= capacity * mask.cost.parameters + 1e-6
    top = max(count.max() for count in drawn.counts.values())
    assert all(np.array_equal(drawn.counts[name] == top, drawn.flags[name]) for name in p)

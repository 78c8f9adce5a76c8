"""The first mask of FedSpa: densities by hand, exact counts, the same mask everywhere."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.local_rules.erk import erk_counts, erk_densities, erk_mask, maskable_tensors
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph, cost_of
from edgefl.noise import bits, derive
from tests.random_models import masked_models


def two_layers() -> ModelGraph:
    """Weights 10x20 and 2x10, no biases: shapes add up to 30 and 12, sizes are 200 and 20."""
    build = GraphBuilder("two", channels=20)
    build.linear("head", build.linear("hidden", build.input, 10, bias=False), 2, bias=False, head=True)
    return build.finish()


def test_densities_are_in_proportion_to_sum_over_product() -> None:
    # A fifth of 220 is 44 = e * (30 + 12): e = 22/21, so 30 e of 200 and 12 e of 20.
    densities = erk_densities(full_mask(two_layers()), 0.2)
    assert densities == pytest.approx({"hidden.weight": 30 * 22 / 21 / 200, "head.weight": 12 * 22 / 21 / 20})


def test_a_tensor_that_would_get_too_much_is_dense_and_the_rest_is_solved_again() -> None:
    # Half of 220 is 110; the head would get 12 * 110 / 42 = 31 of 20. It gets 20, and the other 90 of 200.
    mask = full_mask(two_layers())
    assert erk_densities(mask, 0.5) == {"hidden.weight": 0.45, "head.weight": 1.0}
    assert erk_counts(mask, 0.5) == {"hidden.weight": 90, "head.weight": 20}
    held = erk_mask(mask, 0.5, seed=3).held
    assert set(held) == {"hidden.weight"}
    assert held["hidden.weight"].sum() == 90


def test_kernels_count_with_all_their_axes() -> None:
    build = GraphBuilder("conv", channels=2, positions=16)
    x = build.conv("conv", build.input, 8, kernel=3, positions=16)
    build.linear("head", build.flatten(build.pool(x, positions=1)), 4, bias=False, head=True)
    # 8 + 2 + 3 + 3 = 16 of 144 and 8 + 4 = 12 of 32; a quarter of 176 is 44 = e * 28.
    counts = erk_counts(full_mask(build.finish()), 0.25)
    assert counts == {"conv.weight": round(16 * 44 / 28), "head.weight": round(12 * 44 / 28)}


def test_norms_and_biases_are_held_whole_and_counted() -> None:
    build = GraphBuilder("normed", channels=8, positions=4)
    x = build.norm("norm", build.conv("conv", build.input, 8, kernel=1, positions=4, bias=True), statistics=True)
    build.linear("head", build.flatten(build.pool(x, positions=1)), 8, head=True)
    mask = erk_mask(full_mask(build.finish()), 0.5, seed=0)
    assert maskable_tensors(mask) == ("conv.weight", "head.weight")
    # 64 + 64 weights, 8 + 16 + 8 others: half of 160 is 80, so 48 are left for the weights, as 18 to 16.
    assert {name: int(where.sum()) for name, where in mask.held.items()} == {"conv.weight": 25, "head.weight": 23}
    assert mask.cost.parameters == 80


def test_a_density_that_cannot_be_had_is_refused() -> None:
    build = GraphBuilder("biased", channels=1)
    build.linear("head", build.input, 4, head=True)
    with pytest.raises(MaskError, match=r"density of 0.5.*more than 0.5"):
        erk_densities(full_mask(build.finish()), 0.5)
    with pytest.raises(MaskError, match="at most 1"):
        erk_densities(full_mask(two_layers()), 1.5)


def test_the_mask_is_the_same_wherever_it_is_made() -> None:
    held = erk_mask(full_mask(two_layers()), 0.1, seed=2**63 + 11).held
    # Written down once: a change of the generator would give devices and coordinator different masks.
    assert np.flatnonzero(held["head.weight"]).tolist() == [0, 3, 7, 9, 11, 18]
    words = bits(derive(2**63 + 11, "erk", "hidden.weight"), 0, 200)
    assert np.flatnonzero(held["hidden.weight"]).tolist() == sorted(np.argsort(words)[:16].tolist())
    assert erk_mask(full_mask(two_layers()), 0.1, seed=1).digest != erk_mask(full_mask(two_layers()), 0.1, 2).digest


@given(masked_models(held=False), st.floats(0.3, 1), st.integers(0, 99))
def test_counts_are_exact_and_add_up_to_the_density(found: tuple[ModelGraph, Mask], density: float, seed: int) -> None:
    graph, mask = found
    whole = cost_of(graph, mask.widths).parameters
    sizes = {name: math.prod(mask.shapes[name]) for name in maskable_tensors(mask)}
    if density * whole <= whole - sum(sizes.values()):
        return
    counts = erk_counts(mask, density)
    sparse = erk_mask(mask, density, seed)
    for name, count in counts.items():
        found_count = int(sparse.held[name].sum()) if name in sparse.held else sizes[name]
        assert found_count == count <= sizes[name]
    assert abs(sparse.cost.parameters - density * whole) <= len(sizes)
    least = whole - sum(sizes.values()) + len(sizes)  # one weight of every tensor
    assert sparse.cost.parameters <= max(least, density * whole)
    assert all(np.array_equal(sparse.kept[name], mask.kept[name]) for name in mask.kept)
    assert sparse.trained == mask.trained

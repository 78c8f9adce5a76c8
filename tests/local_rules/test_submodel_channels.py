"""Channels of submodels against loops over coordinates of the whole model."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgefl.local_rules.channel_removal import removal_order, remove_channels, remove_until
from edgefl.local_rules.submodel_channels import (
    channel_positions,
    narrow,
    prunable_groups,
    squared_norms,
    without_channels,
)
from edgefl.masks import Mask, gather
from edgefl.model_graph import GraphBuilder, ModelGraph, TensorRole
from tests.local_rules.quadratic import random_weights
from tests.random_models import masked_models


def narrower(mask: Mask, seed: int) -> Mask:
    """A mask of random channels of a mask."""
    generator = np.random.default_rng(seed)
    kept = {}
    for group in prunable_groups(mask):
        channels = mask.kept[group.name]
        steps = int(generator.integers(1, channels.size // group.multiple_of + 1))
        kept[group.name] = np.sort(generator.permutation(channels)[: steps * group.multiple_of])
    return without_channels(mask, kept)


@given(masked_models())
def test_positions_find_every_channel_in_the_arrays_of_the_submodel(found: tuple[ModelGraph, Mask]) -> None:
    graph, mask = found
    for group in graph.groups:
        for span in group.spans:
            size = graph.tensor[span.tensor].shape[span.axis]
            selected = np.arange(size)[mask.selectors[span.tensor][span.axis]]
            positions = channel_positions(mask, group, span)
            for row, channel in zip(positions, mask.kept[group.name], strict=True):
                starts = [span.offset + s * span.stride + channel * span.repeat for s in range(span.stacks)]
                assert selected[row].tolist() == [start + j for start in starts for j in range(span.repeat)]


@given(masked_models(), st.integers(0, 99))
def test_narrowing_a_submodel_is_gathering_from_the_model(found: tuple[ModelGraph, Mask], seed: int) -> None:
    graph, mask = found
    smaller = narrower(mask, seed)
    whole = random_weights(graph, seed)
    expected, ours = gather(smaller, whole), narrow(mask, smaller, gather(mask, whole))
    assert all(np.array_equal(ours[name], expected[name]) for name in graph.tensor)
    for name, flags in smaller.held.items():
        whole_flags = np.zeros(graph.tensor[name].shape, np.bool_)
        whole_flags[mask.index(name)] = mask.held[name]
        assert np.array_equal(flags, whole_flags[smaller.index(name)])


@given(masked_models(), st.integers(0, 99))
def test_norms_are_those_of_all_weights_of_a_channel(found: tuple[ModelGraph, Mask], seed: int) -> None:
    graph, mask = found
    whole = random_weights(graph, seed)
    norms = squared_norms(mask, gather(mask, whole))
    for group in prunable_groups(mask):
        total, entries = norms[group.name]
        for number in range(mask.widths[group.name]):
            alone = Mask(graph, mask.trained, mask.kept, {})
            expected = count = 0.0
            for span in group.spans:
                tensor = graph.tensor[span.tensor]
                if tensor.role in (TensorRole.WEIGHT, TensorRole.HEAD) and len(tensor.shape) > 1:
                    rows = channel_positions(alone, group, span)[number]
                    taken = gather(mask, whole)[span.tensor].take(rows, axis=span.axis)
                    expected, count = expected + float(np.square(taken, dtype=np.float64).sum()), count + taken.size
            assert np.isclose(total[number], expected, rtol=1e-4)
            assert entries == count


@given(masked_models(), st.integers(0, 99))
def test_shedding_takes_the_lowest_steps_and_stops_as_soon_as_it_may(found: tuple[ModelGraph, Mask], seed: int) -> None:
    _, mask = found
    generator = np.random.default_rng(seed)
    scores = {group.name: generator.random(mask.widths[group.name]) for group in prunable_groups(mask)}
    order = removal_order(mask, scores)
    bound = generator.random() * mask.cost.parameters
    smaller = remove_until(mask, scores, order, bound)
    sizes = [remove_channels(mask, scores, order[:count]).cost.parameters for count in range(len(order) + 1)]
    first = next((count for count, size in enumerate(sizes) if size <= bound), len(order))
    assert smaller.digest == remove_channels(mask, scores, order[:first]).digest
    for group in prunable_groups(mask):
        left = np.isin(mask.kept[group.name], smaller.kept[group.name])
        assert left.any()
        if not left.all():
            assert scores[group.name][~left].max() < scores[group.name][left].min()
    assert sizes == sorted(sizes, reverse=True)


def test_a_group_with_a_norm_loses_steps_that_are_worth_their_best_channel() -> None:
    build = GraphBuilder("two", channels=1, positions=4)
    x = build.norm("n", build.conv("a", build.input, 4, kernel=1, positions=4), groups=2)
    x = build.conv("b", x, 3, kernel=1, positions=4)
    build.linear("head", build.flatten(build.pool(x, positions=1)), 2, head=True)
    mask = Mask.of(build.finish())
    scores = {"a": np.array([0.1, 0.9, 0.2, 0.8]), "b": np.array([0.15, 0.5, 0.6])}
    # a's first step is 0.1 and 0.2, worth 0.2; b's single channels are worth themselves; each keeps its last step.
    assert removal_order(mask, scores) == ["b", "a", "b"]
    assert remove_channels(mask, scores, ["b", "a"]).kept["a"].tolist() == [1, 3]
    assert removal_order(mask, scores, {"a": 1, "b": 1}) == ["b"]

"""Axes against a brute-force enumeration: which indices of an axis are kept when channels are cut."""

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import ExportError
from export.axes import (
    Axis,
    BatchFactor,
    ChannelFactor,
    ConcatFactor,
    ConstantFactor,
    axis_size,
    bind,
    freeze,
    resolve,
    segment,
    spans,
    split,
    unify,
)

Kept = npt.NDArray[np.bool_]


class Cut:
    """A random choice of channels, made when they are first asked for."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._masks: dict[ChannelFactor, Kept] = {}

    def of(self, axis: Axis) -> Kept:
        """Which indices of an axis are kept: the definition that the code under test must agree with."""
        kept = np.ones(1, bool)
        for factor in axis:
            kept = np.logical_and.outer(kept, self._factor(factor)).ravel()
        return kept

    def of_all(self, axes: Iterable[Axis]) -> Kept:
        return self.of(tuple(factor for axis in axes for factor in axis))

    def _factor(self, factor: ConstantFactor | BatchFactor | ChannelFactor | ConcatFactor) -> Kept:
        if isinstance(factor, ConcatFactor):
            return np.concatenate([self.of(part) for part in factor.parts])
        if not isinstance(factor, ChannelFactor):
            return np.ones(factor.size, bool)
        if factor.bound is not None:
            return self.of(factor.bound)
        if factor not in self._masks:
            steps = int(self._generator.integers(1, factor.size // factor.multiple_of + 1))
            mask = np.zeros(factor.size, bool)
            mask[self._generator.permutation(factor.size)[: steps * factor.multiple_of]] = True
            self._masks[factor] = mask
        return self._masks[factor]


def by_spans(axis: Axis, cut: Cut) -> Kept:
    """The same by the spans of an axis, as a device would cut a tensor."""
    kept = np.ones(axis_size(axis), bool)
    for channels, span in spans("w", 0, axis):
        for channel in np.flatnonzero(~cut.of((channels,))):
            for stack, inner in itertools.product(range(span.stacks), range(span.repeat)):
                kept[span.offset + stack * span.stride + channel * span.repeat + inner] = False
    return kept


def free(*axes: Axis) -> list[ChannelFactor]:
    """The channels of some axes that can still be cut, each once."""
    found: dict[ChannelFactor, None] = {}

    def look(axis: Axis) -> None:
        for factor in resolve(axis):
            if isinstance(factor, ConcatFactor):
                for part in factor.parts:
                    look(part)
            elif isinstance(factor, ChannelFactor):
                found[factor] = None

    for axis in axes:
        look(axis)
    return list(found)


LARGEST = 200  # entries of an axis: they are looked at one by one
SIZES = st.integers(1, 5)


@st.composite
def worlds(draw: st.DrawFn) -> list[ChannelFactor]:
    """A few channels, single ones and ones in multiples among them."""
    result = []
    for _ in range(draw(st.integers(1, 4))):
        multiple = draw(st.sampled_from([1, 1, 1, 2]))
        result.append(ChannelFactor(draw(SIZES) * multiple, multiple_of=multiple))
    return result


@st.composite
def axes_of(draw: st.DrawFn, world: Sequence[ChannelFactor], depth: int = 2) -> Axis:
    """A product of a few factors; concatenations hold products again."""
    factors: list[ConstantFactor | ChannelFactor | ConcatFactor] = []
    for _ in range(draw(st.integers(0, 3 if depth else 2))):
        kind = draw(st.sampled_from(["constant", "channels", "channels", "concat"]))
        if kind == "constant":
            factors.append(ConstantFactor(draw(SIZES)))
        elif kind == "channels" or depth == 0:
            factors.append(draw(st.sampled_from(world)))
        else:
            factors.append(ConcatFactor(tuple(draw(st.lists(axes_of(world, depth - 1), min_size=1, max_size=3)))))
    while axis_size(tuple(factors)) > LARGEST:
        factors.pop()
    return tuple(factors)


@st.composite
def factorings(draw: st.DrawFn, size: int) -> list[int]:
    """Some numbers whose product is `size`, ones among them."""
    sizes = []
    while size > 1 and draw(st.booleans()):
        divisor = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        sizes.append(divisor)
        size //= divisor
    return [*sizes, size]


@given(st.data())
def test_resolving_changes_the_writing_of_an_axis_and_nothing_else(data: st.DataObject) -> None:
    axis = data.draw(axes_of(data.draw(worlds())))
    cut = Cut(data.draw(st.integers(0, 99)))
    resolved = resolve(axis)
    assert np.array_equal(cut.of(resolved), cut.of(axis))
    assert axis_size(resolved) == axis_size(axis)
    assert resolve(resolved) == resolved
    assert not any(factor.size == 1 for factor in resolved)


@given(st.data())
def test_unified_axes_keep_the_same_indices_whatever_is_cut(data: st.DataObject) -> None:
    world = data.draw(worlds())
    one = data.draw(axes_of(world))
    sizes = data.draw(factorings(axis_size(one)))
    other: Axis = tuple(ConstantFactor(size) if data.draw(st.booleans()) else ChannelFactor(size) for size in sizes)
    if data.draw(st.booleans()):
        # Some of the other side is of the same channels: they must not be bound twice.
        same = [c for c in world if axis_size(one) % c.size == 0]
        if same:
            shared = data.draw(st.sampled_from(same))
            other = (shared, ChannelFactor(axis_size(one) // shared.size))
    unify(one, other)
    for seed in range(3):
        cut = Cut(seed)
        assert np.array_equal(cut.of(one), cut.of(other))
    assert resolve(one) == resolve(other)


@given(st.data())
def test_concatenations_of_different_parts_can_be_unified(data: st.DataObject) -> None:
    world = data.draw(worlds())
    parts = tuple(data.draw(st.lists(axes_of(world, 1), min_size=1, max_size=4)))
    one: Axis = (ConcatFactor(parts),)
    edges = sorted({0, axis_size(one), *data.draw(st.lists(st.integers(0, axis_size(one)), max_size=3))})
    other: Axis = (ConcatFactor(tuple((ChannelFactor(b - a),) for a, b in itertools.pairwise(edges))),)
    unify(one, other)
    for seed in range(3):
        cut = Cut(seed)
        assert np.array_equal(cut.of(one), cut.of(other))


@given(st.data())
def test_a_chain_of_unifications_stays_consistent(data: st.DataObject) -> None:
    world = data.draw(worlds())
    pairs: list[tuple[Axis, Axis]] = []
    for _ in range(4):
        one = data.draw(axes_of(world, 1))
        sizes = data.draw(factorings(axis_size(one)))
        fresh = [ChannelFactor(size) for size in sizes]
        pairs.append((one, tuple(fresh)))
        unify(one, tuple(fresh))
        world = [*world, *fresh]
    for seed in range(2):
        cut = Cut(seed)
        for one, other in pairs:
            assert np.array_equal(cut.of(one), cut.of(other))


@given(st.data())
def test_a_reshape_keeps_the_entries_in_their_order(data: st.DataObject) -> None:
    world = data.draw(worlds())
    axes = data.draw(st.lists(axes_of(world, 1), min_size=1, max_size=2))
    sizes = data.draw(factorings(math.prod(axis_size(axis) for axis in axes)))
    parts = split(axes, sizes)
    assert [axis_size(part) for part in parts] == sizes
    again = split(parts, [axis_size(axis) for axis in axes])
    for seed in range(3):
        cut = Cut(seed)
        assert np.array_equal(cut.of_all(axes), cut.of_all(parts))
        assert np.array_equal(cut.of_all(axes), cut.of_all(again))


@given(st.data())
def test_a_segment_is_the_axis_between_two_indices(data: st.DataObject) -> None:
    axis = data.draw(axes_of(data.draw(worlds())))
    start = data.draw(st.integers(0, axis_size(axis)))
    end = data.draw(st.integers(start, axis_size(axis)))
    piece, before = segment(axis, start, end), segment(axis, 0, start)
    for seed in range(3):
        cut = Cut(seed)
        assert np.array_equal(cut.of(piece), cut.of(axis)[start:end])
        assert cut.of(before).sum() == cut.of(axis)[:start].sum()


@given(st.data())
def test_spans_cut_a_tensor_as_its_factors_say(data: st.DataObject) -> None:
    axis = data.draw(axes_of(data.draw(worlds())))
    cut_free = list(spans("w", 0, axis))  # may make channels constant
    for seed in range(3):
        cut = Cut(seed)
        assert np.array_equal(by_spans(axis, cut), cut.of(resolve(axis)))
    assert {channels for channels, _ in cut_free} == set(free(axis))


@given(st.data())
@settings(max_examples=200)
def test_widths_are_known_through_the_parameters_they_come_from(data: st.DataObject) -> None:
    weights: dict[str, Axis] = {}
    for name in "abc":
        channels = ChannelFactor(data.draw(SIZES) * data.draw(SIZES) * data.draw(SIZES), (name, 0, 1))
        weights[name] = (channels,)
    for name, axis in weights.items():
        sizes = data.draw(factorings(axis_size(axis)))
        activation = split([axis], sizes)
        for part in activation:
            for other in weights.values():
                if axis_size(other) == axis_size(part) and name != "a":
                    unify(other, part)
    for seed in range(3):
        cut = Cut(seed)
        for channels in free(*weights.values()):
            assert channels.source is not None
            tensor, _, divisor = channels.source
            assert cut.of(weights[tensor]).sum() == cut.of((channels,)).sum() * divisor


def test_the_channels_before_a_flatten_can_still_be_cut() -> None:
    channels, weight = ChannelFactor(16, ("conv", 0, 1)), ChannelFactor(144, ("fc", 1, 1))
    unify((weight,), (channels, ConstantFactor(3), ConstantFactor(3)))
    assert resolve((weight,)) == (channels, ConstantFactor(9))
    other = ChannelFactor(144)
    unify((channels, ConstantFactor(9)), (other,))
    assert resolve((other,)) == (channels, ConstantFactor(9))


def test_the_gates_of_an_lstm_are_stacks_of_its_hidden_channels() -> None:
    hidden, gates = ChannelFactor(8, ("hh", 1, 1)), ChannelFactor(32, ("hh", 0, 1))
    unify((gates,), (ConstantFactor(4), hidden))
    [(found, span)] = list(spans("hh", 0, (gates,)))
    assert found is hidden
    assert (span.offset, span.repeat, span.stacks, span.stride) == (0, 1, 4, 8)


def test_two_equal_halves_are_a_product_of_two() -> None:
    hidden = ChannelFactor(4)
    assert resolve((ConcatFactor(((hidden,), (hidden,))),)) == (ConstantFactor(2), hidden)
    first, second = ChannelFactor(4), ChannelFactor(4)
    unify((ConcatFactor(((first,), (second,))),), (ConstantFactor(2), hidden))
    assert free((first,), (second,)) == free((hidden,))


def test_thirds_of_a_stacked_axis_keep_their_channels() -> None:
    width = ChannelFactor(16)
    stacked = (ConstantFactor(3), width)
    assert [segment(stacked, at, at + 16) for at in (0, 16, 32)] == [(width,)] * 3
    assert segment(stacked, 16, 48) == (ConstantFactor(2), width)
    assert free(stacked) == [width]
    assert segment(stacked, 8, 24) == (ConstantFactor(16),)
    assert free(stacked) == []


def test_parts_of_a_concatenation_keep_their_channels() -> None:
    one, two, three = ChannelFactor(4), ChannelFactor(6), ChannelFactor(5)
    concat: Axis = (ConcatFactor(((one,), (two, ConstantFactor(2)), (three,))),)
    assert segment(concat, 4, 16) == (two, ConstantFactor(2))
    assert segment(concat, 4, 21) == (ConcatFactor(((two, ConstantFactor(2)), (three,))),)
    assert segment(concat, 0, 6) == (ConcatFactor(((one,), (ConstantFactor(2),))),)
    assert free(concat) == [one, three], "only the part that was cut through is constant"


def test_a_permuted_layout_makes_channels_constant_rather_than_wrong() -> None:
    inner = ChannelFactor(8)
    unify((ConstantFactor(2), inner), (inner, ConstantFactor(2)))
    assert free((inner,)) == []


def test_a_product_of_two_kinds_of_channels_is_never_cut_in_a_tensor() -> None:
    one, two, apart = ChannelFactor(4), ChannelFactor(6), ChannelFactor(3)
    axis: Axis = (ConcatFactor(((one, two), (apart,))),)
    assert [channels for channels, _ in spans("w", 0, axis)] == [apart]
    assert free(axis) == [apart]


def test_a_multiple_is_passed_on_to_the_channels_inside() -> None:
    outer = ChannelFactor(24, multiple_of=4)
    inner = split([(outer,)], [2, 12])[1]
    assert [channels.multiple_of for channels in free(inner)] == [2]
    whole = ChannelFactor(12, multiple_of=3)
    other = ChannelFactor(12, multiple_of=2)
    unify((whole,), (other,))
    assert [channels.multiple_of for channels in free((other,))] == [6]


def test_a_multiple_of_a_whole_concatenation_makes_its_parts_constant() -> None:
    one, two = ChannelFactor(4), ChannelFactor(4)
    bind(ChannelFactor(8, multiple_of=2), (ConcatFactor(((one,), (two,))),))
    assert free((one,), (two,)) == []


def test_a_bound_channel_is_unified_when_it_is_bound_again() -> None:
    one, two, three = ChannelFactor(6), ChannelFactor(6), ChannelFactor(3)
    bind(one, (two,))
    bind(one, (ConstantFactor(2), three))
    assert resolve((two,)) == (ConstantFactor(2), three)


def test_the_batch_stays_whole() -> None:
    batch, channels = BatchFactor(5), ChannelFactor(8)
    assert split([(batch,), (channels,)], [20, 2])[0] == (batch, ConstantFactor(4))
    with pytest.raises(ExportError, match=r"the batch \(6\).*cannot be divided into 3|would become part"):
        split([(BatchFactor(6),), (ConstantFactor(4),)], [3, 8])
    with pytest.raises(ExportError, match=r"constant size \(5\) meets .*the batch|the batch \(5\) meets"):
        unify((batch,), (ConstantFactor(5),))
    with pytest.raises(ExportError, match="would grow with the batch"):
        list(spans("w", 0, (batch, ConstantFactor(2))))
    with pytest.raises(ExportError, match="would become part of a constant size"):
        freeze((channels, batch))


def test_sizes_that_differ_are_refused() -> None:
    with pytest.raises(ExportError, match=r"an axis of 4 meets an axis of 5\. Check the shapes"):
        unify((ChannelFactor(4),), (ConstantFactor(5),))
    with pytest.raises(ExportError, match="4 channels meet an axis of 6"):
        bind(ChannelFactor(4), (ConstantFactor(6),))
    with pytest.raises(ExportError, match=r"12 entries cannot be arranged as \[5, 2\]"):
        split([(ConstantFactor(12),)], [5, 2])

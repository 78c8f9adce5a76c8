"""Tensor axes as products of factors, and the channels that belong together.

The tracer gives every axis of every parameter its own channels; each operation then states which axes must agree, and
what remains at the end are the model's channel groups. The sizes of the traced example are known everywhere, so a
reshape is understood by comparing both sides factor by factor.

An axis is a product of factors, the outermost first: a flattened image is (channels, height, width), the four gates of
an LSTM are (4, hidden), a concatenation is one factor made of parts. Channels can be *bound*: to other channels (they
become one group), to a product (48 channels that are split in 3 are 3 times 16), or to a constant (they can never be
cut). Where two layouts cannot both be kept while channels are cut, the channels become constant: the model is still
exported, but cannot be made narrower there.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from edgefl.errors import ExportError
from edgefl.model_graph import Fixed, Span

__all__ = [
    "Axis",
    "BatchFactor",
    "ChannelFactor",
    "ConcatFactor",
    "ConstantFactor",
    "Factor",
    "axis_size",
    "bind",
    "freeze",
    "resolve",
    "segment",
    "spans",
    "split",
    "unify",
]


@dataclass(frozen=True, slots=True)
class ConstantFactor:
    """A size that never changes."""

    size: int


@dataclass(frozen=True, slots=True)
class BatchFactor:
    """The number of samples in a batch; `size` is that of the traced example."""

    size: int


@dataclass(eq=False, slots=True)
class ChannelFactor:
    """Channels that may be cut. Equal only to themselves until they are bound. A single channel is never cut."""

    size: int
    source: tuple[str, int, int] | None = None
    """A parameter, its axis, and what to divide its length by, to get the width when the graph runs."""
    multiple_of: int = 1
    fixed: Fixed | None = None
    bound: "Axis | None" = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ConcatFactor:
    """Several axes, concatenated."""

    parts: tuple["Axis", ...]

    @property
    def size(self) -> int:
        """The size in the traced example."""
        return sum(axis_size(part) for part in self.parts)


Factor = ConstantFactor | BatchFactor | ChannelFactor | ConcatFactor
Axis = tuple[Factor, ...]


def axis_size(axis: Axis) -> int:
    """Return the size of an axis in the traced example."""
    return math.prod(factor.size for factor in axis)


def resolve(axis: Axis) -> Axis:
    """Return the canonical form of an axis: bindings followed, constants merged, ones and needless parts dropped."""
    resolved: list[Factor] = []
    for factor in _followed(axis):
        for piece in _flattened(factor) if isinstance(factor, ConcatFactor) else (factor,):
            if isinstance(piece, ConstantFactor) and resolved and isinstance(resolved[-1], ConstantFactor):
                resolved[-1] = ConstantFactor(resolved[-1].size * piece.size)
            elif piece.size != 1 or isinstance(piece, BatchFactor):
                resolved.append(piece)
    return tuple(resolved)


def bind(channels: ChannelFactor, axis: Axis) -> None:
    """Make channels stand for an axis of the same size."""
    axis = resolve(axis)
    if channels.bound is not None:
        unify((channels,), axis)
        return
    if axis == (channels,):
        return
    if axis_size(axis) != channels.size:
        raise ExportError(
            f"{channels.size} channels meet an axis of {axis_size(axis)}", fix="Check the shapes of the model's layers."
        )
    if any(factor is channels for factor in _leaves(axis)):
        raise ExportError("channels would contain themselves", fix="Report this model: its reshapes are not supported.")
    _pass_on(channels, axis)
    channels.bound = axis


def freeze(axis: Axis) -> None:
    """Make all channels of an axis constant: they can never be cut."""
    for factor in list(_leaves(axis)):
        if isinstance(factor, BatchFactor):
            raise ExportError(
                f"{_words(factor)} would become part of a constant size",
                fix="Keep the batch on an axis of its own, whole and first.",
            )
        if isinstance(factor, ChannelFactor) and factor.bound is None:
            bind(factor, (ConstantFactor(factor.size),))


def unify(one: Axis, other: Axis) -> None:
    """Make two axes of equal size agree, splitting and binding channels where necessary."""
    left, right = resolve(one), resolve(other)
    if left == right:
        return
    if axis_size(left) != axis_size(right):
        raise ExportError(
            f"an axis of {axis_size(left)} meets an axis of {axis_size(right)}",
            fix="Check the shapes of the model's layers.",
        )
    if len(left) <= 1 or len(right) <= 1:
        _unify_whole(left, right)
        return
    for size in _boundaries(left[0], right[0]):
        mine, yours = _cut(left, size), _cut(right, size)
        if mine is not None and yours is not None:
            for part, other_part in zip(mine, yours, strict=True):
                unify(part, other_part)
            return
    _make_constant(left, right)


def split(axes: Sequence[Axis], sizes: Sequence[int]) -> list[Axis]:
    """Return the axes of a reshape: the factors of `axes` in order, divided into axes of the given sizes."""
    stream = resolve(tuple(factor for axis in axes for factor in axis))
    if axis_size(stream) != math.prod(sizes) or 0 in sizes:
        raise ExportError(
            f"{axis_size(stream)} entries cannot be arranged as {list(sizes)}", fix="Check the sizes of the reshape."
        )
    result: list[Axis] = []
    for size in sizes:
        taken, stream = _taken(stream, size)
        result.append(taken)
    return [resolve(axis) for axis in result]


def segment(axis: Axis, start: int, end: int) -> Axis:
    """Return the part of an axis between two indices of the example. Channels that are cut through become constant."""
    axis = resolve(axis)
    if (start, end) == (0, axis_size(axis)):
        return axis
    if start >= end:
        return (ConstantFactor(0),)
    first, rest = axis[0], axis[1:]
    inner = axis_size(rest)
    if start // inner == (end - 1) // inner and isinstance(first, ConstantFactor):
        base = start // inner * inner
        return segment(rest, start - base, end - base)
    if start % inner == 0 and end % inner == 0:
        return resolve((*_factor_segment(first, start // inner, end // inner), *rest))
    if isinstance(first, ConstantFactor):
        edges = [start, *range((start // inner + 1) * inner, end, inner), end]
        return resolve((ConcatFactor(tuple(segment(axis, a, b) for a, b in itertools.pairwise(edges))),))
    freeze(axis)
    return (ConstantFactor(end - start),)


def spans(tensor: str, axis: int, factors: Axis) -> Iterator[tuple[ChannelFactor, Span]]:
    """Yield the positions of the channels on an axis. Products of two kinds of channels become constant."""
    resolved = resolve(factors)
    if any(isinstance(factor, BatchFactor) for factor in _leaves(resolved)):
        raise ExportError(
            f"axis {axis} of tensor {tensor!r} would grow with the batch",
            fix="Give the tensor a size of 1 there, so that it is the same for every sample.",
        )
    for channels, offset, repeat, stacks, stride in list(_places(resolved)):
        if channels.bound is None:  # not made constant by a later factor of the same axis
            yield channels, Span(tensor, axis, offset, repeat, stacks, stride if stacks > 1 else 0)


Place = tuple[ChannelFactor, int, int, int, int]


def _places(axis: Axis) -> Iterator[Place]:
    moving = [i for i, factor in enumerate(axis) if not isinstance(factor, ConstantFactor)]
    if len(moving) != 1:
        freeze(axis)
        return
    place = moving[0]
    outer, inner = axis_size(axis[:place]), axis_size(axis[place + 1 :])
    factor = axis[place]
    if isinstance(factor, ChannelFactor):
        yield factor, 0, inner, outer, factor.size * inner
    elif isinstance(factor, ConcatFactor):
        yield from _concat_places(factor, outer, inner)


def _concat_places(concat: ConcatFactor, outer: int, inner: int) -> Iterator[Place]:
    begin = 0
    for part in concat.parts:
        for channels, offset, repeat, stacks, stride in _places(part):
            if stacks > 1 and outer > 1:
                freeze((channels,))  # nested stacks have no span
            elif outer > 1:
                yield channels, (begin + offset) * inner, repeat * inner, outer, concat.size * inner
            else:
                yield channels, (begin + offset) * inner, repeat * inner, stacks, stride * inner
        begin += axis_size(part)


def _unify_whole(left: Axis, right: Axis) -> None:
    """Make two different axes of equal size agree, at least one of which is a single factor."""
    sides = [(axis[0], other) for axis, other in ((right, left), (left, right)) if len(axis) == 1]
    for single, other in sides:  # of two groups the first one stays: bind the right one
        if isinstance(single, ChannelFactor):
            bind(single, other)
            return
    for single, other in sides:
        if isinstance(single, ConcatFactor):
            begin = 0
            for part in single.parts:
                unify(part, segment(other, begin, begin + axis_size(part)))
                begin += axis_size(part)
            return
    _make_constant(left, right)


def _make_constant(left: Axis, right: Axis) -> None:
    """Make two axes constant that agree only in size; the batch cannot become constant."""
    if any(isinstance(factor, BatchFactor) for factor in (*_leaves(left), *_leaves(right))):
        raise ExportError(
            f"an axis of {_all_words(left)} meets an axis of {_all_words(right)}",
            fix="These sizes are equal in the example only by accident: check the model, or trace with another batch.",
        )
    freeze(left)
    freeze(right)


def _boundaries(a: Factor, b: Factor) -> list[int]:
    """Return where two products may be divided, best first: after the larger factor if it can stand for a product."""
    small, big = sorted((a, b), key=lambda factor: factor.size)
    if isinstance(big, ChannelFactor | ConcatFactor) and small.size != big.size:
        return [big.size, small.size]
    return [small.size]


def _cut(axis: Axis, size: int) -> tuple[Axis, Axis] | None:
    """Divide a product into an outer one of the given size and the rest; None if its factors do not allow it."""
    have = 1
    for place, factor in enumerate(axis):
        if have == size:
            return axis[:place], axis[place:]
        if have * factor.size > size:
            if size % have or factor.size % (size // have) or isinstance(factor, BatchFactor | ConcatFactor):
                return None
            outer, inner = _divided(factor, size // have)
            return (*axis[:place], outer), (inner, *axis[place + 1 :])
        have *= factor.size
    return (axis, ()) if have == size else None


def _divided(factor: ConstantFactor | ChannelFactor, outer: int) -> tuple[Factor, Factor]:
    inner = factor.size // outer
    if isinstance(factor, ConstantFactor):
        return ConstantFactor(outer), ConstantFactor(inner)
    part = ChannelFactor(inner)
    bind(factor, (ConstantFactor(outer), part))
    return ConstantFactor(outer), part


def _taken(stream: Axis, size: int) -> tuple[Axis, Axis]:
    """Divide a sequence of factors, making as few of them constant as possible."""
    for count in range(len(stream) + 1):
        freeze(stream[:count])
        cut = _cut(resolve(stream), size)
        if cut is not None:
            return cut
    raise ExportError(
        f"an axis of {_all_words(stream)} cannot be divided into {size} parts",
        fix="Reshape along whole channels or groups of them, and keep the batch whole.",
    )


def _factor_segment(factor: Factor, start: int, end: int) -> Axis:
    if (start, end) == (0, factor.size):
        return (factor,)
    if isinstance(factor, ConcatFactor):
        pieces: list[Axis] = []
        begin = 0
        for part in factor.parts:
            size = axis_size(part)
            low, high = max(start, begin), min(end, begin + size)
            if low < high:
                pieces.append(segment(part, low - begin, high - begin))
            begin += size
        return (ConcatFactor(tuple(pieces)),)
    freeze((factor,))
    return (ConstantFactor(end - start),)


def _pass_on(channels: ChannelFactor, axis: Axis) -> None:
    """Pass what is known of channels on to the channels inside the axis that they stand for."""
    moving = [factor for factor in axis if not isinstance(factor, ConstantFactor)]
    if len(moving) == 1 and isinstance(moving[0], ChannelFactor):
        inner = moving[0]
        outer = channels.size // inner.size
        inner.multiple_of = math.lcm(inner.multiple_of, channels.multiple_of // math.gcd(channels.multiple_of, outer))
        inner.fixed = inner.fixed or channels.fixed
        if inner.source is None and channels.source is not None:
            tensor, place, divisor = channels.source
            inner.source = (tensor, place, divisor * outer)
    elif channels.multiple_of > 1 or channels.fixed is not None:
        freeze(axis)  # a requirement on the whole cannot be divided among its parts


def _flattened(concat: ConcatFactor) -> Axis:
    """Return a concatenation in its simplest form: adjacent constants merged, equal parts as a product."""
    parts: list[Axis] = []
    for part in map(resolve, concat.parts):
        inner = part[0].parts if len(part) == 1 and isinstance(part[0], ConcatFactor) else (part,)
        for piece in inner:
            if axis_size(piece) == 0:
                continue
            if parts and _is_constant(piece) and _is_constant(parts[-1]):
                parts[-1] = (ConstantFactor(axis_size(parts[-1]) + axis_size(piece)),)
            else:
                parts.append(piece)
    if not parts:
        return (ConstantFactor(0),)
    if all(part == parts[0] for part in parts):
        return resolve((ConstantFactor(len(parts)), *parts[0]))
    return (ConcatFactor(tuple(parts)),)


def _is_constant(axis: Axis) -> bool:
    return all(isinstance(factor, ConstantFactor) for factor in axis)


def _followed(axis: Iterable[Factor]) -> Iterator[Factor]:
    for factor in axis:
        if isinstance(factor, ChannelFactor) and factor.bound is not None:
            yield from _followed(factor.bound)
        else:
            yield factor


def _leaves(axis: Axis) -> Iterator[Factor]:
    for factor in _followed(axis):
        if isinstance(factor, ConcatFactor):
            for part in factor.parts:
                yield from _leaves(part)
        else:
            yield factor


def _all_words(axis: Axis) -> str:
    return " times ".join(map(_words, axis)) or "one entry"


def _words(factor: Factor) -> str:
    kind = {
        ConstantFactor: "constant size",
        BatchFactor: "the batch",
        ChannelFactor: "channels",
        ConcatFactor: "concatenated channels",
    }
    return f"{kind[type(factor)]} ({factor.size})"

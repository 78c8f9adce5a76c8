"""Weight changes of a submodel, `part - base` where the mask holds the entry, block by block.

Strategies add up, measure or sort these blocks when they aggregate. Nothing here is as large as a tensor: a block and
its buffers fit the CPU cache, so that a change is computed, weighted and added while it is cached.

If the kept channels are consecutive, blocks are views of the whole tensor. Otherwise the kept entries are taken out by
index and put back, a piece at a time, such as the kernel between two channels, because numpy's cost is per index, not
per entry.
"""

import functools
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from edgefl.errors import MaskError
from edgefl.masks.gather_scatter import Array
from edgefl.masks.mask import BoolArray, IndexArray, Mask, Selector

__all__ = ["BLOCK", "Box", "add_changes", "boxes", "changes"]

Box = tuple[slice, ...]
"""A block of a tensor: a range on each axis."""
_Blocks = Iterator[tuple[Array, Array]]

_LARGE_BLOCK = 1 << 18
"""Block size with two threads; with smaller blocks they would mostly wait for the GIL."""
BLOCK = 1 << 15
"""Entries of a block: the block, its base, its sum and its scratch space fit the L2 cache."""


def boxes(shape: tuple[int, ...], size: int) -> Iterator[Box]:
    """Yield blocks of at most `size` entries that cover a shape, in row-major order."""
    row = math.prod(shape[1:])
    rest = tuple(slice(0, length) for length in shape[1:])
    if not shape:
        yield ()
    elif row <= size:
        step = size // max(row, 1)
        for begin in range(0, shape[0], step):
            yield (slice(begin, min(begin + step, shape[0])), *rest)
    else:
        for begin in range(shape[0]):
            for box in boxes(shape[1:], size):
                yield (slice(begin, begin + 1), *box)


def changes(
    mask: Mask,
    name: str,
    part: Array,
    base: Array,
    into: Array,
    *,
    weight: float = 1.0,
    absent: float = 0.0,
    box: Box | None = None,
) -> _Blocks:
    """Yield blocks of `into`, each with its `weight * (part - base)`: `block += change` adds everything up.

    `part` has the submodel's shape, `base` is the whole tensor that it was cut from. `into` has the whole tensor's
    shape, or that of a `box` of it, which limits the operation, and is in row-major order. Entries that the mask does
    not hold are in no block, or have the change `absent`. A change has the dtype of `into`. Block and change are valid
    until the next iteration; in-place changes to the block change `into`.
    """
    if part.shape != mask.shapes[name]:
        raise MaskError(
            f"tensor {name!r} has shape {part.shape}, but the submodel needs {mask.shapes[name]}",
            fix="Give the tensor as it was gathered with this mask.",
        )
    if not into.flags.c_contiguous:
        raise ValueError("`into` must be in row-major order")
    held = mask.held.get(name)
    if part.shape == base.shape == into.shape:
        held = None if held is None else held.reshape(-1)
        return _consecutive(part.reshape(-1), base.reshape(-1), into.reshape(-1), held, weight, absent)
    selectors = mask.selectors[name]
    if box is not None:
        selectors, own = _within(selectors, box)
        part, base, held = part[own], base[box], None if held is None else held[own]
    if all(isinstance(selector, slice) for selector in selectors):
        return _consecutive(part, base[selectors], into[selectors], held, weight, absent)
    return _scattered(selectors, part, base, into, held, weight, absent)


def add_changes(into: Array, base: Array, parts: Sequence[tuple[Array, float]]) -> None:
    """Add `weight * (part - base)` for several whole tensors, reading base and sum only once.

    A large tensor is split between two threads, which does not change any bit of the sum.
    """
    if not into.flags.c_contiguous:
        raise ValueError("`into` must be in row-major order")
    flat = [(part.reshape(-1), into.dtype.type(weight)) for part, weight in parts]
    into, base = into.reshape(-1), base.reshape(-1)
    if into.size < 2 * _LARGE_BLOCK:
        _add_between(into, base, flat, 0, into.size, BLOCK)
        return
    middle = into.size // 2
    other = _second_thread(os.getpid()).submit(_add_between, into, base, flat, middle, into.size, _LARGE_BLOCK)
    _add_between(into, base, flat, 0, middle, _LARGE_BLOCK)
    other.result()


def _add_between(
    into: Array, base: Array, flat: Sequence[tuple[Array, np.floating]], first: int, last: int, size: int
) -> None:
    scratch = np.empty(min(last - first, size), into.dtype)
    for begin in range(first, last, size):
        here = slice(begin, min(begin + size, last))
        block, old = into[here], base[here]
        change = scratch[: block.size]
        for part, weight in flat:
            _subtract(part[here], old, change)
            np.multiply(change, weight, change)
            np.add(block, change, block)


@functools.lru_cache(maxsize=1)
def _second_thread(process: int) -> ThreadPoolExecutor:
    """Return a worker thread of this process; a forked process does not inherit its parent's."""
    return ThreadPoolExecutor(1, thread_name_prefix="sums")


def _consecutive(
    part: Array, base: Array, into: Array, held: BoolArray | None, weight: float, absent: float
) -> _Blocks:
    """Yield the changes if `part`, `base` and `into` correspond entry by entry."""
    scratch, factor = np.empty(min(part.size, BLOCK), into.dtype), into.dtype.type(weight)
    flat = part.ndim == 1
    for here in _slices(part.size) if flat else boxes(part.shape, BLOCK):
        piece = part[here]
        change = scratch[: piece.size] if flat else scratch[: piece.size].reshape(piece.shape)
        _subtract(piece, base[here], change)
        if weight != 1:
            np.multiply(change, factor, change)
        if held is not None:
            np.copyto(change, absent, where=~held[here])
        yield into[here], change


def _scattered(
    selectors: Sequence[Selector],
    part: Array,
    base: Array,
    into: Array,
    held: BoolArray | None,
    weight: float,
    absent: float,
) -> _Blocks:
    """Yield the changes of the kept entries, taken out piece by piece and put back."""
    starts, within, run = _flat_indices(base.shape, selectors)
    part, base, into = part.reshape(-1, run), base.reshape(-1, run), into.reshape(-1, run)
    held = None if held is None else held.reshape(part.shape)
    pieces = into.view(np.dtype((np.void, run * into.itemsize))).reshape(-1)
    step, factor = max(1, BLOCK // max(within.size * run, 1)), into.dtype.type(weight)
    size = (min(step, starts.size) * within.size, run)
    old, block, change = np.empty(size, base.dtype), np.empty(size, into.dtype), np.empty(size, into.dtype)
    for begin in range(0, starts.size, step):
        here = slice(begin * within.size, (begin + step) * within.size)
        at = (starts[begin : begin + step, None] + within).reshape(-1)
        old, block, change = old[: at.size], block[: at.size], change[: at.size]
        base.take(at, 0, old, "clip")
        _subtract(part[here], old, change)
        np.multiply(change, factor, change)
        if held is not None:
            np.copyto(change, absent, where=~held[here])
        into.take(at, 0, block, "clip")
        yield block, change
        pieces[at] = block.view(pieces.dtype).reshape(-1)  # one index per piece, not per entry


def _slices(length: int) -> Iterator[slice]:
    """Cut one axis into blocks; a faster `boxes` for the most frequent case."""
    return (slice(begin, begin + BLOCK) for begin in range(0, length, BLOCK))


def _subtract(one: Array, other: Array, out: Array) -> None:
    """Subtract in the dtype of `out`. Passing `dtype` costs a microsecond, so it is passed only if needed."""
    if one.dtype == other.dtype == out.dtype:
        np.subtract(one, other, out)
    else:
        np.subtract(one, other, out, dtype=out.dtype)


def _flat_indices(shape: tuple[int, ...], selectors: Sequence[Selector]) -> tuple[IndexArray, IndexArray, int]:
    """Return the starts of the kept rows, the kept columns within a row, and the entries per column."""
    last = _last_cut(shape, selectors)
    within = np.zeros(1, np.int64)
    for length, selector in zip(shape[1:last], selectors[1:], strict=False):
        within = (within[:, None] * length + _indices(selector, length)).reshape(-1)
    return _indices(selectors[0], shape[0]) * math.prod(shape[1:last]), within, math.prod(shape[last:])


def _indices(selector: Selector, length: int) -> IndexArray:
    return np.arange(length)[selector] if isinstance(selector, slice) else selector


def _last_cut(shape: tuple[int, ...], selectors: Sequence[Selector]) -> int:
    """Return the number of axes up to and including the last cut one."""
    pairs = zip(shape, selectors, strict=True)
    whole = (isinstance(s, slice) and s.indices(length) == (0, length, 1) for length, s in pairs)
    return max((axis + 1 for axis, is_whole in enumerate(whole) if not is_whole), default=0)


def _within(selectors: Sequence[Selector], box: Box) -> tuple[tuple[Selector, ...], Box]:
    """Return the selectors relative to a box of the whole tensor, and the box of the part inside it."""
    seen: list[Selector] = []
    own = []
    for selector, edge in zip(selectors, box, strict=True):
        if isinstance(selector, slice):
            first = selector.start or 0
            last = edge.stop if selector.stop is None else selector.stop
            low = max(first, edge.start)
            high = max(low, min(last, edge.stop))
            seen.append(slice(low - edge.start, high - edge.start))
            own.append(slice(low - first, high - first))
        else:
            low, high = (int(at) for at in np.searchsorted(selector, (edge.start, edge.stop)))
            seen.append(selector[low:high] - edge.start)
            own.append(slice(low, high))
    return tuple(seen), tuple(own)

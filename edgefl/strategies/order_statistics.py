"""Aggregation of updates that are not all trusted: the median or the trimmed mean of each coordinate.

Yin et al., Byzantine-Robust Distributed Learning, 2018, Definitions 1 and 2, over the devices that held and trained the
coordinate. Every update counts as one, whatever number of samples it claims: a weight that a device names itself would
give back to a liar what sorting takes away. Updates of zero weight do not count.

Sorting needs all values of a coordinate at once, so the model is processed in blocks, as many at a time as fit the
allowed memory, and the updates are loaded again for each pass.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.masks import Array, Box, boxes, changes
from edgefl.model_graph import TensorSpec
from edgefl.strategies.running_mean import apply_change
from edgefl.strategies.strategy import ClientUpdates, Model
from edgefl.strategies.update_checks import base_of, sum_dtype, values_of

__all__ = ["OrderStatistic", "aggregate_by_order", "median", "trimmed_mean"]

OrderStatistic = Callable[[Array, Array], Array]
"""Takes rows in ascending order and the number of values in each, and returns the middle of each row."""
_SORTED_AT_ONCE = 1 << 16


def median(rows: Array, counts: Array) -> Array:
    """Return the middle value of each row, or the mean of the two in the middle."""
    last = np.maximum(counts - 1, 0)
    pair = np.stack([last // 2, np.minimum(counts // 2, last)], axis=1)
    middle: Array = np.take_along_axis(rows, pair, axis=1).mean(axis=1, dtype=np.float64)
    return middle


def trimmed_mean(trim: float) -> OrderStatistic:
    """Return the mean of each row without this share of its values at each end, rounded down to whole values."""

    def middle(rows: Array, counts: Array) -> Array:
        cut = np.floor(trim * counts).astype(np.int64)
        place = np.arange(rows.shape[1])
        inner = (place >= cut[:, None]) & (place < (counts - cut)[:, None])
        total = np.sum(rows, axis=1, where=inner, dtype=np.float64)
        return np.asarray(total / np.maximum(counts - 2 * cut, 1))

    return middle


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    tensor: TensorSpec
    box: Box
    shape: tuple[int, ...]

    @property
    def entries(self) -> int:
        return math.prod(self.shape)


def aggregate_by_order(model: Model, updates: ClientUpdates, middle: OrderStatistic, memory: int) -> dict[str, Array]:
    """Return every tensor of the next model: each coordinate moved by the middle of its holders' changes.

    `memory` is the number of bytes for the values that are sorted; a single coordinate may always exceed it.
    """
    moved: dict[str, Array] = {}
    for blocks in _passes(model, memory // max(len(updates), 1)):
        _move(model, updates, blocks, middle, moved)
    weights = model.weights
    return {t.name: apply_change(t, weights[t.name], moved.pop(t.name)) for t in model.graph.tensors}


def _passes(model: Model, memory: int) -> Iterator[Sequence[_Block]]:
    """Cut the model into blocks, and yield as many at a time as fit into this many bytes."""
    taken: list[_Block] = []
    used = 0
    for tensor in model.graph.tensors:
        size = sum_dtype(tensor).itemsize
        for box in boxes(tensor.shape, max(memory // size, 1)):
            block = _Block(tensor, box, model.weights[tensor.name][box].shape)
            if taken and used + block.entries * size > memory:
                yield taken
                taken, used = [], 0
            taken.append(block)
            used += block.entries * size
    if taken:
        yield taken


def _move(
    model: Model, updates: ClientUpdates, blocks: Sequence[_Block], middle: OrderStatistic, moved: dict[str, Array]
) -> None:
    """Write the middle of the changes of some blocks to their places."""
    stacks = _gathered(model, updates, blocks)
    for block, stack in zip(blocks, stacks, strict=True):
        name = block.tensor.name
        if name not in moved:
            moved[name] = np.zeros(block.tensor.shape, stack.dtype)
        moved[name][block.box] = _middles(stack.reshape(len(stack), -1), middle).reshape(block.shape)


def _gathered(model: Model, updates: ClientUpdates, blocks: Sequence[_Block]) -> list[Array]:
    """Return for each block the changes of all updates, one after another; infinity where an update holds nothing."""
    count = max(len(updates), 1)
    stacks = [np.full((count, *block.shape), np.inf, sum_dtype(block.tensor)) for block in blocks]
    for number, update in enumerate(updates):
        update.mask.check_model(model.graph)
        if update.result.samples == 0 or update.trust == 0:
            continue
        for block, stack in zip(blocks, stacks, strict=True):
            name = block.tensor.name
            if name in update.tensors:
                base = base_of(block.tensor, update.base, model.weights)
                new = values_of(update.tensors[name])
                into = stack[number, ...]
                found = changes(update.mask, name, new, base, into, absent=np.inf, box=block.box)
                for place, change in found:
                    np.copyto(place, change)
        del update  # or it would be in memory together with the next one
    return stacks


def _middles(stack: Array, middle: OrderStatistic) -> Array:
    """Return the middle of each column; 0 where it has no value."""
    result = np.empty(stack.shape[1], stack.dtype)
    step = max(1, _SORTED_AT_ONCE // stack.shape[0])
    for begin in range(0, stack.shape[1], step):
        rows = np.sort(stack[:, begin : begin + step].T, axis=1)
        counts = np.count_nonzero(np.isfinite(rows), axis=1)
        found = middle(np.where(np.isfinite(rows), rows, 0), counts)
        result[begin : begin + step] = np.where(counts == 0, 0, found)
    return result

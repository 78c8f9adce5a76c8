"""Mask: which part of a model a device keeps, and which part of that it trains.

A mask has three optional parts: trained layers (frozen ones are still used in the forward pass), kept channels of each
group (others are removed), and held weights of single tensors (others are zero). Planners make masks,
`gather_scatter.py` cuts weights with them, and the coordinator compares them by digest.

A mask belongs to one model graph and is checked against it on construction, so an invalid mask cannot exist.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.errors import MaskError
from edgefl.masks.checks import checked_channels, checked_held, checked_layers
from edgefl.model_graph import Cost, ModelGraph, Span, cost_of, kept_shape
from edgefl.values import Digest, FrozenMapping

__all__ = ["BoolArray", "IndexArray", "Mask", "Selector"]

IndexArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Selector = slice | IndexArray
"""Indices along one axis: a slice if they are consecutive, which copies nothing."""


@dataclass(frozen=True, eq=False)  # no slots: cached properties need a __dict__; masks are compared by digest
class Mask:
    """The part of a model that a device keeps and trains. `Mask.of` makes one from plain lists."""

    graph: ModelGraph
    trained: frozenset[str]
    """Names of the trained layers."""
    kept: Mapping[str, IndexArray]
    """Sorted kept channels of every group."""
    held: Mapping[str, BoolArray]
    """Flags of the held weights of a tensor, in its shape within the kept channels. Tensors that are held completely
    are left out."""

    def __post_init__(self) -> None:
        trained, kept = checked_layers(self.graph, self.trained), checked_channels(self.graph, self.kept)
        object.__setattr__(self, "trained", trained)
        object.__setattr__(self, "kept", FrozenMapping(kept))
        object.__setattr__(self, "held", FrozenMapping(checked_held(self.graph, self.shapes, self.held)))

    @classmethod
    def of(
        cls,
        graph: ModelGraph,
        *,
        trained: Iterable[str] | None = None,
        kept: Mapping[str, Iterable[int]] | None = None,
        held: Mapping[str, npt.ArrayLike] | None = None,
    ) -> "Mask":
        """Make a mask: None trains every layer, a missing group is kept, and a missing tensor held, completely."""
        return cls(
            graph,
            frozenset(graph.trainable_layers if trained is None else trained),
            {name: _array_of(channels) for name, channels in (kept or {}).items()},
            {name: np.asarray(where) for name, where in (held or {}).items()},
        )

    @cached_property
    def widths(self) -> Mapping[str, int]:
        """Number of kept channels of each group."""
        return {name: indices.size for name, indices in self.kept.items()}

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of each tensor in the submodel."""
        return {tensor.name: kept_shape(self.graph, tensor, self.widths) for tensor in self.graph.tensors}

    @cached_property
    def selectors(self) -> Mapping[str, tuple[Selector, ...]]:
        """The selectors of each tensor of the submodel, one per axis of the whole tensor."""
        return {tensor.name: self._selectors(tensor.name, tensor.shape) for tensor in self.graph.tensors}

    @cached_property
    def trained_tensors(self) -> tuple[str, ...]:
        """The tensors of the trained layers, in the model's order."""
        return tuple(t.name for t in self.graph.tensors if self.graph.layer_of[t.name] in self.trained)

    @cached_property
    def cost(self) -> Cost:
        """Cost of the submodel."""
        held = {name: int(np.count_nonzero(where)) for name, where in self.held.items()}
        return cost_of(self.graph, self.widths, self.trained, held)

    @cached_property
    def digest(self) -> Digest:
        """Content address of the mask: equal for equal masks of equal models, on every platform.

        SHA-256 over the fields below, each as a little-endian 64-bit length and its bytes. Texts are UTF-8, and names
        are in ascending order of their UTF-8 bytes. First the text "edgefl.mask/1", the model graph's digest, the
        number of trained layers in decimal, and their names. Then for every cut group the text "group " with its name,
        and its channels as a bitmap. Then for every tensor that is not held completely the text "tensor " with its
        name, and its weights as a bitmap. Bit i of a bitmap is bit i % 8 of byte i // 8; the last axis of a tensor
        varies fastest.
        """
        hasher = hashlib.sha256()

        def feed(part: bytes) -> None:
            hasher.update(len(part).to_bytes(8, "little"))
            hasher.update(part)

        feed(b"edgefl.mask/1")
        feed(self.graph.digest.encode())
        feed(str(len(self.trained)).encode())
        for name in sorted(self.trained):
            feed(name.encode())
        for name, where in sorted(self.kept_bitmaps().items()):
            feed(b"group " + name.encode())
            feed(np.packbits(where, bitorder="little").tobytes())
        for name in sorted(self.held):
            feed(b"tensor " + name.encode())
            feed(np.packbits(self.held[name], bitorder="little").tobytes())
        return f"sha256:{hasher.hexdigest()}"

    def index(self, tensor: str) -> tuple[Any, ...]:
        """Return the numpy index of the kept entries of a whole tensor: the outer product of its selectors.

        numpy pairs several index arrays element by element, and moves their axes to the front if a slice is between
        them. So from the first array to the last, each axis gets an array of its own dimension.
        """
        selectors, shape = self.selectors[tensor], self.graph.tensor[tensor].shape
        arrays = [axis for axis, selector in enumerate(selectors) if isinstance(selector, np.ndarray)]
        index: list[Any] = list(selectors)
        if len(arrays) > 1:
            for axis in range(arrays[0], arrays[-1] + 1):
                indices = np.arange(shape[axis])[selectors[axis]]
                index[axis] = indices.reshape((-1,) + (1,) * (arrays[-1] - axis))
        return tuple(index)

    def kept_bitmaps(self) -> dict[str, BoolArray]:
        """Return, for every cut group, a flag per channel."""
        cut = (group for group in self.graph.groups if self.widths[group.name] < group.width)
        return {group.name: _flags(self.kept[group.name], group.width) for group in cut}

    def check_model(self, graph: ModelGraph) -> None:
        """Raise unless this mask belongs to the given model."""
        if self.graph is not graph and self.graph.digest != graph.digest:
            raise MaskError(
                f"a mask of model {self.graph.name!r} is used with model {graph.name!r}",
                fix="Use a mask made for this model: the model digests must be equal.",
            )

    def _selectors(self, tensor: str, shape: tuple[int, ...]) -> tuple[Selector, ...]:
        keeping: list[BoolArray | None] = [None] * len(shape)
        for group, span in self.graph.spans_of.get(tensor, ()):
            if self.widths[group.name] < group.width:
                flags = keeping[span.axis]
                flags = np.ones(shape[span.axis], np.bool_) if flags is None else flags
                flags[_span_indices(span, group.width)] = _flags(self.kept[group.name], group.width)[:, None]
                keeping[span.axis] = flags
        return tuple(slice(None) if flags is None else _selector(flags) for flags in keeping)


def _array_of(channels: Iterable[int]) -> npt.NDArray[Any]:
    # Not np.fromiter, which would quietly turn 1.5 into 1.
    return np.asarray(channels if isinstance(channels, np.ndarray) else list(channels))


def _flags(indices: IndexArray, width: int) -> BoolArray:
    flags = np.zeros(width, np.bool_)
    flags[indices] = True
    return flags


def _span_indices(span: Span, width: int) -> IndexArray:
    """Return the indices of every channel of a span, one row per channel."""
    inner = (np.arange(span.stacks)[:, None] * span.stride + np.arange(span.repeat)).ravel()
    return span.offset + np.arange(width)[:, None] * span.repeat + inner


def _selector(flags: BoolArray) -> Selector:
    indices = np.flatnonzero(flags)
    first, last = int(indices[0]), int(indices[-1])
    if last - first + 1 == indices.size:
        return slice(first, last + 1)
    return indices

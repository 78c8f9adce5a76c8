"""What a model is, without a framework: tensors, layers in order, and the channels that belong together.

The exporter makes a `ModelGraph` once; masks, planners, the coordinator and devices read it. It knows shapes and
connections, never weights, and nothing of torch or ONNX.

A *channel group* is a set of tensor axes that keep or lose the same channels: the outputs of a convolution, its
norm, and the inputs of whatever reads it. A *span* says where the channels of a group lie on one axis. Channel c
occupies the indices

    offset + s * stride + c * repeat + j        for s in 0..stacks-1 and j in 0..repeat-1

which covers the four layouts that occur, and their mixtures:

    plain                                 offset 0, repeat 1, stacks 1
    repeated, after a flatten of C,H,W    repeat = H * W
    stacked, as the gates of an LSTM      stacks = 4, stride = hidden width
    offset, after a concatenation         offset = channels before it

Indices of an axis that no span covers are always kept.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from edgefl.errors import MaskError
from edgefl.values import Count, Digest, Name, PositiveCount, check_fields, digest_of, document, dumps

__all__ = ["ChannelGroup", "Dtype", "Fixed", "Layer", "ModelGraph", "Role", "Span", "TensorSpec", "Term"]


MAX_SIZE = 2**31 - 1
"""The most entries of a tensor: what a Java array can index."""
MAX_STACKS = 2**20


class Role(StrEnum):
    """What a tensor is for. Strategies treat roles differently (FedMRN masks weights, PerFedMask freezes heads)."""

    WEIGHT = "weight"
    BIAS = "bias"
    NORM = "norm"
    HEAD = "head"
    STATISTIC = "statistic"


class Dtype(StrEnum):
    """How the entries of a tensor are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    FLOAT64 = "float64"
    INT64 = "int64"
    INT32 = "int32"


class Fixed(StrEnum):
    """Why the channels of a group can never be cut."""

    INPUT = "input"
    CLASSES = "classes"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of the model."""

    name: Name
    shape: tuple[PositiveCount, ...]
    role: Role
    uses: Count = 0
    """Multiply-adds that each entry takes part in for one sample: output positions of a convolution, 1 in a
    linear layer, time steps in an LSTM, 0 in an embedding."""
    dtype: Dtype = Dtype.FLOAT32

    def __post_init__(self) -> None:
        check_fields(self)
        if self.size > MAX_SIZE:
            raise MaskError(
                f"tensor {self.name!r} of shape {self.shape} has {self.size:,} entries",
                fix=f"A tensor has at most {MAX_SIZE:,}.",
            )

    @property
    def size(self) -> int:
        """How many numbers the tensor holds."""
        return math.prod(self.shape)

    @property
    def item_bytes(self) -> int:
        """Bytes of one entry."""
        return int(self.dtype.removeprefix("float").removeprefix("int")) // 8


@dataclass(frozen=True, slots=True)
class Term:
    """A count that shrinks with the model: `coefficient` times the kept width of each named group."""

    coefficient: Count
    groups: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Layer:
    """A step of the forward pass that is trained or frozen as a whole."""

    name: Name
    kind: Name
    block: Name
    """The block it belongs to; layers of a block stand next to each other."""
    tensors: tuple[Name, ...]
    inputs: tuple[Name, ...] = ()
    """The earlier layers whose outputs it reads; none means that it reads the model's input."""
    activations: tuple[Term, ...] = ()
    """Elements of its output for one sample: what training has to remember of it."""
    products: tuple[Term, ...] = ()
    """Multiply-adds for one sample between activations, such as attention scores."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Span:
    """Where the channels of a group lie on one axis of one tensor (see the top of this file)."""

    tensor: Name
    axis: Count
    offset: Count = 0
    repeat: PositiveCount = 1
    stacks: PositiveCount = 1
    stride: Count = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.stacks > MAX_STACKS:
            raise MaskError(
                f"a span of {self.tensor!r} has {self.stacks:,} stacks", fix=f"It has at most {MAX_STACKS:,}."
            )

    @property
    def per_channel(self) -> int:
        """How many indices of the axis one channel occupies."""
        return self.repeat * self.stacks

    def last_index(self, width: int) -> int:
        """The largest index that `width` channels reach."""
        return self.offset + (self.stacks - 1) * self.stride + width * self.repeat - 1


@dataclass(frozen=True, slots=True)
class ChannelGroup:
    """Axes that keep or lose the same channels."""

    name: Name
    width: PositiveCount
    spans: tuple[Span, ...]
    multiple_of: PositiveCount = 1
    """A kept width must be a multiple of this: the number of groups of a group norm that reads the channels."""
    fixed: Fixed | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@document("model_graph", version=1)
@dataclass(frozen=True)  # no slots: the cached look-ups below need a place
class ModelGraph:
    """The framework-free description of a model. Anything inconsistent is refused when it is made."""

    name: Name
    tensors: tuple[TensorSpec, ...]
    layers: tuple[Layer, ...]
    groups: tuple[ChannelGroup, ...]
    input_elements: Count = 0
    """Elements of one input sample."""

    def __post_init__(self) -> None:
        check_fields(self)
        _check_tensors(self)
        _check_layers(self)
        _check_groups(self)

    @cached_property
    def tensor(self) -> Mapping[str, TensorSpec]:
        """The tensors by name."""
        return {tensor.name: tensor for tensor in self.tensors}

    @cached_property
    def layer(self) -> Mapping[str, Layer]:
        """The layers by name."""
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def group(self) -> Mapping[str, ChannelGroup]:
        """The channel groups by name."""
        return {group.name: group for group in self.groups}

    @cached_property
    def trainable_layers(self) -> tuple[str, ...]:
        """The layers that have tensors, in order; the others can be neither trained nor frozen."""
        return tuple(layer.name for layer in self.layers if layer.tensors)

    @cached_property
    def layer_of(self) -> Mapping[str, str]:
        """The layer that each tensor belongs to."""
        return {tensor: layer.name for layer in self.layers for tensor in layer.tensors}

    @cached_property
    def blocks(self) -> Mapping[str, tuple[str, ...]]:
        """The layers of each block, in order."""
        found: dict[str, tuple[str, ...]] = {}
        for layer in self.layers:
            found[layer.block] = (*found.get(layer.block, ()), layer.name)
        return found

    @cached_property
    def spans_of(self) -> Mapping[str, tuple[tuple[ChannelGroup, Span], ...]]:
        """The spans that lie on each tensor, with their groups."""
        found: dict[str, tuple[tuple[ChannelGroup, Span], ...]] = {}
        for group in self.groups:
            for span in group.spans:
                found[span.tensor] = (*found.get(span.tensor, ()), (group, span))
        return found

    @cached_property
    def parameters(self) -> int:
        """Trainable numbers of the whole model; running statistics are not parameters."""
        return sum(tensor.size for tensor in self.tensors if tensor.role is not Role.STATISTIC)

    @cached_property
    def digest(self) -> Digest:
        """The content address of this description."""
        return digest_of(dumps(self).encode())


def _check_tensors(graph: ModelGraph) -> None:
    _refuse_twins("tensor", (tensor.name for tensor in graph.tensors))
    owned = [name for layer in graph.layers for name in layer.tensors]
    _refuse_twins("tensor among the layers", owned)
    missing = {tensor.name for tensor in graph.tensors} ^ set(owned)
    if missing:
        raise MaskError(
            f"model {graph.name!r}: tensor {min(missing)!r} is not both described and owned by a layer",
            fix="List every tensor once in `tensors` and once in the layer it belongs to.",
        )


def _check_layers(graph: ModelGraph) -> None:
    _refuse_twins("layer", (layer.name for layer in graph.layers))
    groups = {group.name for group in graph.groups}
    before: set[str] = set()
    closed: set[str] = set()
    current = ""
    for layer in graph.layers:
        if layer.block != current:
            closed.add(current)
            current = layer.block
        if current in closed:
            raise MaskError(
                f"block {current!r} goes on at layer {layer.name!r} after another block began",
                fix="Put the layers of a block next to each other.",
            )
        if not before.issuperset(layer.inputs):
            raise MaskError(
                f"layer {layer.name!r} reads {sorted(set(layer.inputs) - before)}, which do not come before it",
                fix="List layers in the order of the forward pass.",
            )
        named = {group for term in (*layer.activations, *layer.products) for group in term.groups}
        if not named <= groups:
            raise MaskError(
                f"layer {layer.name!r} counts with the unknown channel group {min(named - groups)!r}",
                fix="Name groups of this model.",
            )
        before.add(layer.name)


def _check_groups(graph: ModelGraph) -> None:
    _refuse_twins("channel group", (group.name for group in graph.groups))
    runs: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for group in graph.groups:
        if group.width % group.multiple_of:
            raise MaskError(
                f"channel group {group.name!r} has {group.width} channels in multiples of {group.multiple_of}",
                fix="Its width must be a multiple of its norm's groups.",
            )
        for span in group.spans:
            _check_span(graph, group, span)
            starts = (span.offset + stack * span.stride for stack in range(span.stacks))
            taken = runs.setdefault((span.tensor, span.axis), [])
            taken.extend((start, start + group.width * span.repeat) for start in starts)
    for (tensor, axis), taken in runs.items():
        taken.sort()
        if any(end > start for (_, end), (start, _) in itertools.pairwise(taken)):
            raise MaskError(
                f"channels of axis {axis} of tensor {tensor!r} are claimed twice",
                fix="Spans of one axis must not overlap: check offset, repeat, stacks and stride.",
            )


def _check_span(graph: ModelGraph, group: ChannelGroup, span: Span) -> None:
    shape = graph.tensor[span.tensor].shape if span.tensor in graph.tensor else ()
    if not 0 <= span.axis < len(shape):
        raise MaskError(
            f"group {group.name!r} names axis {span.axis} of tensor {span.tensor!r}, which does not exist",
            fix="Name an axis of a tensor of this model.",
        )
    if span.last_index(group.width) >= shape[span.axis]:
        raise MaskError(
            f"group {group.name!r} does not fit axis {span.axis} of {span.tensor!r}, which has {shape[span.axis]}",
            fix="Check the group's width and the span's offset, repeat, stacks and stride.",
        )


def _refuse_twins(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen or "#" in name:
            raise MaskError(
                f"the {what} {name!r} is listed twice or has a '#' in its name",
                fix="Give each its own name; '#' is kept for parts of tensors on the wire.",
            )
        seen.add(name)

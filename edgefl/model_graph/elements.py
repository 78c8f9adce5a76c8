"""Elements of a model graph: tensors, layers, channel groups, and the spans of their channels.

A *channel group* is a set of tensor axes that keep or lose the same channels: the outputs of a convolution, its norm,
and the inputs of the layers that read it. A *span* describes where the channels of a group lie on one axis. Channel c
occupies the indices

    offset + s * stride + c * repeat + j        for s in 0..stacks-1 and j in 0..repeat-1

which covers the four layouts that occur, and their combinations:

    plain                                 offset 0, repeat 1, stacks 1
    repeated, after a flatten of C,H,W    repeat = H * W
    stacked, as the gates of an LSTM      stacks = 4, stride = hidden width
    offset, after a concatenation         offset = channels before it

Indices of an axis that no span covers are always kept.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from edgefl.errors import MaskError
from edgefl.values import Count, Name, PositiveCount, check_fields

__all__ = ["ChannelGroup", "Dtype", "Fixed", "Layer", "TensorRole", "Span", "TensorSpec", "Term"]

MAX_SIZE = 2**31 - 1
"""Maximum number of entries of a tensor: what a Java array can index."""
MAX_AXES = 16
MAX_STACKS = 2**20
"""Maximum number of stacks in a model: a description of a few lines must not take gigabytes to check."""


class TensorRole(StrEnum):
    """Role of a tensor. Strategies treat roles differently (FedMRN masks weights, PerFedMask freezes heads)."""

    WEIGHT = "weight"
    BIAS = "bias"
    NORM = "norm"
    HEAD = "head"
    STATISTIC = "statistic"


class Dtype(StrEnum):
    """Data type of a tensor's entries."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    FLOAT64 = "float64"
    INT64 = "int64"
    INT32 = "int32"


class Fixed(StrEnum):
    """Reason why the channels of a group can never be cut."""

    INPUT = "input"
    CLASSES = "classes"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of the model."""

    name: Name
    shape: tuple[PositiveCount, ...]
    role: TensorRole
    uses: Count = 0
    """Multiply-adds that each entry takes part in for one sample: output positions of a convolution, 1 in a
    linear layer, time steps in an LSTM, 0 in an embedding."""
    dtype: Dtype = Dtype.FLOAT32

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.shape) > MAX_AXES or self.size > MAX_SIZE:
            raise MaskError(
                f"tensor {self.name!r} has {len(self.shape)} axes, or too many entries",
                fix=f"A tensor has at most {MAX_AXES} axes and {MAX_SIZE:,} entries.",
            )

    @property
    def size(self) -> int:
        """Number of entries."""
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
    """Its block; the layers of a block are consecutive."""
    tensors: tuple[Name, ...]
    inputs: tuple[Name, ...] = ()
    """The earlier layers whose outputs it reads."""
    activations: tuple[Term, ...] = ()
    """Elements of its output for one sample, which training must save."""
    products: tuple[Term, ...] = ()
    """Multiply-adds for one sample between activations, such as attention scores."""
    reads_input: bool = False
    """Whether it also reads the model's input; a layer without `inputs` reads nothing else."""

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

    @property
    def per_channel(self) -> int:
        """Number of indices of the axis per channel."""
        return self.repeat * self.stacks

    def last_index(self, width: int) -> int:
        """Return the largest index that `width` channels reach."""
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

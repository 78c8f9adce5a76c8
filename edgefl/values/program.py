"""Program: a training step or a prediction, compiled by ExecuTorch for one form of submodel.

Shapes in a program are fixed. It depends on the widths of the channel groups, on the layers that it trains and on the
batch size, but neither on weights, which are inputs, nor on which channels a mask keeps. So a short ladder of programs
serves every device and every round. `ProgramSpec` says what to compile; `Program` is the document that a plan names and
that a bundle's manifest lists.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.field_error import FieldError
from edgefl.values.quantities import Bytes, PositiveCount
from edgefl.values.schema import document, dumps
from edgefl.values.strings import Digest, Name, digest_of

__all__ = ["SAMPLE_WEIGHTS", "Program", "ProgramRole", "ProgramSpec", "runs_on"]

SAMPLE_WEIGHTS = "sample_weights"
"""The input of a training program that says how much each sample counts: 0 for what fills up a batch."""

_VERSION = re.compile(r"\d+(?:\.\d+)*")


def runs_on(version: str, made_with: str) -> bool:
    """Return whether a runtime of a version runs what a compiler made: one of its own version or an older one.

    A version that cannot be read may be any.
    """
    runtime, compiler = _numbers(version), _numbers(made_with)
    return not runtime or not compiler or compiler <= runtime


def _numbers(text: str) -> tuple[int, ...]:
    found = _VERSION.search(text)
    return () if found is None else tuple(map(int, found[0].split(".")))


class ProgramRole(StrEnum):
    """What a program computes."""

    TRAIN = "train"
    """Loss, correctness, gradients and new statistics of one training step."""
    INFER = "infer"
    """The model's outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSpec:
    """What to compile. Equal specifications have equal keys, on every machine."""

    role: ProgramRole
    """What it computes."""

    model: Digest
    """Digest of the model graph."""

    graph: Digest
    """Digest of the bundle's ONNX graph that computes the same: it stands for the operations and the loss."""

    widths: Mapping[str, PositiveCount]
    """Channels of every channel group."""

    trained: tuple[Name, ...]
    """Layers whose gradients and new statistics it returns, in the model's order; none for a prediction."""

    batch_size: PositiveCount
    """The number of samples of x. A smaller batch is filled up, and what is filled up does not count."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.role is ProgramRole.TRAIN) != bool(self.trained):
            raise FieldError(
                f"has {len(self.trained)} layers in a program that is to {self.role.value}",
                fix="A training program trains at least one layer, and one for inference none",
                path=("trained",),
            )

    @property
    def key(self) -> Digest:
        """The content address of the specification."""
        return digest_of(dumps(self).encode())


@document("program", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A compiled program, and how it is called."""

    spec: ProgramSpec
    """What it was compiled for."""

    inputs: tuple[Name, ...]
    """Its inputs in their order: x, y, sample_weights and others of a training step, then the tensors of the model."""

    outputs: tuple[Name, ...]
    """Its outputs in their order: those of the ONNX graph, without gradients and statistics of frozen layers."""

    pte: Digest
    """Digest of the program file."""

    size: Bytes
    """Bytes of the program file."""

    peak_bytes: Bytes
    """Memory that it plans for what it computes; its inputs come on top."""

    made_with: Name
    """The compiler, such as 'executorch 1.4.1'. A runtime runs what was compiled for its version or an older one."""

    def __post_init__(self) -> None:
        check_fields(self)

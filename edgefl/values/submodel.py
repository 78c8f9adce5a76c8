"""Submodel: every tensor that a device gets in a task, and what its update must hold.

The coordinator makes it from the mask and the rule of a task, and the plan names it (`ClientPlan.tensors`). With it a
client needs neither the model graph nor the widths of the mask. Tasks with submodels of the same form share it: it says
nothing of values, of which channels are kept, or of which single weights are held.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.field_error import FieldError
from edgefl.values.quantities import Count
from edgefl.values.schema import document
from edgefl.values.strings import Identifier, Name, Text

__all__ = ["SentPayload", "Submodel", "SubmodelTensor"]

_LONGEST = 256
TensorName = Annotated[
    str,
    Text(
        f"a tensor's name of 1 to {_LONGEST} printable characters",
        "'conv1.weight'",
        lambda text: 0 < len(text) <= _LONGEST and text.isprintable(),
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmodelTensor:
    """One tensor of a submodel."""

    name: TensorName
    """Its name in the graph, in the weights and in the update."""

    shape: tuple[Count, ...]
    """Its sizes at the widths of the submodel; empty for a scalar."""

    dtype: Identifier
    """Type of its entries: float32 or int64, rarely float16, float64 or int32."""

    role: Identifier
    """What it is: weight, bias, norm, head or statistic. All but statistics are parameters."""

    layer: Name
    """The layer that it belongs to. Layers are trained or frozen as a whole."""

    trained: bool
    """Whether the rule trains it: the graph returns its gradient, or for a statistic its new value."""

    sent: Identifier | None
    """Codec of the payload of this name in the update; None if the update has none."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPayload:
    """A payload of the update that is not simply a tensor of the submodel, in its shape and type."""

    name: TensorName
    """Its name in the update."""

    shape: tuple[Count, ...]
    """Its shape."""

    codec: Identifier
    """Its codec."""

    dtype: Identifier | None
    """Type of its values; None if the codec has no values of its own, as bits and counts."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("submodel", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Submodel:
    """The tensors of a task's submodel, in the order of the model graph, and what is sent of them.

    The update holds exactly the payloads of `tensors` with a codec, and those of `payloads`. A rule that prunes before
    it trains (`channel_pruning`, `pruned_noise`) sends the same payloads at the widths of the mask that it sends along;
    the shapes here are the planned ones.
    """

    tensors: tuple[SubmodelTensor, ...]
    """Every tensor of the submodel."""

    payloads: tuple[SentPayload, ...] = ()
    """Payloads of other names, shapes or types than those of `tensors`. A payload with the name of a tensor replaces
    that tensor's own form."""

    def __post_init__(self) -> None:
        check_fields(self)
        for path, names in (
            ("tensors", [tensor.name for tensor in self.tensors]),
            ("payloads", [payload.name for payload in self.payloads]),
        ):
            twice = next((name for name, count in Counter(names).items() if count > 1), None)
            if twice is not None:
                raise FieldError(f"names {twice!r} twice", fix="Name each once", path=(path,))

"""Measurement: steps of a federation's own model to time, so that a client of any language can profile itself.

The coordinator makes it (`GET /v1/measurement`). A client times each case and fits `CostFit` to the times, as
docs/profile.md says; it needs to know neither the model graph nor how work is counted.
"""

from dataclasses import dataclass, field

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.quantities import Bytes, Count, Fraction, PositiveCount
from edgefl.values.schema import document
from edgefl.values.strings import Digest, Name

__all__ = ["Measurement", "MeasurementCase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementCase:
    """A training step to time: a graph, the weights that go into it, and a batch size. Its work is that of one step."""

    width: Fraction
    """Share of the channels, for people; 1 is the whole model."""

    batch_size: PositiveCount
    """Samples of the step."""

    graph: Digest
    """The training graph."""

    weights: Digest
    """The weights that go into it, as a body."""

    submodel: Digest
    """The tensors of the submodel, and which of them the graph trains, as `ClientPlan.tensors` names them."""

    forward_multiply_adds: Count
    """Multiply-adds of the forward pass."""

    backward_multiply_adds: Count
    """Multiply-adds of the backward pass."""

    activation_bytes: Bytes
    """Bytes of activations."""

    parameter_bytes: Bytes
    """Bytes of all tensors of the submodel."""

    trained_parameters: Count
    """Parameters that the step updates."""

    program: Digest | None = field(default=None, metadata={"absent": "the client times the graph", "added": True})
    """The `Program` that computes what `graph` does, for a client whose engine runs programs; else None. It takes
    `batch_size` samples, and may return gradients of more layers than `submodel` trains."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("measurement", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a client times to profile itself, from the least work to the most."""

    model: Name
    """The model, for `CostFit.measured_on`."""

    cases: tuple[MeasurementCase, ...]
    """The cases. Those with the same graph and weights are a group."""

    def __post_init__(self) -> None:
        check_fields(self)

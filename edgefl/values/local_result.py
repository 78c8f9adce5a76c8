"""LocalResult: what one device reports after a round.

Made by the device's runtime, sent with the upload, read by the strategy that aggregates. The tensors travel
in a binary body of their own; this names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgefl.values.quantities import Bytes, Count, Fraction, Real
from edgefl.values.records import check_fields
from edgefl.values.schema import document
from edgefl.values.telemetry import Telemetry
from edgefl.values.texts import Digest, Identifier, Name

__all__ = ["PayloadReference", "LocalResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadReference:
    """The binary body that holds the tensors of a result."""

    codec: Name
    """Name of the codec that made it."""

    digest: Digest
    """Digest of the body's bytes."""

    size_bytes: Bytes
    """Size of the body in bytes."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("local_result", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalResult:
    """What one device reports after a round that it finished.

    Training that diverged has no result, as its loss is no number and its tensors are of no use: the device
    refuses the task instead, with a reason.
    """

    task_id: Identifier
    """The work that this answers, from the plan."""

    device_id: Identifier
    """The device that did it."""

    round: Count
    """Number of the round, from 0."""

    samples: Count
    """Number of different training samples on the device, the weight of its result in an average."""

    steps: Count
    """Number of training steps that were done."""

    loss: Real
    """Mean training loss over the round's last pass. Always finite."""

    payload: PayloadReference | None = field(metadata={"absent": "nothing uploaded"})
    """The tensors, or None where they stay on the device, as personal models do. Never so by default."""

    telemetry: Telemetry
    """What the round cost."""

    accuracy: Fraction | None = field(default=None, metadata={"absent": "not evaluated"})
    """Share of right answers, 0 to 1, on the device's held-out data, or None if not evaluated."""

    metrics: Mapping[str, Real] = field(default_factory=dict)
    """Further numbers by name, for people and plots."""

    def __post_init__(self) -> None:
        check_fields(self)

"""LocalResult: what one device reports after a round.

Made by the device's runtime, read by the strategy that aggregates. It travels inside the binary body that carries the
tensors (`edgefl.wire.encode_result`): one file that a device can keep, send, and send again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.field_error import FieldError
from edgefl.values.quantities import Count, Fraction, Real
from edgefl.values.schema import document
from edgefl.values.strings import Identifier
from edgefl.values.telemetry import Telemetry

__all__ = ["LocalResult"]

_MOST_METRICS = 64


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

    telemetry: Telemetry
    """What the round cost."""

    accuracy: Fraction | None = field(default=None, metadata={"absent": "not evaluated"})
    """Share of right answers, 0 to 1, on the device's held-out data, or None if not evaluated."""

    metrics: Mapping[str, Real] = field(default_factory=dict)
    """Further numbers by name, for people and plots; 64 of them at most."""

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.metrics) > _MOST_METRICS:
            raise FieldError(
                f"has {len(self.metrics)} entries",
                fix=f"Send {_MOST_METRICS} at most: they are for people",
                path=("metrics",),
            )

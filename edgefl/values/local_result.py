"""LocalResult: a device's report of its task.

The device runtime makes it and the strategy reads it when it aggregates. It is sent inside the binary body that carries
the tensors (`edgefl.wire.encode_result`): one file that a device can store, send, and send again.
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
    """A device's report of a finished task.

    Training that diverged has no result: its loss is not a number and its tensors are useless, so the device refuses
    the task with a reason instead.
    """

    task_id: Identifier
    """The task it reports on, from the plan."""

    device_id: Identifier
    """The device that did the task."""

    round: Count
    """Number of the round, from 0."""

    samples: Count
    """Number of distinct training samples on the device: its weight in an average."""

    steps: Count
    """Number of training steps done."""

    loss: Real
    """Mean training loss over the round's last pass. Always finite."""

    telemetry: Telemetry
    """What the round cost."""

    accuracy: Fraction | None = field(default=None, metadata={"absent": "not evaluated"})
    """Accuracy, 0 to 1, on the device's held-out data, or None if not evaluated."""

    metrics: Mapping[str, Real] = field(default_factory=dict)
    """Further numbers by name, for people and plots; at most 64."""

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.metrics) > _MOST_METRICS:
            raise FieldError(
                f"has {len(self.metrics)} entries",
                fix=f"Send at most {_MOST_METRICS}",
                path=("metrics",),
            )

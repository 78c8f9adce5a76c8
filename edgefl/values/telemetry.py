"""Telemetry: what one training round cost the device in time, memory, energy, heat and traffic.

The device runtime records it during a round and sends it in `LocalResult`; planners and people read it. Each part
states whether it was measured or estimated, from which source, and in which scope.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.values.dataclass_fields import check_fields, check_order
from edgefl.values.field_error import FieldError
from edgefl.values.provenance import Provenance, Scope
from edgefl.values.quantities import Bytes, Celsius, Hertz, Joules, PositiveCount, Seconds, Watts
from edgefl.values.schema import document
from edgefl.values.strings import Name

__all__ = ["Latency", "Memory", "Energy", "Thermal", "ThermalStatus", "Transfer", "Telemetry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Times of the round."""

    load_seconds: Seconds
    """Time to load the graph into the engine."""

    first_step_seconds: Seconds
    """Time of the first training step, which also pays for the engine's warm-up."""

    min_step_seconds: Seconds
    """Time of the fastest training step."""

    p50_step_seconds: Seconds
    """Median time of a training step."""

    p90_step_seconds: Seconds
    """90th percentile of the training step times."""

    steps_measured: PositiveCount
    """Number of training steps behind min, p50 and p90."""

    round_seconds: Seconds
    """Time of the whole round on the device, including the steps."""

    source: Name
    """The clock, such as 'monotonic clock', or the basis of the estimate."""

    scope: Scope
    """What the times cover."""

    provenance: Provenance
    """Measured or estimated."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_order(self, "min_step_seconds", "p50_step_seconds", "p90_step_seconds", "round_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory use of the round."""

    baseline_bytes: Bytes
    """Bytes in use before the round began."""

    peak_bytes: Bytes
    """Peak bytes in use during the round, including the baseline."""

    source: Name
    """Source of the numbers, such as 'VmHWM'."""

    scope: Scope
    """What the numbers cover."""

    provenance: Provenance
    """Measured or estimated."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_order(self, "baseline_bytes", "peak_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy use of the round."""

    joules: Joules
    """Joules counted by the source during the round, including idle power (see `idle_watts`)."""

    source: Name
    """The instrument, such as 'intel-rapl' or 'pmic', or the basis of the estimate."""

    scope: Scope
    """What the joules cover."""

    provenance: Provenance
    """Measured or estimated."""

    sample_hertz: Hertz | None = field(default=None, metadata={"label": "sample rate", "absent": "not sampled"})
    """Samples per second if joules are summed from power samples; None if the source counts joules."""

    idle_watts: Watts | None = None
    """Watts that the same source shows on an idle device, or None if not known."""

    plugged: bool | None = None
    """Whether the device was on external power, or None if not known."""

    def __post_init__(self) -> None:
        check_fields(self)


_ADDED = {"added": True}


class ThermalStatus(StrEnum):
    """Thermal pressure as a phone's system reports it, from none to the worst. The names are Android's."""

    NONE = "none"
    """No throttling."""
    LIGHT = "light"
    """Throttling that its user does not notice."""
    MODERATE = "moderate"
    """Throttling that its user hardly notices."""
    SEVERE = "severe"
    """Throttling that its user notices."""
    CRITICAL = "critical"
    """The system has done everything to reduce power."""
    EMERGENCY = "emergency"
    """Parts of the device are shutting down."""
    SHUTDOWN = "shutdown"
    """The device must be switched off at once."""

    @property
    def severity(self) -> int:
        """0 for none, 6 for shutdown."""
        return list(ThermalStatus).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thermal:
    """Heat of the device. Systems expose different parts of it, so each may be None, but not all."""

    start_celsius: Celsius | None = None
    """Degrees Celsius when the round began."""

    end_celsius: Celsius | None = None
    """Degrees Celsius when the round ended."""

    throttled: bool | None = None
    """Whether the system throttled the processor during the round because of heat or power."""

    start_status: ThermalStatus | None = field(default=None, metadata=_ADDED)
    """Thermal status by the system when the round began."""

    end_status: ThermalStatus | None = field(default=None, metadata=_ADDED)
    """Thermal status by the system when the round ended."""

    def __post_init__(self) -> None:
        check_fields(self)
        names = ("start_celsius", "end_celsius", "throttled", "start_status", "end_status")
        if all(getattr(self, name) is None for name in names):
            raise FieldError(
                f"is empty: {', '.join(names[:-1])} and {names[-1]} are all null",
                fix="Give at least one of them, or null for the whole object",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Network traffic as sent, including headers."""

    down_bytes: Bytes
    """Bytes that the device received."""

    up_bytes: Bytes
    """Bytes that the device sent, not counting the message that carries this number."""

    provenance: Provenance = field(default=Provenance.MEASURED, metadata=_ADDED)
    """Measured, or estimated where a client cannot see bytes as sent, because its HTTP stack unpacks silently."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("telemetry", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """What one round cost the device."""

    latency: Latency
    """Time."""

    memory: Memory
    """Memory."""

    transfer: Transfer
    """Network."""

    threads: PositiveCount
    """Engine threads."""

    energy: Energy | None = None
    """Energy, or None if it was neither measured nor estimated."""

    thermal: Thermal | None = None
    """Temperature, or None if the system does not expose it."""

    def __post_init__(self) -> None:
        check_fields(self)

"""Telemetry: what one training round cost the device in time, memory, energy, heat and network.

Made by the device's runtime during a round, sent inside `LocalResult`, read by the planner and by people.
Each part says whether it was measured or estimated, by which source, and in which scope.
"""

from dataclasses import dataclass, field

from edgefl.values.dataclass_fields import check_fields, check_order
from edgefl.values.field_error import FieldError
from edgefl.values.provenance import Provenance, Scope
from edgefl.values.quantities import Bytes, Celsius, Hertz, Joules, PositiveCount, Seconds, Watts
from edgefl.values.schema import document
from edgefl.values.strings import Name

__all__ = ["Latency", "Memory", "Energy", "Thermal", "Transfer", "Telemetry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long the round took."""

    load_seconds: Seconds
    """Time to load the graph into the engine."""

    first_step_seconds: Seconds
    """Time of the first training step, which also pays for the engine's warm-up."""

    min_step_seconds: Seconds
    """Time of the fastest training step."""

    p50_step_seconds: Seconds
    """Median time of a training step."""

    p90_step_seconds: Seconds
    """Time that nine of ten training steps stayed within."""

    steps_measured: PositiveCount
    """Number of training steps behind min, p50 and p90."""

    round_seconds: Seconds
    """Time of the whole round on the device, the steps included."""

    source: Name
    """The clock, such as 'monotonic clock', or what the estimate rests on."""

    scope: Scope
    """What the times cover."""

    provenance: Provenance
    """Measured or estimated."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_order(self, "min_step_seconds", "p50_step_seconds", "p90_step_seconds", "round_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much memory the round took."""

    baseline_bytes: Bytes
    """Bytes in use before the round began."""

    peak_bytes: Bytes
    """The most bytes in use at any time of the round, the baseline included."""

    source: Name
    """Where the numbers come from, such as 'VmHWM'."""

    scope: Scope
    """What the numbers cover."""

    provenance: Provenance
    """Measured or estimated."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_order(self, "baseline_bytes", "peak_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """How much energy the round took."""

    joules: Joules
    """Joules that the source counted during the round. The idle share is included: `idle_watts` tells it."""

    source: Name
    """The instrument, such as 'intel-rapl' or 'pmic', or what the estimate rests on."""

    scope: Scope
    """What the joules cover."""

    provenance: Provenance
    """Measured or estimated."""

    sample_hertz: Hertz | None = field(default=None, metadata={"label": "sample rate", "absent": "not sampled"})
    """Samples a second, where joules are summed from power samples; None where the source counts joules."""

    idle_watts: Watts | None = None
    """Watts that the same source shows while the device does nothing, or None if not known."""

    plugged: bool | None = None
    """Whether the device was on external power, or None if not known."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thermal:
    """How warm the device got. Systems show different parts of this, so each may be None, but not all."""

    start_celsius: Celsius | None = None
    """Degrees Celsius when the round began."""

    end_celsius: Celsius | None = None
    """Degrees Celsius when the round ended."""

    throttled: bool | None = None
    """Whether the system slowed the processor down because of heat or power during the round."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.start_celsius is None and self.end_celsius is None and self.throttled is None:
            raise FieldError(
                "says nothing: start_celsius, end_celsius and throttled are all null",
                fix="Give one of them, or give null in place of the whole object",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """How much went over the network, as sent, headers included."""

    down_bytes: Bytes
    """Bytes that the device received."""

    up_bytes: Bytes
    """Bytes that the device sent. The message that carries this number cannot count itself."""

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
    """Threads that the engine ran with."""

    energy: Energy | None = None
    """Energy, or None where nothing shows it and nothing was estimated."""

    thermal: Thermal | None = None
    """Heat, or None where the system does not show it."""

    def __post_init__(self) -> None:
        check_fields(self)

"""A class of devices in a simulated fleet: speed, memory, network, power and reliability.

`known_classes.py` has some that are built in; a file may describe others. A class says what a device of it would have
measured of itself: `simulated_profile`.
"""

from dataclasses import dataclass, field

from edgefl.values import (
    Budget,
    Bytes,
    BytesPerSecond,
    CostFit,
    DeviceProfile,
    FieldError,
    Fraction,
    Machine,
    Name,
    PositiveCount,
    PowerSource,
    Provenance,
    Ratio,
    Scope,
    Seconds,
    Watts,
    check_fields,
)

__all__ = ["DeviceClass", "simulated_profile"]

_MULTIPLY_ADDS_PER_SECOND = 2e9
"""Of a device of speed 1: about what a Raspberry Pi 4 reaches on a small network."""
_PROCESS_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A class of devices."""

    name: Name = "device"
    share: Ratio = 1.0
    """How many of the devices are of this class, relative to the other classes."""
    speed: Ratio = 1.0
    """How fast it trains; 1 is about a Raspberry Pi 4."""
    memory_bytes: Bytes = 2 * 2**30
    """Memory that training may use."""
    download_bytes_per_second: BytesPerSecond | None = field(default=None, metadata={"absent": "takes no time"})
    upload_bytes_per_second: BytesPerSecond | None = field(default=None, metadata={"absent": "takes no time"})
    idle_watts: Watts | None = field(default=None, metadata={"absent": "not known"})
    """While it waits for the network."""
    busy_watts: Watts | None = field(default=None, metadata={"absent": "not known"})
    """While it trains."""
    online_seconds: Seconds | None = field(default=None, metadata={"absent": "always there"})
    """How long it stays online at a time, on average; set it together with `offline_seconds`."""
    offline_seconds: Seconds | None = field(default=None, metadata={"absent": "always there"})
    fails: Fraction = 0.0
    """Share of its tasks that never return."""
    limits: Budget = field(default_factory=Budget)
    """Limits of its owner, beside those of deadline and memory."""
    most_epochs: PositiveCount | None = field(default=None, metadata={"absent": "as many as asked"})
    """The most epochs that it runs in a round: how systems that do not plan treat a slow device."""
    source: str | None = field(default=None, metadata={"absent": "not said"})
    """Where the figures come from."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.speed <= 0:
            raise FieldError("is 0, so a task would never end", fix="Write a number above 0", path=("speed",))
        for rate in ("download_bytes_per_second", "upload_bytes_per_second"):
            if getattr(self, rate) == 0:
                raise FieldError(
                    "is 0, so nothing would ever arrive", fix="Write a rate, or leave it out", path=(rate,)
                )
        if (self.online_seconds is None) != (self.offline_seconds is None) or self.online_seconds == 0:
            raise FieldError(
                "must be set together with `offline_seconds`, and both must be above 0",
                fix="Write both, or neither: then the device is always online",
                path=("online_seconds",),
            )


def simulated_profile(kind: DeviceClass) -> DeviceProfile:
    """Return the profile that a device of this class would measure."""
    each = 1 / (_MULTIPLY_ADDS_PER_SECOND * kind.speed)
    return DeviceProfile(
        device_name=kind.name,
        machine=Machine(architecture="simulated", system="simulated", cores=1),
        engine="onnxruntime",
        threads=1,
        cost=CostFit(
            overhead_seconds=1e-3 / kind.speed,
            forward_seconds_per_multiply_add=each,
            backward_seconds_per_multiply_add=each,
            memory_base_bytes=_PROCESS_BYTES,
            memory_bytes_per_activation_byte=2.0,
            memory_bytes_per_parameter_byte=1.0,
            memory_bytes_per_trained_parameter=12.0,
            relative_error=0.1,
            measurements=3,
            measured_on="nothing: simulated",
        ),
        memory_total_bytes=kind.memory_bytes,
        memory_free_bytes=kind.memory_bytes,
        storage_free_bytes=8 * 2**30,
        measured_at="2000-01-01T00:00:00Z",
        download_bytes_per_second=kind.download_bytes_per_second,
        upload_bytes_per_second=kind.upload_bytes_per_second,
        power=None if kind.busy_watts is None else _power(kind),
    )


def _power(kind: DeviceClass) -> PowerSource:
    return PowerSource(
        source=f"device class {kind.name}",
        scope=Scope.DEVICE,
        provenance=Provenance.ESTIMATED,
        idle_watts=kind.idle_watts,
        busy_watts=kind.busy_watts,
    )

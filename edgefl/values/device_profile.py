"""DeviceProfile: what a device can do, as measured on the device itself.

`edgefl profile` makes it, a device sends it when it enrols, and the planner turns it into a `Budget`.
"""

from dataclasses import dataclass, field

from edgefl.values.dataclass_fields import check_fields, check_order
from edgefl.values.provenance import Provenance, Scope
from edgefl.values.quantities import (
    LARGEST_INTEGER,
    Bytes,
    BytesPerSecond,
    Celsius,
    Count,
    PositiveCount,
    Ratio,
    Seconds,
    SecondsPerMultiplyAdd,
    Watts,
)
from edgefl.values.schema import document
from edgefl.values.strings import Name, Timestamp

__all__ = ["Machine", "CostFit", "PowerSource", "DeviceProfile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The hardware and its system."""

    architecture: Name
    """Instruction set, such as 'aarch64'."""

    system: Name
    """Operating system, such as 'Linux 6.6' or 'Android 15'."""

    cores: PositiveCount
    """Processor cores that the process may use."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFit:
    """A linear model of one training step, fitted to measurements on this device.

    Multiply-adds alone do not determine the time: norms, activations and pools scale with the bytes they touch, the
    optimiser with the parameters it updates. A term that a device does not need is 0.
    """

    overhead_seconds: Seconds
    """Fixed seconds of every step, whatever the model."""

    forward_seconds_per_multiply_add: SecondsPerMultiplyAdd
    """Seconds per multiply-add of the forward pass."""

    backward_seconds_per_multiply_add: SecondsPerMultiplyAdd
    """Seconds per multiply-add of the backward pass."""

    seconds_per_activation_byte: Seconds = 0.0
    """Seconds per byte of activations: norms, pools and other elementwise work."""

    seconds_per_trained_parameter: Seconds = 0.0
    """Seconds per trained parameter, independent of the batch: the optimiser."""

    memory_base_bytes: Bytes
    """Fixed bytes of the process, whatever the model."""

    memory_bytes_per_activation_byte: Ratio
    """Bytes of peak memory per byte of activations kept for the backward pass."""

    memory_bytes_per_parameter_byte: Ratio = 0.0
    """Bytes of peak memory per byte of parameters on the device."""

    memory_bytes_per_trained_parameter: Ratio = 0.0
    """Bytes of peak memory per trained parameter: gradient, momentum, new value."""

    relative_error: Ratio
    """Typical relative error of step times left out of the fit: 0.1 is 10 %."""

    memory_relative_error: Ratio | None = field(default=None, metadata={"absent": "not known"})
    """The same for peak memory, or None if not known."""

    measurements: PositiveCount
    """Number of step times behind the fit."""

    measured_on: Name | None = field(default=None, metadata={"absent": "not known"})
    """The measured models."""

    def __post_init__(self) -> None:
        check_fields(self)

    def step_seconds(
        self,
        *,
        forward_multiply_adds: Count,
        backward_multiply_adds: Count,
        activation_bytes: Bytes,
        trained_parameters: Count,
    ) -> Seconds:
        """Predict the seconds of one training step; all arguments but the parameters are for the whole batch."""
        return (
            self.overhead_seconds
            + self.forward_seconds_per_multiply_add * forward_multiply_adds
            + self.backward_seconds_per_multiply_add * backward_multiply_adds
            + self.seconds_per_activation_byte * activation_bytes
            + self.seconds_per_trained_parameter * trained_parameters
        )

    def peak_bytes(self, *, activation_bytes: Bytes, parameter_bytes: Bytes, trained_parameters: Count) -> Bytes:
        """Predict the peak memory of a training process; activations are for the whole batch."""
        beyond = (
            self.memory_bytes_per_activation_byte * activation_bytes
            + self.memory_bytes_per_parameter_byte * parameter_bytes
            + self.memory_bytes_per_trained_parameter * trained_parameters
        )
        return min(LARGEST_INTEGER, self.memory_base_bytes + round(min(beyond, float(LARGEST_INTEGER))))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSource:
    """Source of power readings. Busy may be below idle if noise exceeds the load."""

    source: Name
    """The instrument, such as 'intel-rapl' or 'pmic', or the basis of the estimate."""

    scope: Scope
    """What the watts cover."""

    provenance: Provenance
    """Measured or estimated."""

    idle_watts: Watts | None = None
    """Watts while the device is idle, or None if not known."""

    busy_watts: Watts | None = None
    """Watts while the device trains, or None if not known."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("device_profile", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProfile:
    """What a device can do."""

    device_name: Name
    """Human-readable name, such as 'raspberry-pi-4'."""

    machine: Machine
    """The hardware and its system."""

    engine: Name
    """Training engine and its version, such as 'onnxruntime 1.23.0'."""

    threads: PositiveCount
    """Engine threads during the measurement."""

    cost: CostFit
    """Fitted cost of a training step."""

    memory_total_bytes: Bytes
    """Memory of the device, or of the container the process runs in."""

    memory_free_bytes: Bytes
    """Memory that a new process could get without swapping."""

    storage_free_bytes: Bytes
    """Free bytes on the disk of EdgeFL's files."""

    measured_at: Timestamp
    """When the profile was made, in UTC."""

    download_bytes_per_second: BytesPerSecond | None = field(default=None, metadata={"absent": "not measured"})
    """Data rate from the coordinator, or None if not measured."""

    upload_bytes_per_second: BytesPerSecond | None = field(default=None, metadata={"absent": "not measured"})
    """Data rate to the coordinator, or None if not measured."""

    power: PowerSource | None = None
    """Source of power readings, or None if there is none."""

    temperature_celsius: Celsius | None = None
    """Degrees Celsius at the end of the measurements, or None if not exposed."""

    throttled: bool | None = None
    """Whether the system throttled the processor meanwhile, or None if not exposed."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_order(self, "memory_free_bytes", "memory_total_bytes")

"""Detects whether the system throttled the processor because of heat or power.

Systems show it in different ways, and each is read before and after a task:

    Raspberry Pi   `vcgencmd get_throttled`: bits for now, and bits for any time since boot
    x86            thermal_throttle/*_throttle_count: events since boot
    other ARM      cooling devices that limit the processor's clock: their present state

The clock frequency itself is only a hint: an idle processor is slow too.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from device_runtime.telemetry.sysfs import ROOT, find_paths, read_int, read_text
from device_runtime.telemetry.system_commands import Command, run

__all__ = ["ThrottleState", "throttle_state", "throttled_between", "frequency_share"]

# Bits 1 to 3 of get_throttled: clock capped, throttled, soft temperature limit; 16 bits higher, the same since boot.
# Bit 0, low voltage, is ignored: if it slows the processor down, one of the others is set as well.
_NOW = 0b1110
_SINCE_BOOT = _NOW << 16

_COUNTS = "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/{}_throttle_count"
_CPU_COOLING = re.compile(r"cpufreq|cpu-throttle|Processor", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ThrottleState:
    """What the system shows at one moment; None for each thing that it does not show."""

    firmware_bits: int | None = None
    events: int | None = None
    cooling_state: int | None = None
    """The highest state of the cooling devices; 0 means inactive."""


def throttle_state(root: Path = ROOT, run: Command = run) -> ThrottleState:
    """Read all indicators."""
    answer = re.fullmatch(r"throttled=(0x[0-9a-fA-F]+)\s*", run(("vcgencmd", "get_throttled")) or "")
    counts = [read_int(path) for level in ("core", "package") for path in find_paths(root, _COUNTS.format(level))]
    events = [count for count in counts if count is not None]
    states = [read_int(device / "cur_state") for device in _cooling_devices(root)]
    cooling_state = [state for state in states if state is not None]
    return ThrottleState(
        firmware_bits=int(answer[1], 16) if answer else None,
        events=sum(events) if events else None,
        cooling_state=max(cooling_state) if cooling_state else None,
    )


def throttled_between(start: ThrottleState, end: ThrottleState) -> bool | None:
    """Return whether the processor was throttled between two readings. None where the system does not say."""
    verdicts = [
        _by_firmware(start.firmware_bits, end.firmware_bits),
        _by_events(start.events, end.events),
        None
        if start.cooling_state is None or end.cooling_state is None
        else start.cooling_state > 0 or end.cooling_state > 0,
    ]
    if True in verdicts:
        return True
    return False if False in verdicts else None


def _by_firmware(start: int | None, end: int | None) -> bool | None:
    if start is None or end is None:
        return None
    if (start | end) & _NOW or end & ~start & _SINCE_BOOT:
        return True
    # A bit that was already set cannot show whether it happened again.
    return None if start & _SINCE_BOOT else False


def _by_events(start: int | None, end: int | None) -> bool | None:
    if start is None or end is None or end < start:  # a core that went offline took its count with it
        return None
    return end > start


def _cooling_devices(root: Path) -> list[Path]:
    devices = find_paths(root, "sys/class/thermal/cooling_device*")
    return [device for device in devices if _CPU_COOLING.search(read_text(device / "type") or "")]


def frequency_share(root: Path = ROOT) -> float | None:
    """Return the present clock as a share of the highest, over all groups of cores; None where it is not shown."""
    shares = []
    for policy in find_paths(root, "sys/devices/system/cpu/cpufreq/policy*"):
        current, highest = read_int(policy / "scaling_cur_freq"), read_int(policy / "cpuinfo_max_freq")
        if current is not None and highest:
            shares.append(current / highest)
    return sum(shares) / len(shares) if shares else None

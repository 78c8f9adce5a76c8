"""The owner's limits on when and how much this device works. Every refusal goes to the coordinator, with its reason.

The policy looks at the device's present state. A condition that the system does not show forbids nothing, except mains
power and an unmetered network: an owner who requires them means it.
"""

import re
from dataclasses import dataclass
from datetime import datetime, time

from device_runtime.agent.agent_home import Usage
from edgefl.errors import EdgeFLError
from edgefl.values import Reason, Refusal, ThermalStatus

__all__ = ["DeviceConditions", "OwnerPolicy", "parse_hours"]


@dataclass(frozen=True, slots=True)
class DeviceConditions:
    """The present state of the device."""

    now: datetime
    """Local time."""
    plugged: bool | None = None
    celsius: float | None = None
    free_bytes: int | None = None
    """Memory that the process may still take."""
    metered: bool | None = None
    """Whether the network in use costs money or has a limit."""
    battery_saver: bool | None = None
    """Whether the system saves battery."""
    thermal_status: ThermalStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerPolicy:
    """The owner's limits; None means no limit."""

    mains_only: bool = False
    unmetered_only: bool = False
    outside_battery_saver: bool = False
    """Whether to stop while the system saves battery."""
    below_celsius: float | None = None
    below_status: ThermalStatus | None = None
    """The thermal status from which the device stops."""
    hours: tuple[time, time] | None = None
    """From, and to; past midnight if `to` is before `from`."""
    joules_a_day: float | None = None
    bytes_a_day: int | None = None
    memory_bytes: int | None = None
    task_seconds: float | None = 3600.0
    """From the arrival of a plan to its result, whatever deadline the plan has."""

    def objection(self, now: DeviceConditions, spent: Usage, *, peak_bytes: int | None = None) -> Refusal | None:
        """Return why the device may not work now, or None if it may. `peak_bytes` is the task's predicted memory."""
        if self.mains_only and now.plugged is not True:
            said = (
                "not on mains power" if now.plugged is False else "it is not known whether the device is on mains power"
            )
            return Refusal(reason=Reason.POWER, message=said)
        if self.outside_battery_saver and now.battery_saver:
            return Refusal(reason=Reason.BATTERY_SAVER, message="the system saves battery")
        if self.unmetered_only and now.metered is not False:
            said = "the network is metered" if now.metered else "it is not known whether the network is metered"
            return Refusal(reason=Reason.METERED, message=said)
        return self._heat(now) or self._time(now) or self._spent(now, spent) or self._memory(now, peak_bytes)

    def _heat(self, now: DeviceConditions) -> Refusal | None:
        if self.below_celsius is not None and now.celsius is not None and now.celsius >= self.below_celsius:
            said = f"the device has {now.celsius:.1f} degrees, and may work below {self.below_celsius:g}"
            return Refusal(reason=Reason.TEMPERATURE, message=said)
        status, most = now.thermal_status, self.below_status
        if most is not None and status is not None and status.severity >= most.severity:
            said = f"the system reports the thermal status {status}, and the device may work below {most}"
            return Refusal(reason=Reason.THERMAL, message=said)
        return None

    def _time(self, now: DeviceConditions) -> Refusal | None:
        if self.hours is not None and not _within(now.now.time(), *self.hours):
            first, last = self.hours
            return Refusal(reason=Reason.HOURS, message=f"the device may work from {first:%H:%M} to {last:%H:%M}")
        return None

    def _spent(self, now: DeviceConditions, spent: Usage) -> Refusal | None:
        today = spent if spent.day == now.now.date().isoformat() else Usage()
        if self.joules_a_day is not None and today.joules >= self.joules_a_day:
            said = f"{today.joules:.0f} J spent today, and {self.joules_a_day:g} are allowed"
            return Refusal(reason=Reason.ENERGY, message=said)
        if self.bytes_a_day is not None and today.traffic_bytes >= self.bytes_a_day:
            said = f"{today.traffic_bytes:,} bytes sent and received today, and {self.bytes_a_day:,} are allowed"
            return Refusal(reason=Reason.TRAFFIC, message=said)
        return None

    def memory_limit(self, now: DeviceConditions) -> int | None:
        """Return the memory that a task may have; None means no limit."""
        return min((limit for limit in (self.memory_bytes, now.free_bytes) if limit is not None), default=None)

    def _memory(self, now: DeviceConditions, peak_bytes: int | None) -> Refusal | None:
        limit = self.memory_limit(now)
        if peak_bytes is not None and limit is not None and peak_bytes > limit:
            said = f"the task is predicted to need {peak_bytes:,} bytes of memory, and {limit:,} are allowed"
            return Refusal(reason=Reason.MEMORY, message=said)
        return None


def parse_hours(text: str) -> tuple[time, time]:
    """Parse '22-6' or '22:30-06:00'."""
    found = re.fullmatch(r"(\d{1,2})(?::(\d{2}))?-(\d{1,2})(?::(\d{2}))?", text.strip())
    try:
        if found is None:
            raise ValueError
        hours = [0 if found[at] == "24" else int(found[at]) for at in (1, 3)]
        first, last = (time(hour, int(found[at] or 0)) for hour, at in zip(hours, (2, 4), strict=True))
    except ValueError:
        raise EdgeFLError(f"{text!r} are not valid hours", fix="Write for example 22-6, or 22:30-06:00.") from None
    return first, last


def _within(now: time, first: time, last: time) -> bool:
    return first <= now < last if first < last else now >= first or now < last

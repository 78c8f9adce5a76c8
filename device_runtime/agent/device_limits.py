"""The owner's limits at work: what today has used of them, and what they leave for the task at hand.

`OwnerPolicy` says what is allowed; here is what was spent, by all federations of the device together, and how much may
still pass the network before a new day begins.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from device_runtime.agent.agent_home import Usage
from device_runtime.agent.owner_policy import DeviceConditions, OwnerPolicy
from device_runtime.agent.shared_device import SharedUsage
from device_runtime.agent.traffic import Traffic
from edgefl.values import Reason, Refusal

__all__ = ["DeviceLimits"]

_KEPT_BACK = 2**20
"""Bytes of a day that downloads leave, so that the device can say why it refuses a task; less of a small limit."""
_KEPT_SHARE = 8


@dataclass(slots=True, eq=False)
class DeviceLimits:
    """The limits of one device."""

    policy: OwnerPolicy
    conditions: Callable[[], DeviceConditions]
    usage: SharedUsage
    traffic: Traffic
    _counted_bytes: int = field(default=0, init=False)
    """Traffic of this process that the usage includes."""

    def __post_init__(self) -> None:
        self.traffic.noted = self.count
        self.traffic.will_be_limited = self.policy.bytes_a_day is not None

    @property
    def task_seconds(self) -> float | None:
        """The most seconds from a plan's arrival to its result."""
        return self.policy.task_seconds

    def objection(self, *, peak_bytes: int | None = None, joules: float = 0.0) -> Refusal | None:
        """Return why the device may not work now, on a task of this memory that took this energy so far."""
        today = self._today()
        spent = replace(today, joules=today.joules + joules)
        return self.policy.objection(self.conditions(), spent, peak_bytes=peak_bytes)

    def memory_bytes(self) -> int | None:
        """Return the memory that a task may have now."""
        return self.policy.memory_limit(self.conditions())

    def allow_traffic(self) -> Refusal | None:
        """Let as many bytes pass as are left of today; return an objection if they are too few to ask for a task."""
        if self.policy.bytes_a_day is None:
            return None
        kept = min(_KEPT_BACK, self.policy.bytes_a_day // _KEPT_SHARE)
        left = self.policy.bytes_a_day - self._today().traffic_bytes
        self.traffic.most, self.traffic.kept_back = self._counted_bytes + max(0, left), kept
        if (self.traffic.left or 0) > kept:
            return None
        said = f"{self.policy.bytes_a_day - left:,} bytes of the {self.policy.bytes_a_day:,} of today are used"
        return Refusal(reason=Reason.TRAFFIC, message=said)

    def count(self, *, joules: float = 0.0, least_bytes: int = 1) -> None:
        """Add the energy of a task to today's usage, and traffic if it came to this many bytes."""
        total = self.traffic.total
        new = total - self._counted_bytes if total - self._counted_bytes >= least_bytes else 0
        if not joules and not new:
            return
        self._counted_bytes += new
        self.usage.add(self._day(), joules=joules, traffic_bytes=new)

    def _today(self) -> Usage:
        return self.usage.of(self._day())

    def _day(self) -> str:
        return self.conditions().now.date().isoformat()

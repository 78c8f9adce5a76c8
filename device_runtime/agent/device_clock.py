"""The clocks of an agent. Deadlines use one that cannot be set and that runs while the device sleeps."""

import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from device_runtime.agent.agent_home import OpenTask
from edgefl.values import ClientPlan

__all__ = ["DeviceClock"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class DeviceClock:
    """This device's clocks."""

    def boot(self) -> str:
        """Return an id of this boot of the system."""
        try:
            return _BOOT_ID.read_text().strip()
        except OSError:
            return ""

    def uptime(self) -> float:
        """Return the seconds since the system started, including sleep."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    def wall(self) -> float:
        """Return the seconds since 1970 by the system's clock."""
        return time.time()

    def local(self) -> datetime:
        """Return the local time."""
        return datetime.now().astimezone()

    def opened(self, plan: ClientPlan) -> OpenTask:
        """Record that a plan arrived now."""
        return OpenTask(plan, self.boot(), self.uptime(), self.wall())

    def remaining(self, task: OpenTask, most_seconds: float | None = None) -> float:
        """Return the seconds until a task's deadline, or until it has taken the most that its owner allows.

        After a restart only the wall clock is left. If it was set back, it says nothing, and the coordinator decides
        what is late.
        """
        same = task.boot == self.boot() and task.boot != ""
        elapsed = self.uptime() - task.uptime if same else self.wall() - task.wall
        deadline = task.plan.deadline_seconds
        return (deadline if most_seconds is None else min(deadline, most_seconds)) - max(0.0, elapsed)

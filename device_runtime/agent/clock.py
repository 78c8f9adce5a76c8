"""The clocks of an agent. Deadlines are counted by one that nobody can set and that runs while the device sleeps."""

import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from device_runtime.agent.home import OpenTask
from edgefl.values import ClientPlan

__all__ = ["Clock"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class Clock:
    """This device's clocks."""

    def boot(self) -> str:
        """Return what names this start of the system."""
        try:
            return _BOOT_ID.read_text().strip()
        except OSError:
            return ""

    def uptime(self) -> float:
        """Return the seconds since the system started, sleep included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    def wall(self) -> float:
        """Return the seconds since 1970, as the system believes."""
        return time.time()

    def local(self) -> datetime:
        """Return the local time of the day."""
        return datetime.now().astimezone()

    def opened(self, plan: ClientPlan) -> OpenTask:
        """Note that a plan came now."""
        return OpenTask(plan, self.boot(), self.uptime(), self.wall())

    def remaining(self, task: OpenTask) -> float:
        """Return the seconds until a task's deadline.

        After a restart only the wall clock is left. One that was set back says nothing: then the coordinator decides
        what is late.
        """
        same = task.boot == self.boot() and task.boot != ""
        elapsed = self.uptime() - task.uptime if same else self.wall() - task.wall
        return task.plan.deadline_seconds - max(0.0, elapsed)

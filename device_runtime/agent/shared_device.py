"""What the homes of one device share: today's usage, and the turn to train.

A device may be in several federations, each with a home and a process of its own. Its owner's limits are the device's,
so its usage is one file, added to by all. And it trains one task at a time: two at once would both be late, and neither
would measure anything that a plan could use.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from device_runtime.agent.agent_home import AgentHome, Usage
from edgefl.artifacts.artifact_store import PRIVATE

__all__ = ["SharedUsage", "TrainingTurn"]


class SharedUsage:
    """Today's energy and traffic of a device, in `usage.json` of its folder."""

    def __init__(self, folder: Path) -> None:
        self._home = AgentHome(folder)
        self._unsaved = Usage()
        """What could not be written, because the disk was full."""

    def of(self, day: str) -> Usage:
        """Return the usage of a day."""
        return _sum(day, self._home.usage(), self._unsaved)

    def add(self, day: str, *, joules: float, traffic_bytes: int) -> None:
        """Add to the usage of a day."""
        new = _sum(day, self._unsaved, Usage(day, joules, traffic_bytes))
        try:
            with _locked(self._home.folder / "usage.lock"):
                self._home.save_usage(_sum(day, self._home.usage(), new))
            self._unsaved = Usage()
        except OSError:
            self._unsaved = new


class TrainingTurn:
    """The turn to train on this device. The system passes it on if its holder is killed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "training.lock"
        self._held: int | None = None

    def take(self, holder: str) -> bool:
        """Take the turn, and say who has it; return False if another process has it."""
        if self._held is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        with contextlib.suppress(OSError):  # a full disk only hides the name
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps({"holder": holder}).encode())
        self._held = descriptor
        return True

    def release(self) -> None:
        """Let another process train."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def is_free(self) -> bool:
        """Return whether no other process trains now."""
        if self._held is not None:
            return True
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True

    def holder(self) -> str:
        """Return who has the turn, as far as it is known."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return str(json.loads(self._path.read_bytes())["holder"])[:200]
        return "another federation"


def _sum(day: str, *parts: Usage) -> Usage:
    """Return the usage of a day; that of other days does not count."""
    known = [asdict(part) for part in parts if part.day == day]
    return Usage(day, sum(part["joules"] for part in known), sum(part["traffic_bytes"] for part in known))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

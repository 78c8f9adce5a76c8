"""The poll schedule: predicts when there will be work again, for devices that have none before the next round.

Open tasks are counted twice a second (`coordinator.polling.long_poll`). The prediction assumes that a round takes no
longer than the one before it, that its open tasks keep ending as fast as they did, and that the next round follows as
soon as the last one did. A wrong guess costs seconds, as no device stays away longer. Devices are then spread so that
they come no faster than tasks ended at best: a fleet that comes at once only waits in a queue here. The longer nothing
happens, the more rarely devices come, down to a limit.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

__all__ = [
    "LEAST_SPREAD",
    "LONGEST_IDLE",
    "LONGEST_PAUSE",
    "LONGEST_SPREAD",
    "UNKNOWN",
    "DelayBounds",
    "PollDelay",
    "PollSchedule",
]

LONGEST_PAUSE = 5.0
LONGEST_IDLE = 30.0
LEAST_SPREAD = 2.0
LONGEST_SPREAD = 3.0
_WINDOW_SECONDS = 0.9
"""What ends in a shorter time may be one batch that waited for the disk."""
_LOAD = 0.9
"""Devices come at this share of the fastest rate observed: at the full rate, all of them would wait."""
_IDLE_SHARE = 0.1
"""Share of the time in which nothing happened."""


@dataclass(frozen=True, slots=True)
class DelayBounds:
    """The most seconds that a federation's devices may stay away, until a round ends or because nothing happens, and
    over which they may be spread."""

    pause: float = LONGEST_PAUSE
    idle: float = LONGEST_IDLE
    spread: float = LONGEST_SPREAD


@dataclass(frozen=True, slots=True)
class PollDelay:
    """For how many seconds there will be no task, and over how many seconds devices are spread after that."""

    pause: float = 0.0
    spread: float = LEAST_SPREAD


UNKNOWN = PollDelay()
"""The delay if nothing is known."""


@dataclass(frozen=True, slots=True)
class _Round:
    """The tasks of a federation's last round: how many there were, since when, and how many are left."""

    first: int
    since: float
    left: int
    seen: float
    """When they were last counted; after the end of the round, when it ended."""
    window: tuple[int, float]
    """How many were left, and the time, at the start of the current window."""
    fastest: float = 0.0
    """Most tasks that ended in a second. The last window is left out: closing a round ends all of its tasks."""
    fastest_before: float = 0.0
    """The same for the round before."""
    usual: float = math.inf
    """Seconds from the start of the round before to the start of this one."""
    between: float = 0.0
    """Seconds from the end of the round before to the start of this one."""

    def counted(self, left: int, now: float) -> "_Round":
        """Return the round after another count; after its end nothing changes."""
        if not self.left:
            return self
        ended, seconds = self.window[0] - left, now - self.window[1]
        if seconds < _WINDOW_SECONDS or not left:
            return replace(self, left=left, seen=now)
        return replace(self, left=left, seen=now, window=(left, now), fastest=max(self.fastest, ended / seconds))

    def next(self, first: int, now: float) -> "_Round":
        """Return the round that starts now. After a long break, nothing is known about the time between rounds."""
        between, usual = 0.0 if self.left else now - self.seen, now - self.since
        if between > LONGEST_PAUSE or not self.first:
            between, usual = 0.0, math.inf
        return _Round(first, now, first, now, (first, now), 0.0, self.fastest, usual, between)

    def pause(self, now: float) -> float:
        """Return in how many seconds the next round is expected to start; 0 if that is unknown."""
        usual = self.since + self.usual - now
        if self.left == self.first:  # none has ended
            return max(0.0, usual) if self.usual < math.inf else 0.0
        end = self.seen + self.left * (self.seen - self.since) / (self.first - self.left)
        left = end + self.between - now
        return max(0.0, left if usual < 0 else min(usual, left))

    def idle(self, now: float) -> float:
        """Return for how long nothing has happened."""
        return 0.0 if self.left else max(0.0, now - self.seen - self.between)

    @property
    def spread(self) -> float:
        """Seconds over which its devices are spread."""
        fastest = max(self.fastest, self.fastest_before)
        return max(LEAST_SPREAD, self.first / (_LOAD * fastest) if fastest > 0 else 0.0)


class PollSchedule:
    """The progress of the rounds of all federations."""

    def __init__(self, bounds: Callable[[str], DelayBounds] = lambda federation: DelayBounds()) -> None:
        self._bounds = bounds
        self._rounds: dict[str, _Round] = {}

    @property
    def federations(self) -> Collection[str]:
        """Federations that were counted or asked about."""
        return list(self._rounds)

    def count(self, open_tasks: Mapping[str, int], now: float, over: Collection[str] = ()) -> None:
        """Note how many tasks of each federation are open. More than before mean that a new round has started."""
        for federation in open_tasks.keys() | self._rounds.keys():
            left, before = open_tasks.get(federation, 0), self._rounds.get(federation)
            if federation in over:
                self._rounds.pop(federation, None)
            elif before is None:
                self._rounds[federation] = _Round(left, now, left, now, (left, now))
            elif left > before.left:
                self._rounds[federation] = before.next(left, now)
            else:
                self._rounds[federation] = before.counted(left, now)

    def delay(self, federation: str, now: float) -> PollDelay:
        """Return when there will be work, and over how many seconds devices are spread."""
        current = self._rounds.get(federation)
        if current is None:  # from now on it is known for how long nothing has happened
            current = self._rounds[federation] = _Round(0, now, 0, now, (0, now))
        most = self._bounds(federation)
        pause = max(min(current.pause(now), most.pause), min(_IDLE_SHARE * current.idle(now), most.idle))
        return PollDelay(pause, min(current.spread, most.spread))

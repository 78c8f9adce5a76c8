"""When there will be something to do again: what a device is told that has nothing to do before the next round.

Tasks are counted twice a second (`coordinator.polling.long_poll`). A round is expected to take no longer than the one
before it, its open tasks to go on ending as fast as they did, and the next one to follow as soon as the last one did.
That is all that is assumed, and a wrong guess costs seconds, as nobody is told to stay away longer. Devices then come
no faster than tasks ended at best: a fleet that comes at once only waits in a queue here. Where nothing has been going
on for a while, nothing is likely to begin in this very second either: devices come more and more rarely, down to a
limit.
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
"""What is counted in a shorter time may be one batch that waited for the disk."""
_LOAD = 0.9
"""Devices come at this share of the fastest pace that was seen: where everybody comes that can be served, all wait."""
_IDLE_SHARE = 0.1
"""Of the time that nothing was going on."""


@dataclass(frozen=True, slots=True)
class DelayBounds:
    """For how many seconds a federation's devices may stay away: because a round is said to end then, or because
    nothing is going on; and over how many they may come."""

    pause: float = LONGEST_PAUSE
    idle: float = LONGEST_IDLE
    spread: float = LONGEST_SPREAD


@dataclass(frozen=True, slots=True)
class PollDelay:
    """For how many seconds there will be nothing to do, and over how many devices shall come after that."""

    pause: float = 0.0
    spread: float = LEAST_SPREAD


UNKNOWN = PollDelay()
"""Where nothing is known."""


@dataclass(frozen=True, slots=True)
class _Round:
    """The tasks of a federation's last round: how many there were, since when, and how many are left."""

    first: int
    since: float
    left: int
    seen: float
    """When they were last counted, or after the end of the round, when it ended."""
    mark: tuple[int, float]
    """How many were left when, at the beginning of the window that is counted now."""
    fastest: float = 0.0
    """Tasks that ended in a second, at best. What the end of a round brought down to 0 did not all end by itself."""
    fastest_before: float = 0.0
    """The same of the round before."""
    usual: float = math.inf
    """Seconds from the beginning of the round before to that of this one."""
    between: float = 0.0
    """Seconds from the end of the round before to the beginning of this one."""

    def counted(self, left: int, now: float) -> "_Round":
        """Return the round after another look; after its end nothing changes."""
        if not self.left:
            return self
        ended, seconds = self.mark[0] - left, now - self.mark[1]
        if seconds < _WINDOW_SECONDS or not left:
            return replace(self, left=left, seen=now)
        return replace(self, left=left, seen=now, mark=(left, now), fastest=max(self.fastest, ended / seconds))

    def next(self, first: int, now: float) -> "_Round":
        """Return the round that begins now. After a long time of nothing, nothing is known about when rounds follow."""
        between, usual = 0.0 if self.left else now - self.seen, now - self.since
        if between > LONGEST_PAUSE or not self.first:
            between, usual = 0.0, math.inf
        return _Round(first, now, first, now, (first, now), 0.0, self.fastest, usual, between)

    def pause(self, now: float) -> float:
        """Return when the next one will begin, if it can be told."""
        usual = self.since + self.usual - now
        if self.left == self.first:  # none has ended
            return max(0.0, usual) if self.usual < math.inf else 0.0
        end = self.seen + self.left * (self.seen - self.since) / (self.first - self.left)
        left = end + self.between - now
        return max(0.0, left if usual < 0 else min(usual, left))

    def idle(self, now: float) -> float:
        """Return for how long nothing has been going on."""
        return 0.0 if self.left else max(0.0, now - self.seen - self.between)

    @property
    def spread(self) -> float:
        """Over how many seconds as many devices shall come."""
        fastest = max(self.fastest, self.fastest_before)
        return max(LEAST_SPREAD, self.first / (_LOAD * fastest) if fastest > 0 else 0.0)


class PollSchedule:
    """Where the rounds of all federations are."""

    def __init__(self, bounds: Callable[[str], DelayBounds] = lambda federation: DelayBounds()) -> None:
        """Take what says for how long a federation's devices may stay away at most."""
        self._bounds = bounds
        self._rounds: dict[str, _Round] = {}

    @property
    def federations(self) -> Collection[str]:
        """Those that were counted or asked about."""
        return list(self._rounds)

    def count(self, open_tasks: Mapping[str, int], now: float, over: Collection[str] = ()) -> None:
        """Note how many tasks of each federation are open. More than before are a new beginning."""
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

    def lull(self, federation: str, now: float) -> PollDelay:
        """Return when there will be something to do, and how devices shall come."""
        current = self._rounds.get(federation)
        if current is None:  # from here on it is known for how long nothing is going on
            current = self._rounds[federation] = _Round(0, now, 0, now, (0, now))
        most = self._bounds(federation)
        pause = max(min(current.pause(now), most.pause), min(_IDLE_SHARE * current.idle(now), most.idle))
        return PollDelay(pause, min(current.spread, most.spread))

"""How soon a round will end: what a device is told that has nothing to do before the next one.

Tasks are counted twice a second (`coordinator.waiting`). Those that are open go on ending as fast as they did since
their round opened: that is all that is assumed, and a wrong guess costs seconds, as nobody is told to stay away longer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["LONGEST_PAUSE", "Pace"]

LONGEST_PAUSE = 5.0


@dataclass(frozen=True, slots=True)
class _Round:
    """The open tasks of a federation: how many there were, since when, and how many are left."""

    first: int
    since: float
    left: int
    seen: float


class Pace:
    """Where the open rounds of all federations are."""

    def __init__(self, longest: Callable[[str], float] = lambda federation: LONGEST_PAUSE) -> None:
        """Take what says for how long a federation's devices may stay away at most."""
        self._longest = longest
        self._rounds: dict[str, _Round] = {}

    def count(self, open_tasks: Mapping[str, int], now: float) -> None:
        """Note how many tasks of each federation are open. More than before are a new beginning."""
        rounds = {}
        for federation, left in open_tasks.items():
            before = self._rounds.get(federation)
            if before is None or left > before.left:
                rounds[federation] = _Round(left, now, left, now)
            else:
                rounds[federation] = _Round(before.first, before.since, left, now)
        self._rounds = rounds

    def pause(self, federation: str) -> float:
        """Return for how many seconds there will be nothing to do; 0 where nothing is known."""
        current = self._rounds.get(federation)
        if current is None or current.first == current.left:
            return 0.0
        seconds_each = (current.seen - current.since) / (current.first - current.left)
        return min(current.left * seconds_each, LONGEST_PAUSE, self._longest(federation))

"""Waits between retries: they grow with every failure and are randomised."""

from dataclasses import dataclass, field
from random import Random

__all__ = ["Backoff"]


@dataclass(slots=True)
class Backoff:
    """Waits that double from `first` to `most` seconds, each drawn between half of it and all of it.

    A fleet that loses its coordinator all at once must not come back all at once.
    """

    first: float = 1.0
    most: float = 300.0
    random: Random = field(default_factory=Random)
    _tries: int = 0

    def wait(self, asked: float | None = None) -> float:
        """Return the next wait, but not less than the coordinator asked for."""
        reach = min(self.most, self.first * 2.0**self._tries)
        self._tries = min(self._tries + 1, 60)
        seconds = reach * self.random.uniform(0.5, 1.0)
        return seconds if asked is None else max(seconds, asked * self.random.uniform(1.0, 1.1))

    def reset(self) -> None:
        """Start again from the shortest wait, after a success."""
        self._tries = 0

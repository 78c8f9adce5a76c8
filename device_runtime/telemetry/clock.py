"""Time: the clock that measures, and a thread that acts at a steady pace.

The clock never jumps when somebody sets the time of day. Power and memory are sampled from the thread.
"""

import threading
import time
from collections.abc import Callable

__all__ = ["CLOCK_NAME", "Clock", "now", "Periodic"]

CLOCK_NAME = "monotonic clock"

Clock = Callable[[], float]
"""Seconds since some moment; only differences mean anything."""

now: Clock = time.perf_counter
"""On Linux this is CLOCK_MONOTONIC, in nanoseconds below the surface."""


class Periodic:
    """Calls `act` every so many seconds, from a thread of its own, until it is stopped.

    A call that comes late is not made up for by a burst, and between two calls the thread rests for half a period at
    least, so that a slow sensor cannot take a whole core.
    """

    def __init__(self, act: Callable[[], None], *, seconds: float) -> None:
        self._act = act
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="edgefl-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread. After this returns, `act` is not called again."""
        self._stopping.set()
        self._thread.join()

    def _loop(self) -> None:
        due = now() + self._seconds
        while not self._stopping.wait(max(0.0, due - now())):
            self._act()
            due = max(due + self._seconds, now() + self._seconds / 2)

"""The monotonic clock, and a thread that runs a function periodically.

The clock never jumps when the time of day is set. Power and memory are sampled from the thread.
"""

import threading
import time
from collections.abc import Callable

__all__ = ["CLOCK_NAME", "Clock", "now", "PeriodicThread"]

CLOCK_NAME = "monotonic clock"

Clock = Callable[[], float]
"""Seconds since an arbitrary moment; only differences mean anything."""

now: Clock = time.perf_counter
"""On Linux this is CLOCK_MONOTONIC, with nanosecond resolution."""


class PeriodicThread:
    """Calls `act` every `seconds` seconds, from its own thread, until it is stopped.

    A late call is not made up for by a burst, and between two calls the thread rests for at least half a period, so
    that a slow sensor cannot occupy a whole core.
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

"""Bytes on the loopback interface: the kernel's counter, read every few milliseconds.

It counts all that is sent on this machine by anybody, TCP's headers included; each packet once, as it is received.
"""

import threading
import time
from pathlib import Path

import numpy as np

__all__ = ["Meter", "received"]

_PAUSE = 0.005


def received() -> int:
    """Return the bytes that the loopback interface has received since the machine was started."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[0])
    raise SystemExit("this machine shows no loopback interface in /proc/net/dev")


class Meter:
    """Reads the counter in a thread of its own, so that it is known later what it was at a moment."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._bytes: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "Meter":
        self._note()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._note()

    def between(self, begin: float, end: float) -> int:
        """Return the bytes from one moment to another, both in seconds since 1970."""
        first, last = np.interp([begin, end], self._times, self._bytes)
        return round(last - first)

    def _read(self) -> None:
        while not self._stop.is_set():
            self._note()
            self._stop.wait(_PAUSE)

    def _note(self) -> None:
        self._times.append(time.time())
        self._bytes.append(received())

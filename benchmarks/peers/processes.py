"""Process trees: their total memory, and how to end them.

Memory is the proportional set size: a page that several processes share counts once. Reading it takes milliseconds a
process, so runs that are timed are not watched, or seldom.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Finished", "Watch", "family", "finish", "run", "started"]

_PATIENCE = 20.0
_SHOWN = 4000
"""Characters of what a failed process said."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run took."""

    began: float
    """In seconds since 1970."""
    seconds: float
    peak_bytes: int | None
    """None where it was not watched."""


def family(root: int, known: frozenset[int] = frozenset()) -> frozenset[int]:
    """Return a process and all that descend from it; those known before stay, whoever is their parent now."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    members = {root, *known} & parents.keys()
    while more := {child for child, parent in parents.items() if parent in members} - members:
        members |= more
    return frozenset(members)


def memory_of(pid: int) -> int:
    """Return the bytes of a process, shared pages by their shares; 0 if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    return 0


class Watch:
    """Looks at the memory of some processes and their descendants, in a thread of its own.

    It looks every `pause` seconds, and less often where looking would take more than `share` of the time.
    """

    def __init__(self, roots: Sequence[int], *, pause: float = 0.1, share: float = 1.0) -> None:
        self._pause, self._share = pause, share
        self._known = {root: frozenset[int]() for root in roots}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.peak_bytes = 0
        """Of all together."""
        self.peak_of_roots = 0
        """Of the processes that were named, without those that they started."""

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def members(self) -> frozenset[int]:
        """All processes that were seen and may be there still."""
        return frozenset().union(*self._known.values())

    def _look(self) -> None:
        while not self._stop.is_set():
            began = time.perf_counter()
            self._known = {root: family(root, known) for root, known in self._known.items()}
            found = {pid: memory_of(pid) for pid in self.members}
            self.peak_bytes = max(self.peak_bytes, sum(found.values()))
            self.peak_of_roots = max(self.peak_of_roots, sum(found.get(root, 0) for root in self._known))
            took = time.perf_counter() - began
            self._stop.wait(max(self._pause - took, took / self._share - took, 0.0))


def run(command: Sequence[str], environment: Mapping[str, str], log: Path, *, watched: bool) -> Finished:
    """Run a command to its end; what it says goes to a file, which is shown where it fails."""
    began, start = time.time(), time.perf_counter()
    with started(command, environment, log) as process:
        with Watch([process.pid]) if watched else contextlib.nullcontext() as watch:
            process.wait()
        seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{log.read_text()[-_SHOWN:]}\n{' '.join(command)} failed; what it said stands above")
    return Finished(began, seconds, watch.peak_bytes if watch is not None else None)


@contextlib.contextmanager
def started(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process; in the end it and what it has started are gone."""
    with log.open("ab") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=dict(environment))
    try:
        yield process
    finally:
        finish(process)


def finish(process: "subprocess.Popen[bytes]") -> None:
    """Ask a process to end, and end what is left of it and its descendants after some seconds."""
    if process.poll() is not None:
        return  # its number may be somebody else's by now
    members = family(process.pid)
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
    for pid in members - {process.pid}:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()

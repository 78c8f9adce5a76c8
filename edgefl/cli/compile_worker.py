"""What `edgefl compile` does with a coordinator: take what is wanted, hold the lease, deliver.

One thread for each program that is compiled at the same time, each with a name of its own. A coordinator that is away
for a while costs nothing: what was compiled is kept until it is back, and is welcome even if the lease has ended.
"""

import contextlib
import os
import platform
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, TypeVar

from edgefl.cli.compile_process import Compilers
from edgefl.cli.fed.api import (
    Api,
    CoordinatorConflictError,
    CoordinatorRejectedError,
    CoordinatorUnreachableError,
    path_of,
)
from edgefl.errors import EdgeFLError
from edgefl.values import Program, ProgramSpec, from_json, to_json
from edgefl.values.formatting import format_bytes, format_seconds

__all__ = ["Work", "Worker", "worker_name"]

_LONGEST_PAUSE = 30.0
_RENEWALS = 4
"""Renewals in the time of a lease: three may be lost."""
_WITHOUT_LEASE = 60.0
Value = TypeVar("Value")


class _StoppedError(Exception):
    """The command was told to stop."""


@dataclass(frozen=True, slots=True)
class Work:
    """A program to compile."""

    key: str
    spec: ProgramSpec
    rung: str
    lease_seconds: float | None
    """None if it was not taken, but is compiled because the whole ladder is wanted."""


def worker_name() -> str:
    """Return a name that no other worker has, such as 'lab-pc-4711-3fa2'."""
    host = "".join(letter if letter.isalnum() or letter == "-" else "-" for letter in platform.node())[:40]
    return f"{host.strip('-') or 'worker'}-{os.getpid()}-{secrets.token_hex(2)}"


@dataclass(slots=True)
class Worker:
    """Compiles the programs of one federation until nothing is wanted, or until it is stopped."""

    api: Api
    federation: str
    compilers: Compilers
    jobs: int
    poll_seconds: float
    once: bool
    name: str = field(default_factory=worker_name)
    more: deque[Work] = field(default_factory=deque)
    """What to compile before asking what is wanted."""
    stopping: threading.Event = field(default_factory=threading.Event)
    delivered: int = 0
    failed: int = 0
    _idle: bool = False
    """Whether it was said that nothing is wanted."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _error: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Work until the end. Raise the first error that is not about a single program."""
        threads = [threading.Thread(target=self._job, args=(f"{self.name}-{job}",)) for job in range(self.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # a join without a time would keep signals waiting
                thread.join(0.2)
        if self._error:
            raise self._error[0]

    def _job(self, name: str) -> None:
        try:
            while not self.stopping.is_set():
                work = self._next(name)
                if work is not None:
                    self._do(work, name)
                elif self.once:
                    return
                else:
                    self._wait()
        except _StoppedError:
            pass
        except BaseException as error:  # the others must not go on alone
            self._error.append(error)
            self.stopping.set()

    def _wait(self) -> None:
        with self._lock:
            if not self._idle:
                say("nothing is wanted; asking again every few seconds")
            self._idle = True
        self.stopping.wait(self.poll_seconds)

    def _next(self, name: str) -> Work | None:
        with self._lock, contextlib.suppress(IndexError):
            return self.more.popleft()
        path = path_of("federations", self.federation, "programs", "take")
        found = self._patiently(lambda: self.api.post(path, {"worker": name}))
        if found is None:
            return None
        spec = from_json(ProgramSpec, found["spec"])
        return Work(found["key"], spec, found["rung"], found["lease_seconds"])

    def _do(self, work: Work, name: str) -> None:
        begun, self._idle = time.monotonic(), False
        say(f"compiling {work.spec.role.value} {work.rung}")
        try:
            program, file = self._compiled(work, name)
        except EdgeFLError as error:
            self._fail(work, name, error.problem)
            return
        except BrokenProcessPool:
            self._fail(work, name, "the process that compiled it died: it may have needed more memory than there is")
            return
        try:
            new = self._deliver(work, name, program, file)
        except CoordinatorRejectedError as error:
            self._fail(work, name, f"the coordinator does not take it: {error.problem}")
            return
        took, size = format_seconds(time.monotonic() - begun), format_bytes(len(file))
        say(f"{'delivered' if new else 'there already:'} {work.spec.role.value} {work.rung} ({size}, {took})")
        self.delivered += new

    def _compiled(self, work: Work, name: str) -> tuple[Program, bytes]:
        """Wait for a program, and renew the lease meanwhile."""
        future: Future[tuple[Program, bytes]] = self.compilers.compile(work.spec)
        step = (work.lease_seconds or _WITHOUT_LEASE) / _RENEWALS
        due = time.monotonic() + step
        while True:
            with contextlib.suppress(NotYet):
                return future.result(timeout=0.2)
            if self.stopping.is_set():
                self._give_back(work, name)
                raise _StoppedError
            if work.lease_seconds is not None and time.monotonic() >= due:
                self._renew(work, name)
                due = time.monotonic() + step

    def _renew(self, work: Work, name: str) -> None:
        # If others have it by now, or the coordinator is away, what is being compiled may still come first.
        with contextlib.suppress(CoordinatorUnreachableError, CoordinatorConflictError):
            self.api.put(self._path(work, "lease"), {"worker": name})

    def _give_back(self, work: Work, name: str) -> None:
        if work.lease_seconds is not None:
            with contextlib.suppress(EdgeFLError):
                self.api.delete(self._path(work, "lease"), worker=name)

    def _fail(self, work: Work, name: str, reason: str) -> None:
        if self.stopping.is_set():
            self._give_back(work, name)
            raise _StoppedError
        say(f"failed: {work.spec.role.value} {work.rung}: {reason}")
        self.failed += 1
        if work.lease_seconds is not None:
            body = {"worker": name, "reason": _one_line(reason)}
            with contextlib.suppress(CoordinatorConflictError):
                self._patiently(lambda: self.api.post(self._path(work, "failure"), body))

    def _deliver(self, work: Work, name: str, program: Program, file: bytes) -> bool:
        """Send a program; return whether it is the first one."""
        self._patiently(lambda: self.api.send(path_of("programs"), file, "application/octet-stream"))
        sent = to_json(program)
        answer = self._patiently(lambda: self.api.put(self._path(work), sent, worker=name))
        return bool(answer["worker"] == name)

    def _path(self, work: Work, *parts: str) -> str:
        return path_of("federations", self.federation, "programs", work.key, *parts)

    def _patiently(self, request: Callable[[], Value]) -> Value:
        """Repeat a request until the coordinator is back."""
        for pause in _pauses():
            try:
                return request()
            except CoordinatorUnreachableError as error:
                say(f"{error.problem}; trying again in {pause:.0f} s")
                if self.stopping.wait(pause):
                    raise _StoppedError from None
        raise AssertionError("there is always another pause")


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _pauses() -> Iterator[float]:
    pause = 1.0
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()[:2000] or "no reason"


def not_ready(specs: Iterable[tuple[ProgramSpec, str]], known: Iterable[dict[str, Any]]) -> deque[Work]:
    """Return the programs of a ladder that a federation lacks."""
    ready = {one["key"] for one in known if one["state"] == "ready"}
    return deque(Work(spec.key, spec, rung, None) for spec, rung in specs if spec.key not in ready)

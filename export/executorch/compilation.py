"""Compiles many programs in parallel processes, within a time limit; what was compiled before comes from the cache.

Each process builds the model once, and cuts of the same widths and batch size should be compiled by the same process,
which has their lowered step already: a thread per process asks a shared list for the next specification. At the time
limit the processes are killed; whatever was finished stays in the cache, so the next call goes on from there.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from edgefl.model_graph import ModelGraph
from edgefl.values import Program, ProgramSpec, to_json
from export.executorch.program_cache import ProgramCache
from export.losses import Loss

__all__ = ["CompiledPrograms", "ModelArguments", "Progress", "compile_programs"]

_WORKER = "export.executorch.compile_worker"
_WORTH_SHARING = 4
"""Programs of one form that must be left for a second process to lower their step again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArguments:
    """The arguments of `export.model_source.open_source`, with which every process builds the model itself."""

    target: str
    classes: int | None = None
    sample: str | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the compilation is."""

    done: int
    total: int
    seconds_left: float | None
    """An estimate, once a program was compiled."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPrograms:
    """What was compiled, in the order of the specifications."""

    programs: Mapping[Program, bytes]
    seconds: Mapping[str, float]
    """The time of each program that was compiled now, by the key of its specification; others were in the cache."""
    failed: Mapping[str, str]
    """Why a program could not be compiled, by the key of its specification."""
    left: tuple[ProgramSpec, ...]
    """What the time limit left out."""


def compile_programs(
    model: ModelArguments,
    graph: ModelGraph,
    loss: Loss,
    specs: Sequence[ProgramSpec],
    *,
    jobs: int | None = None,
    seconds: float | None = None,
    cache: ProgramCache | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> CompiledPrograms:
    """Compile programs of a model in order, with as many processes as cores unless `jobs` says otherwise."""
    cache = cache or ProgramCache()
    missing = [spec for spec in specs if cache.get(spec) is None]
    work = _Work(missing, len(specs), progress)
    first = json.dumps({**asdict(model), "loss": loss, "graph": to_json(graph), "cache": str(cache.folder)})
    workers = [_Worker(first, work) for _ in range(min(jobs or os.cpu_count() or 1, len(missing)))]
    _run(workers, work, seconds)
    found = {spec.key: kept for spec in specs if (kept := cache.get(spec)) is not None}
    left = tuple(spec for spec in specs if spec.key not in found and spec.key not in work.failed)
    return CompiledPrograms(dict(found.values()), work.seconds, work.failed, left)


def _run(workers: "Sequence[_Worker]", work: "_Work", seconds: float | None) -> None:
    threads = [threading.Thread(target=worker.serve, daemon=True) for worker in workers]
    deadline = None if seconds is None else time.monotonic() + seconds
    work.report()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    finally:  # at the time limit, and when the user interrupts
        work.stop()
        for worker in workers:
            worker.kill()
        for thread, worker in zip(threads, workers, strict=True):
            if thread.ident is not None:
                thread.join()
            worker.close()


@dataclass(slots=True)
class _Work:
    """The specifications that are left, shared by the threads."""

    waiting: list[ProgramSpec]
    total: int
    progress: Callable[[Progress], None]
    seconds: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    _owners: dict[object, "_Worker"] = field(default_factory=dict)
    _cached: int = 0
    _began: float = field(default_factory=time.monotonic)
    _lock: Any = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._cached = self.total - len(self.waiting)

    def next_for(self, worker: "_Worker") -> ProgramSpec | None:
        """Return the first specification whose form no other process has, or one of many that wait for another."""
        with self._lock:
            counts = Counter(_form(spec) for spec in self.waiting)
            for spec in self.waiting if not self.stopped else ():
                owner = self._owners.setdefault(_form(spec), worker)
                if owner is worker or counts[_form(spec)] > _WORTH_SHARING:
                    self.waiting.remove(spec)
                    return spec
            return None

    def finish(self, spec: ProgramSpec, reply: Mapping[str, Any]) -> None:
        """Note what became of a specification."""
        with self._lock:
            if "failed" in reply:
                self.failed[spec.key] = reply["failed"]
            else:
                self.seconds[spec.key] = reply["seconds"]
            self.report()

    def stop(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self.stopped = True

    def report(self) -> None:
        """Tell how far it is."""
        made = len(self.seconds) + len(self.failed)
        left = self.total - self._cached - made
        each = (time.monotonic() - self._began) / made if made else None
        self.progress(Progress(self._cached + made, self.total, None if each is None else each * left))


def _form(spec: ProgramSpec) -> object:
    return spec.role, spec.batch_size, tuple(sorted(spec.widths.items()))


class _Worker:
    """A compiling process and the thread that feeds it. A process that dies costs the program it was at."""

    def __init__(self, first: str, work: _Work) -> None:
        self._first, self._work = first, work
        self._process: subprocess.Popen[str] | None = None
        self._starting = threading.Lock()  # no process may start once all were to end
        self._said = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115 until kill

    def serve(self) -> None:
        """Compile what the list hands out."""
        while (spec := self._work.next_for(self)) is not None:
            line = self._answer(spec)
            if line:
                self._work.finish(spec, json.loads(line))
            elif not self._work.stopped:
                self._work.finish(spec, {"failed": f"its process ended: {self._last_words()}"})

    def kill(self) -> None:
        """End the process, so that the thread does not wait for it any longer."""
        with self._starting:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def close(self) -> None:
        """Close what the process left open, once the thread has ended."""
        for pipe in () if self._process is None else (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self._said.close()

    def _answer(self, spec: ProgramSpec) -> str:
        with self._starting:
            if self._work.stopped:
                return ""
            if self._process is None or self._process.poll() is not None:
                self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(to_json(spec)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._process.stdout.readline()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},  # compiling is Python; threads would only wait for each other
        )
        assert self._process.stdin is not None
        self._process.stdin.write(self._first + "\n")

    def _last_words(self) -> str:
        self._said.seek(0)
        words = self._said.read().strip().splitlines()
        return words[-1][:300] if words else "it said nothing"

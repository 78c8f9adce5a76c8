"""A worker as `edgefl compile` runs it, in a process of its own, but with a compiler that needs no torch.

    python -m tests.cli.compiling_worker URL TOKEN FEDERATION SECONDS

It compiles for as many seconds as it is told, and what it makes cannot be run. Tests kill it.
"""

import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from edgefl.cli.compile import _stopped_by_signals
from edgefl.cli.compile_process import Compilers
from edgefl.cli.compile_worker import Worker, worker_name
from edgefl.cli.fed.api import Api
from edgefl.values import Program, ProgramSpec
from tests.coordinator.programs import file_of, program_of


class QuickCompilers(Compilers):
    """Makes programs that nobody can run."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name, self.seconds = name, seconds
        self.threads, self.stopped = ThreadPoolExecutor(4), threading.Event()

    def compile(self, spec: ProgramSpec) -> "Future[tuple[Program, bytes]]":
        """Wait, and return a program."""
        return self.threads.submit(self._made, spec)

    def stop(self) -> None:
        """Stop at once: a thread that waits must not keep the process."""
        self.stopped.set()
        self.threads.shutdown(wait=False)

    def _made(self, spec: ProgramSpec) -> tuple[Program, bytes]:
        self.stopped.wait(self.seconds)
        return program_of(spec, self.name), file_of(spec, self.name)


def main(url: str, token: str, federation: str, seconds: str) -> None:
    """Work until stopped."""
    with Api(url, token) as api:
        name = worker_name()
        compilers = QuickCompilers(name, float(seconds))
        worker = Worker(api, federation, compilers, 1, 0.1, once=False, name=name)
        with _stopped_by_signals(worker.stopping):
            worker.run()
        compilers.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

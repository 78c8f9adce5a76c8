"""Further worker processes of one coordinator on the same port: `edgefl serve --workers N`.

Python runs one thread at a time, so one process uses one core. Each further process opens the database and the blobs
itself and accepts connections from the same socket; the database already coordinates several workers.

    the first process     listens, announces itself, is a worker too, and starts the others
    the others            `python -m coordinator.http.workers`; their settings come through a pipe. When it closes they
                          stop, so a worker outlives the first process by no more than its open requests.

A worker that dies is restarted. A device that waits at one worker for a task that another opens gets it within half a
second.
"""

import contextlib
import dataclasses
import json
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from coordinator.http.server_settings import ServerLimits, ServerSettings

__all__ = ["beside"]

_LOG = logging.getLogger(__name__)
_STOP_SECONDS = 15.0
_RESTART_SECONDS = 1.0
"""Between the end of a worker and its restart."""


@contextlib.contextmanager
def beside(
    settings: ServerSettings, sock: socket.socket, ended: Callable[[int], None] = lambda process: None
) -> Iterator[None]:
    """Run the further workers of the settings in this context. `ended` is called with the id of each that has ended."""
    workers = [_Worker(settings, sock, ended) for _ in range(settings.workers - 1)]
    try:
        for worker in workers:
            worker.start()
        yield
    finally:
        for worker in workers:
            worker.ask_to_stop()
        for worker in workers:
            worker.wait()


class _Worker(threading.Thread):
    """Keeps one further process running."""

    def __init__(self, settings: ServerSettings, sock: socket.socket, ended: Callable[[int], None]) -> None:
        super().__init__(name="worker-keeper", daemon=True)
        self._settings, self._sock, self._ended = _written(settings), sock, ended
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Start the process, and restart it whenever it ends."""
        while True:
            with self._lock:
                if self._stopping.is_set():
                    return
                process = self._process = self._begin()
            status = process.wait()
            self._ended(process.pid)
            if self._stopping.wait(_RESTART_SECONDS):
                return
            _LOG.error("a worker ended with status %d and is restarted", status)

    def ask_to_stop(self) -> None:
        """Let the process finish its open requests and end."""
        with self._lock:
            self._stopping.set()
            if self._process is not None and self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()

    def wait(self) -> None:
        """Wait for its end, and kill it if that takes too long."""
        if self._process is not None:
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.join()

    def _begin(self) -> "subprocess.Popen[bytes]":
        number = self._sock.fileno()
        process = subprocess.Popen(
            [sys.executable, "-m", "coordinator.http.workers", str(number)],
            stdin=subprocess.PIPE,
            pass_fds=[number],
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once, as its status will show
            process.stdin.write(len(self._settings).to_bytes(8, "little") + self._settings)
            process.stdin.flush()
        return process


def _written(settings: ServerSettings) -> bytes:
    return json.dumps(dataclasses.asdict(settings), default=str).encode()


def _read(data: bytes) -> ServerSettings:
    fields = json.loads(data)
    fields["limits"] = ServerLimits(**fields["limits"])
    for name in ("trusted_proxies", "public_names", "pins"):
        fields[name] = tuple(fields[name])
    for name in ("state", "certificate", "private_key", "metrics"):
        fields[name] = None if fields[name] is None else Path(fields[name])
    return ServerSettings(**fields)


def main() -> None:
    """Run as a further worker: the socket is inherited, the settings come from standard input."""
    from coordinator.http.server import serve_beside

    size = int.from_bytes(sys.stdin.buffer.read(8), "little")
    settings = _read(sys.stdin.buffer.read(size))
    over = threading.Event()

    def listen_for_the_end() -> None:
        sys.stdin.buffer.read()
        over.set()

    threading.Thread(target=listen_for_the_end, name="end", daemon=True).start()
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        serve_beside(settings, sock, over)


if __name__ == "__main__":
    main()

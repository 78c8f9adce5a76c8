"""A worker in a process of its own, which the agent ends when the owner's limits say so, whatever it computes.

onnxruntime ends a graph between two of its operations, and nothing bounds the time of a single operation, of loading a
graph, or the memory of either. So graphs run in another process: it has a limit on its memory, and is killed when it
does not stop. If it crashes, that is the end of a task, and not of the agent. Training resumes from checkpoints, so a
kill costs no more than a stop.

Nothing that the process says is trusted more than the coordinator: messages are JSON with a limit of size.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from device_runtime.agent.task_worker import TaskSize
from device_runtime.refusal import RefusalError
from device_runtime.telemetry.energy.cpu_time_estimate import watts_per_core
from device_runtime.trainer import StoppedError
from edgefl.errors import EdgeFLError
from edgefl.values import ClientPlan, Reason, dumps, printable

__all__ = ["WorkerProcess"]

_START_SECONDS = 300.0
_GRACE_SECONDS = 2.0
"""Seconds that a worker gets to stop by itself; `edgefl join` has five in all after a signal."""
_LOOK_SECONDS = 0.1
_LARGEST_MESSAGE = 2**20
_LARGEST_RESULT = 2**31
_SLACK_BYTES = 64 * 2**20
"""What a worker may have beyond its limit, which it keeps by itself where the system can: code and stacks."""
_SECRETS = ("EDGEFL_JOIN_KEY", "EDGEFL_ADMIN_TOKEN", "EDGEFL_VIEWER_TOKEN")


class WorkerProcess:
    """Trains in another process, which starts when it is first needed and again after it was ended.

    `module` is run with the number of a descriptor, where it finds a pipe: it reads the options as JSON, answers
    {"ready": true, "samples": ...} or {"error": {"problem", "fix"}}, and then serves requests (`worker_service`).
    """

    def __init__(self, module: str, options: Mapping[str, object]) -> None:
        self._module, self._options = module, dict(options)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._joules = 0.0
        self._cpu_began: float | None = None
        self._had_bytes = 0
        self.samples: int | None = None
        """The device's training samples, once the process has started."""

    @property
    def joules(self) -> float:
        """The energy of the last task; of a running one, an estimate from CPU time."""
        return self._joules if self._cpu_began is None else self._estimate()

    def set_option(self, name: str, value: object) -> None:
        """Add an option that is known only before the first start."""
        self._options[name] = value

    def start(self) -> None:
        """Start the process, and raise what is wrong with its options."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._connection, theirs = Pipe()
        # The new process must find the same packages, however this one was started, and none in the present folder.
        paths = os.pathsep.join(path for path in sys.path if path)
        variables = {name: value for name, value in os.environ.items() if name not in _SECRETS}
        said = None if os.environ.get("EDGEFL_DEBUG") == "1" else subprocess.DEVNULL
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", self._module, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=variables | {"PYTHONPATH": paths},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the agent, which ends this in its own way
            )
        self._send(self._options)
        answer = self._message() if self._connection.poll(_START_SECONDS) else {}
        if "error" in answer:
            self.close()
            raise EdgeFLError(answer["error"]["problem"], fix=answer["error"]["fix"])
        if answer.get("ready") is not True:
            raise self._crashed()
        self.samples = answer.get("samples")
        self._had_bytes = self._resident()

    def size(self, plan: ClientPlan, stop: threading.Event, *, memory_bytes: int | None) -> TaskSize:
        """Return the size of a task."""
        request = {"do": "size", "plan": dumps(plan), "memory_bytes": memory_bytes}
        found = self._answer(request, stop)["size"]
        return TaskSize(
            int(found["activation_bytes"]),
            int(found["parameter_bytes"]),
            int(found["trained_parameters"]),
            tuple(map(str, found["programs"])),
        )

    def train(self, plan: ClientPlan, stop: threading.Event, *, memory_bytes: int | None, down_bytes: int) -> bytes:
        """Train a task."""
        request = {"do": "train", "plan": dumps(plan), "memory_bytes": memory_bytes, "down_bytes": down_bytes}
        self._answer(request, stop)
        try:
            return bytes(self._pipe.recv_bytes(_LARGEST_RESULT))
        except (EOFError, OSError):
            raise self._crashed() from None

    def close(self) -> None:
        """End the process at once."""
        process, self._process = self._process, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def _answer(self, request: Mapping[str, object], stop: threading.Event) -> dict[str, Any]:
        """Return the answer to a request; raise if it is a refusal, or if the process was stopped or crashed."""
        self.start()
        self._joules, self._cpu_began = 0.0, self._cpu_seconds()
        try:
            self._send(request)
            answer = self._wait(stop, request["memory_bytes"])
            if not isinstance(answer.get("joules"), int | float):
                raise self._crashed()
            self._joules, self._cpu_began = float(answer["joules"]), None
        finally:
            if self._cpu_began is not None:
                self._joules, self._cpu_began = self._estimate(), None
        if "stopped" in answer:
            raise StoppedError
        if "refused" in answer:
            self.close()  # with whatever the task left in it
            said = answer["refused"]
            raise RefusalError(Reason(said["reason"]), printable(said["problem"]), fix=printable(said["fix"]))
        return answer

    def _wait(self, stop: threading.Event, memory_bytes: object) -> dict[str, Any]:
        """Wait for an answer, and watch the limits meanwhile."""
        must_end = None
        while not self._pipe.poll(_LOOK_SECONDS):
            if must_end is None and stop.is_set():
                self._send({"do": "stop"})
                must_end = time.monotonic() + _GRACE_SECONDS
            if must_end is not None and time.monotonic() >= must_end:
                self._end()
                raise StoppedError
            if isinstance(memory_bytes, int) and self._resident() > max(memory_bytes, self._had_bytes) + _SLACK_BYTES:
                self._end()
                raise RefusalError(
                    Reason.MEMORY,
                    f"the task took more than the {memory_bytes:,} bytes of memory that are allowed",
                    fix="Plan a smaller submodel.",
                )
        return self._message()

    def _end(self) -> None:
        """End the process, but first estimate what its task took."""
        self._joules, self._cpu_began = self._estimate(), None
        self.close()

    def _crashed(self) -> RefusalError:
        """End what is left of a process that does not answer, and return the refusal of its task."""
        process = self._process
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process is not None:
                process.wait(_GRACE_SECONDS)
        code = None if process is None else process.returncode
        self.close()
        if code == -signal.SIGKILL:
            problem = "the system ended the training process, most likely for lack of memory"
            return RefusalError(Reason.MEMORY, problem, fix="Plan a smaller submodel.")
        how = "does not answer" if code is None else f"ended with {_status(code)}"
        return RefusalError(Reason.BROKEN, f"the training process {how}", fix="Check what the plan names.")

    @property
    def _pipe(self) -> "Connection[Any, Any]":
        if self._connection is None:
            raise self._crashed()
        return self._connection

    def _send(self, message: Mapping[str, object]) -> None:
        try:
            self._pipe.send_bytes(json.dumps(message).encode())
        except OSError:
            raise self._crashed() from None

    def _message(self) -> dict[str, Any]:
        try:
            message = json.loads(self._pipe.recv_bytes(_LARGEST_MESSAGE))
        except (EOFError, OSError, ValueError):
            raise self._crashed() from None
        return message if isinstance(message, dict) else {}

    def _estimate(self) -> float:
        return max(0.0, self._cpu_seconds() - (self._cpu_began or 0.0)) * watts_per_core()

    def _cpu_seconds(self) -> float:
        """Return the CPU time of this process's children, the running one included where the system shows it."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = ended.ru_utime + ended.ru_stime
        with contextlib.suppress(OSError, ValueError, IndexError):
            # After the name in parentheses, which may have spaces: the state, then ten numbers, then the times.
            fields = self._shown("stat").rpartition(")")[2].split()
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds

    def _resident(self) -> int:
        """Return the memory of the running process; 0 if the system does not show it."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(self._shown("statm").split()[1]) * resource.getpagesize()
        return 0

    def _shown(self, name: str) -> str:
        if self._process is None:
            raise ValueError
        return Path(f"/proc/{self._process.pid}/{name}").read_text(encoding="utf-8", errors="replace")


def _status(code: int) -> str:
    with contextlib.suppress(ValueError):
        return f"status {code}" if code >= 0 else signal.Signals(-code).name
    return f"signal {-code}"

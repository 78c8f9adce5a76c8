"""The worker's side of `worker_process`: takes requests of the agent from a pipe, one at a time, and answers them.

A message is one JSON object, in both directions:

    {"do": "size", "plan": ..., "memory_bytes": ...}      {"size": {...}}
    {"do": "train", ..., "down_bytes": ...}               {"done": true, "joules": ...}, and then the result as bytes
    {"do": "stop"}                                        {"stopped": true, "joules": ...}, to a request that runs
                                                          {"refused": {"reason", "problem", "fix"}, "joules": ...}
"""

import json
import os
import queue
import threading
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from device_runtime.agent.process_limits import limit_memory
from device_runtime.agent.task_worker import TrainerInProcess
from device_runtime.refusal import refusal_for
from device_runtime.trainer import StoppedError
from edgefl.values import ClientPlan, loads

__all__ = ["serve"]


def serve(connection: "Connection[Any, Any]", worker: TrainerInProcess, *, threads: int) -> None:
    """Answer requests until the agent is gone. The worker has this many threads at the most."""
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(connection, requests, stop), daemon=True).start()
    while True:
        request = requests.get()
        stop.clear()
        limit_memory(request["memory_bytes"], threads=threads)
        try:
            answer, body = _done(worker, request, stop)
        except StoppedError:
            answer, body = {"stopped": True}, None
        except Exception as error:
            limit_memory(None)  # what is left of the limit may not be enough to say so
            refusal = refusal_for(error)
            said = {"reason": refusal.reason.value, "problem": refusal.problem[:500], "fix": refusal.fix[:500]}
            answer, body = {"refused": said}, None
        limit_memory(None)
        connection.send_bytes(json.dumps(answer | {"joules": worker.joules}).encode())
        if body is not None:
            connection.send_bytes(body)


def _listen(connection: "Connection[Any, Any]", requests: "queue.Queue[dict[str, Any]]", stop: threading.Event) -> None:
    while True:
        try:
            message = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)  # the agent is gone, and whatever is computed here is for nobody
        if message["do"] == "stop":
            stop.set()
        else:
            requests.put(message)


def _done(
    worker: TrainerInProcess, request: dict[str, Any], stop: threading.Event
) -> tuple[dict[str, Any], bytes | None]:
    plan, memory = loads(ClientPlan, request["plan"]), request["memory_bytes"]
    if request["do"] == "size":
        return {"size": asdict(worker.size(plan, stop, memory_bytes=memory))}, None
    body = worker.train(plan, stop, memory_bytes=memory, down_bytes=request["down_bytes"])
    return {"done": True}, body

"""The process in which `edgefl join` trains: `python -m edgefl.cli.join_worker DESCRIPTOR`.

`device_runtime.agent.worker_process` starts it, with a pipe; nobody else does.
"""

import argparse
import json
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from device_runtime.agent.process_limits import end_with_parent, limit_file_size, offer_to_oom_killer
from device_runtime.agent.task_worker import TrainerInProcess
from device_runtime.agent.worker_service import serve
from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.trainer import Trainer
from edgefl.cli.join import local_data
from edgefl.errors import EdgeFLError
from edgefl.values import SampleSpec, loads

__all__ = ["main"]

_OTHER_THREADS = 8
"""Threads beside the engine's: numpy's, those that measure, and those that wait."""


def main(words: list[str]) -> int:
    """Open the engine and the data, and train what the agent asks for until it is gone."""
    end_with_parent()
    offer_to_oom_killer()
    connection: Connection[Any, Any] = Connection(int(words[0]))
    options = json.loads(connection.recv_bytes())
    threads = ThreadSettings.default() if options["threads"] is None else ThreadSettings(options["threads"])
    try:
        engine = open_engine(options["engine"], threads)
        said = options.get("sample")
        sample = None if said is None else loads(SampleSpec, said)
        data = local_data(argparse.Namespace(**options["data"]), sample)
    except EdgeFLError as error:
        connection.send_bytes(json.dumps({"error": {"problem": error.problem, "fix": error.fix}}).encode())
        return 1
    home = Path(options["home"])
    limit_file_size(options["most_file_bytes"])

    def trainer(device_id: str) -> Trainer:
        return Trainer(
            engine,
            data,
            home / "checkpoints",
            threads=threads.count,
            device_id=device_id,
            checkpoint_seconds=options["checkpoint_seconds"],
        )

    worker = TrainerInProcess(trainer, home / "cache", home / "personal", samples=data.samples, engine=engine.format)
    connection.send_bytes(json.dumps({"ready": True, "samples": data.samples}).encode())
    serve(connection, worker, threads=threads.count + _OTHER_THREADS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A federation that begins without the programs of half of its rungs, and a worker that is killed while it compiles.

    python -m benchmarks.programs_on_demand [--rounds 300]

Three ExecuTorch devices of different speed train digits over HTTP, each in a process of its own; the bundle has
programs for the three narrowest widths only. `edgefl compile` is started, ended with SIGKILL in the middle of its first
program, and started again. Printed: the rungs of each device with the round of each change, updates that counted,
refusals, and whether a program is still wanted at the end: if not, every device is on the rung that it would have with
a whole ladder.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.mixed_engines import CASES, LONGEST, METHODS, join_commands, write_inputs
from tests.android_demo.coordinator import edgefl, fed, run_devices, serving, task_rows

__all__ = ["main"]

SPEEDS = {"fast": 1.0, "medium": 2.2, "slow": 8.0}
NAME = "on-demand"
FEDERATION = """
[federation]
name = "{name}"
model = "{model}"
seed = 5
[strategy]
name = "fedavg"
{settings}
[work]
epochs = 2
batch_size = {batch}
[rounds]
count = {rounds}
deadline = "10 min"
at_least = 3
[selection]
devices = 3
wait_for = 3
[budget]
adapt = false
seconds = {seconds}
"""


def main() -> int:
    """Run the federation, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    args = parser.parse_args()
    case = CASES["digits"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        bundle = folder / "digits.zip"
        narrow = ("--widths", "0.375,0.25,0.125", "--batch", str(case.batch))
        edgefl("export", "--model", case.model, "--programs", *narrow, "--out", str(bundle))
        write_inputs(folder, case, SPEEDS)
        text = FEDERATION.format(
            name=NAME,
            model=bundle,
            settings=METHODS["fedavg"].format(rate=case.rate),
            batch=case.batch,
            rounds=args.rounds,
            seconds=case.seconds,
        )
        (folder / f"{NAME}.toml").write_text(text, encoding="utf-8")
        with serving(folder, folder / f"{NAME}.toml") as served:
            workers = threading.Thread(target=_compile, args=(served, folder), daemon=True)
            workers.start()
            run_devices(join_commands(folder, served, NAME, SPEEDS, tuple(SPEEDS)), LONGEST)
            workers.join(30)
            return _report(task_rows(served, NAME, args.rounds), args.rounds, _states(served))


def _compile(served: dict[str, Any], folder: Path) -> None:
    """Compile what is wanted; the first worker is killed in the middle of a program."""
    first = _worker(served, folder)
    _wait(served, lambda states: "compiling" in states)
    first.send_signal(signal.SIGKILL)
    first.wait()
    print(f"killed the worker in the middle of a program, {_states(served)}", flush=True)
    second = _worker(served, folder)
    _wait(served, lambda states: bool(states) and set(states) == {"ready"})
    print(f"all that was wanted is compiled, {_states(served)}", flush=True)
    second.send_signal(signal.SIGTERM)
    second.wait(60)


def _worker(served: dict[str, Any], folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "edgefl", "compile", served["pairing_uri"], "--federation", NAME]
    token = ["--token-file", served["admin_token_file"]]
    with (folder / "compile.log").open("ab") as log:
        # A cache of its own: what was compiled on this machine before would be ready at once.
        environment = os.environ | {"EDGEFL_CACHE": str(folder / "cache")}
        return subprocess.Popen([*command, *token], stdout=log, stderr=log, env=environment)


def _states(served: dict[str, Any]) -> list[str]:
    found = json.loads(fed(served, "programs", NAME, "--json"))["programs"]
    return [str(program["state"]) for program in found]


def _wait(served: dict[str, Any], enough: Any) -> None:
    for _ in range(600):
        if enough(_states(served)):
            return
        time.sleep(1)
    raise AssertionError(f"the programs did not come that far: {_states(served)}")


def _report(rows: list[dict[str, Any]], rounds: int, states: list[str]) -> int:
    counted = sum(row["state"] == "done" and row["counted_in"] == row["round"] for row in rows)
    refused = sum(row["state"] == "refused" for row in rows)
    print(f"{counted} of {rounds * len(SPEEDS)} updates counted, {refused} refused")
    good = counted == rounds * len(SPEEDS) and not refused and set(states) == {"ready"}
    for device in SPEEDS:
        own = [row for row in rows if row["device"] == device]
        changes = [row for at, row in enumerate(own) if not at or own[at - 1]["rung"] != row["rung"]]
        print(f"{device}: " + "; ".join(f"round {row['round'] + 1}: {row['rung']}" for row in changes))
    print(f"programs that are not ready: {len(states) - states.count('ready')} of {len(states)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Memory of a simulation by fleet size: 1,000 and 10,000 devices, 100 per round, complete runs.

    python -m benchmarks.fleet_memory [--rounds 20] [--devices 1000,10000]

`edgefl simulate` as a user starts it: CNN4 on Fashion-MNIST, devices of six classes. Printed: the peak memory of all
its processes together (shared pages counted once), and the seconds of the whole run.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.processes import run


def main() -> None:
    """Run both, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--devices", default="1000,10000", help="fleets, comma-separated (default: 1000,10000)")
    options = parser.parse_args()
    print(f"{'devices':>8}{'peak MB':>10}{'of the first':>14}{'seconds':>9}")
    first = None
    for devices in map(int, options.devices.split(",")):
        with tempfile.TemporaryDirectory() as name:
            done = run(_command(devices, options.rounds, Path(name)), os.environ, Path(name) / "log", watched=True)
        peak = done.peak_bytes or 0
        first = first or peak
        print(f"{devices:>8,}{peak / 1e6:>10,.0f}{peak / first:>13.2f}x{done.seconds:>9.0f}", flush=True)


def _command(devices: int, rounds: int, folder: Path) -> list[str]:
    words = ["--model", "cnn4", "--data", "fashion-mnist", "--partition", "iid", "--devices", str(devices)]
    words += ["--per-round", "100", "--rounds", str(rounds), "--evaluate-every", "0", "--test-samples", "1000"]
    return [sys.executable, "-m", "edgefl", "simulate", *words, "--quiet", "--out", str(folder / "run")]


if __name__ == "__main__":
    main()

"""Start-up time of the command line, compared with an empty Python."""

import subprocess
import sys
from functools import partial

from edgefl.bench.timing import medians

_COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "edgefl --help": ["-m", "edgefl", "--help"],
    "edgefl --version": ["-m", "edgefl", "--version"],
    "edgefl inspect (a body)": ["-m", "edgefl", "inspect", "tests/golden/update_v1.safetensors"],
}


def main() -> None:
    """Print the table."""
    tasks = {name: partial(_run, words) for name, words in _COMMANDS.items()}
    times = medians(tasks, rounds=15)
    print("medians of 15 rounds in turns")
    for name, seconds in times.items():
        print(f"{name:<24} {seconds * 1e3:6.0f} ms   {seconds / times['python -c pass']:5.1f}x an empty Python")


def _run(words: list[str]) -> None:
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()

"""Flower's own environment: it is not a dependency of EdgeFL, and would change the versions of our packages.

It is made beside `.venv` when it is missing, and `make clean` removes it. Flower 1.42.0 names versions of two packages
that not every index has, so what it needs is resolved for 1.41.0, and 1.42.0 is put in its place.
"""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.environments import make_environment

__all__ = ["CHECKOUT", "FLOWER", "VERSION", "flower_environment", "python_with_flower"]

CHECKOUT = Path(__file__).parents[2]
FLOWER = CHECKOUT / ".venv-flower"
VERSION = "1.42.0"
_TORCH = "torch==2.13.0"
_STEPS = (
    ("--no-deps", _TORCH),  # first and alone: whoever else asks for torch finds it there
    (_TORCH, "flwr[simulation]==1.41.0"),
    ("--no-deps", f"flwr=={VERSION}"),
)
_QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
}


def python_with_flower(environment: Path = FLOWER) -> Path:
    """Return the Python of an environment that has Flower; make the environment if need be."""
    python = environment / "bin" / "python"
    if _version(python) == VERSION:
        return python
    print(f"installing Flower {VERSION} into {environment}", file=sys.stderr, flush=True)
    if failed := make_environment(environment, *_STEPS):
        raise SystemExit(f"{' '.join(failed)} cannot be installed; uv's message is above")
    if _version(python) != VERSION:
        raise SystemExit(f"{environment} does not have Flower {VERSION}: remove it and try again")
    return python


def flower_environment(home: Path) -> dict[str, str]:
    """Return the environment variables of a process of Flower: no telemetry, no questions, files in one folder."""
    path = f"{FLOWER / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    given = {"FLWR_HOME": str(home), "PYTHONPATH": str(CHECKOUT), "PATH": path}
    return os.environ | _QUIET | given


def _version(python: Path) -> str:
    if not python.exists():
        return ""
    code = "import importlib.metadata as m; print(m.version('torch') and m.version('ray') and m.version('flwr'))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip()

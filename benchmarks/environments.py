"""Environments beside `.venv` for packages that EdgeFL is compared with. uv makes them; `make clean` removes them."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["make_environment"]


def make_environment(folder: Path, *steps: Sequence[str]) -> Sequence[str] | None:
    """Make an environment and run the steps of its installation; return the one that failed, or None.

    Args:
        folder: Where the environment is made.
        steps: What uv is told to install, one call for each.
    """
    uv = str(Path(sys.executable).with_name("uv"))
    python = str(folder / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    for step in steps:
        if subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *step]).returncode:
            return step
    return None

"""From a model's name to its bundle: built in, exported before, or exported now.

Exporting needs torch, which takes a few hundred megabytes of memory for good; so another process does it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from edgefl.artifacts.bundle import Bundle, read_bundle
from edgefl.errors import ExportError
from edgefl.simulation.built_in_models import BUILT_IN, built_in_bundle

__all__ = ["bundle_of"]


def bundle_of(model: str, *, classes: int | None = None, sample: str | None = None, seed: int = 0) -> Bundle:
    """Return the bundle of a built-in model, a file or folder of `edgefl export`, a zoo model, or a factory."""
    if model in BUILT_IN and classes is None:
        return built_in_bundle(model)
    if Path(model).exists():
        return read_bundle(Path(model))
    with tempfile.TemporaryDirectory(prefix="edgefl-export-") as name:
        path = Path(name) / "model.zip"
        words = ["--model", model, "--no-check", "--seed", str(seed), "--out", str(path)]
        words += [] if classes is None else ["--classes", str(classes)]
        words += [] if sample is None else ["--input", sample]
        done = subprocess.run(
            [sys.executable, "-m", "edgefl", "export", *words],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise _failed(model, done.stderr)
        return read_bundle(path)


def _failed(model: str, said: str) -> ExportError:
    """Return the error that the other process ended with."""
    lines = [line for line in said.splitlines() if line.strip()]
    problem = (
        next((line.partition("error: ")[2] for line in lines if "error: " in line), "")
        or f"{model} is not a known model"
    )
    fix = lines[-1].strip() if lines else ""
    return ExportError(problem, fix=f"{fix} Built in, without torch, are {', '.join(BUILT_IN)}.")

"""Cases for ExecuTorch: the training programs that `edgefl export --format executorch` wrote to folders.

A program is compiled for one mask and one batch size, and compiling needs torch. So a device cannot compile its own: it
measures those that it is given, and several of them allow a fit.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from device_runtime.profiler.cases import Case, CaseProgram, Sample
from edgefl.artifacts.bundle import read_bundle
from edgefl.errors import EdgeFLError, SchemaError
from edgefl.wire import decode_mask

__all__ = ["FEWEST_PROGRAMS", "program_cases"]

FEWEST_PROGRAMS = 3
_FIX = (
    "Export a few, for example: edgefl export --model cnn4 --keep 0.5 --batch 8 --format executorch --out half; then "
    "name each folder with --bundle."
)


def program_cases(folders: Sequence[Path]) -> list[Case]:
    """Return a case for each folder that holds an exported training program."""
    if len(folders) < FEWEST_PROGRAMS:
        raise EdgeFLError(
            f"measuring ExecuTorch needs programs of at least {FEWEST_PROGRAMS} masks, but {len(folders)} were given",
            fix=_FIX,
        )
    return [_case(folder) for folder in folders]


def _case(folder: Path) -> Case:
    bundle = read_bundle(folder)
    manifest = bundle.manifest
    personal = folder / "personal"
    try:
        program, mask = (personal / "train.pte").read_bytes(), (personal / "mask.safetensors").read_bytes()
        batch = int(json.loads((personal / "train.json").read_text())["batch"])
    except FileNotFoundError as error:
        raise EdgeFLError(f"{error.filename} does not exist, so there is no program to measure", fix=_FIX) from None
    except (ValueError, KeyError, TypeError):
        raise SchemaError(f"{personal / 'train.json'} does not state the batch size", fix="Export it again.") from None
    sample = Sample(manifest.input_shape, manifest.input_dtype.value, manifest.outputs, manifest.loss)
    return Case(CaseProgram(manifest.model, program, sample), decode_mask(mask, bundle.graph), batch)

"""Cases for ExecuTorch: the training programs of bundles.

A program has fixed widths, layers and batch size, and compiling one needs torch. So a device does not compile its own:
it measures those that a bundle holds (`edgefl export --programs`) or that were exported for a mask (`edgefl export
--format executorch`), and by default those of the built-in models.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from device_runtime.profiler.cases import Case, CaseProgram, Sample
from device_runtime.profiler.reference_models import reference_bundles
from edgefl.artifacts.bundle import Bundle, program_file, read_bundle
from edgefl.errors import EdgeFLError
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import Program, ProgramRole, ProgramSpec, loads

__all__ = ["FEWEST_PROGRAMS", "program_case", "program_cases"]

FEWEST_PROGRAMS = 3
_FIX = "Export the bundle with programs (`edgefl export --programs`), or leave --bundle out for the built-in models."


def program_cases(paths: Sequence[Path] = ()) -> list[Case]:
    """Return the cases of the bundles at these paths, or of the built-in models."""
    if not paths:
        return [case for bundle in reference_bundles() for case in _held(bundle)]
    found = [case for path in paths for case in (*_held(read_bundle(path)), *_exported(path))]
    if len({case.mask.digest for case in found}) < FEWEST_PROGRAMS:
        raise EdgeFLError(
            f"measuring ExecuTorch needs training programs of at least {FEWEST_PROGRAMS} widths or cuts, "
            f"but the bundles have {len(found)}",
            fix=_FIX,
        )
    return found


def _held(bundle: Bundle) -> Iterator[Case]:
    """Yield a case for each training program of a bundle's ladder."""
    for program in bundle.manifest.programs:
        if program.spec.role is ProgramRole.TRAIN:
            yield _bundle_case(bundle, program, bundle.files[program_file(program.spec)])


def _exported(path: Path) -> Iterator[Case]:
    """Yield the case of the training program that was exported for one mask, if the folder has it."""
    said, pte = path / "personal" / "train.json", path / "personal" / "train.pte"
    if said.is_file() and pte.is_file():
        yield _bundle_case(read_bundle(path), loads(Program, said.read_bytes()), pte.read_bytes())


def _bundle_case(bundle: Bundle, program: Program, pte: bytes) -> Case:
    manifest = bundle.manifest
    sample = Sample(manifest.input_shape, manifest.input_dtype.value, manifest.outputs, manifest.loss)
    return program_case(CaseProgram(manifest.model, pte, sample, program), bundle.graph, program.spec)


def program_case(program: CaseProgram, graph: ModelGraph, spec: ProgramSpec) -> Case:
    """Return the case of a program: the first channels of every group, as many as it was compiled for."""
    kept = {name: range(width) for name, width in spec.widths.items()}
    return Case(program, Mask.of(graph, trained=spec.trained, kept=kept), spec.batch_size)

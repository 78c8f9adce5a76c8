"""Checks a program's description against the submodel that it is to train or to predict with, before anything runs.

Descriptions come from the coordinator and are not trusted. The engine compares the program file with them as well.
"""

from collections.abc import Sequence

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.errors import ExportError
from edgefl.local_rules import trained_parameters
from edgefl.masks import Mask
from edgefl.values import SAMPLE_WEIGHTS, Program, ProgramRole, runs_on

__all__ = ["check_inference_program", "check_training_program", "check_version"]

_BATCH_INPUTS = ("x", "y", SAMPLE_WEIGHTS)
_FURTHER_INPUTS = ("label_mask", "seed")
_RESULTS = ("loss", "correct")
_FIX = "Plan again, or compile a program for this submodel."


def check_training_program(program: Program, mask: Mask) -> None:
    """Raise an `ExportError` unless a program computes every gradient that this mask trains, at its widths."""
    _check_spec(program, ProgramRole.TRAIN, mask)
    untrained = sorted(mask.trained - set(program.spec.trained))
    if untrained:
        raise _unfit(f"the program does not train layer {untrained[0]!r}")
    _check_inputs(program, (*_BATCH_INPUTS, *mask.graph.tensor), _FURTHER_INPUTS)
    tensors = mask.graph.tensor
    known = {*_RESULTS, *(prefix + name for name in tensors for prefix in (GRADIENT, NEW_STATISTIC))}
    _check_names("output", program.outputs, ["loss", *(GRADIENT + name for name in trained_parameters(mask))], known)


def check_inference_program(program: Program, mask: Mask) -> None:
    """Raise an `ExportError` unless a program predicts with the submodel of a mask."""
    _check_spec(program, ProgramRole.INFER, mask)
    _check_inputs(program, ("x", *mask.graph.tensor), ())


def check_version(program: Program, installed: str) -> None:
    """Raise an `ExportError` if a program was compiled for a newer runtime than the installed one."""
    compiler, _, version = program.made_with.partition(" ")
    if compiler != "executorch":
        raise _unfit(f"the program was made with {program.made_with!r}, and not for ExecuTorch")
    if not runs_on(installed, version):
        raise ExportError(
            f"the program was compiled with ExecuTorch {version}, but {installed} is installed",
            fix="Install that version on the device, or compile with the older one.",
        )


def _check_spec(program: Program, role: ProgramRole, mask: Mask) -> None:
    spec, graph = program.spec, mask.graph
    if spec.role is not role:
        raise _unfit(f"the program is to {spec.role.value}, not to {role.value}")
    if spec.model != graph.digest:
        raise _unfit("the program belongs to another model")
    if dict(spec.widths) != dict(mask.widths):
        groups = sorted({*spec.widths, *mask.widths})
        name = next(group for group in groups if spec.widths.get(group) != mask.widths.get(group))
        raise _unfit(
            f"the program was compiled for {spec.widths.get(name)} channels of {name!r}, "
            f"but the mask keeps {mask.widths.get(name)}"
        )


def _check_inputs(program: Program, needed: Sequence[str], further: Sequence[str]) -> None:
    _check_names("input", program.inputs, needed, {*needed, *further})


def _check_names(kind: str, names: Sequence[str], needed: Sequence[str], known: set[str]) -> None:
    missing = [name for name in needed if name not in names]
    strange = [name for name in names if name not in known]
    if missing:
        raise _unfit(f"the program has no {kind} {missing[0]!r}")
    if strange:
        raise _unfit(f"the program has an unknown {kind} {strange[0]!r}")
    if len(set(names)) < len(names):
        raise _unfit(f"the program names an {kind} twice")


def _unfit(problem: str) -> ExportError:
    return ExportError(problem, fix=_FIX)

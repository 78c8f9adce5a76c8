"""The summary that `edgefl export` prints: sizes and costs of the dense model and the submodel."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.artifacts.bundle import Bundle
    from edgefl.cli.export_programs import ExportedPrograms
    from edgefl.masks import Mask
    from edgefl.model_graph import Cost
    from export.parity import Parity

__all__ = ["report"]

_ROWS = {
    "parameters": "parameters",
    "trained parameters": "trained_parameters",
    "weights, bytes": "parameter_bytes",
    "forward multiply-adds": "forward_multiply_adds",
    "backward multiply-adds": "backward_multiply_adds",
    "activations to remember": "saved_activations",
}


def report(
    bundle: "Bundle",
    mask: "Mask | None",
    files: Mapping[str, bytes],
    parity: "Parity | None",
    accuracy: Mapping[str, Any],
    programs: "ExportedPrograms | None" = None,
    *,
    as_json: bool,
) -> None:
    """Print the summary."""
    from edgefl.cli.export_programs import print_programs
    from edgefl.model_graph import cost_of

    dense = cost_of(bundle.graph)
    if as_json:
        _print_json(bundle, dense, mask, files, parity, accuracy, programs)
        return
    print(f"{bundle.manifest.model}: {bundle.manifest.graph}")
    if parity is not None:
        print(f"gradients differ from PyTorch's by at most {parity.gradient_error:.1e} ({parity.worst})")
    print(f"{'':<26}{'dense':>16}" + ("" if mask is None else f"{'personal':>16}{'share':>9}"))
    for label, field in _ROWS.items():
        _print_row(label, getattr(dense, field), None if mask is None else getattr(mask.cost, field))
    whole = _dense_sizes(bundle, files)
    for name, content in files.items():
        _print_row(f"{name}, bytes", whole.get(name), len(content))
    for ending, found in accuracy.items():
        print(
            f"8-bit {ending}: {found.after:.1%} right, {found.before:.1%} in float32, "
            f"the same answer for {found.same:.1%} of {found.samples:,} samples"
        )
    if programs is not None:
        print_programs(programs)


def _print_row(label: str, dense: int | None, personal: int | None) -> None:
    line = f"{label:<26}" + (f"{dense:>16,}" if dense is not None else f"{'-':>16}")
    if personal is not None:
        line += f"{personal:>16,}" + (f"{personal / dense:>9.1%}" if dense else "")
    print(line)


def _dense_sizes(bundle: "Bundle", files: Mapping[str, bytes]) -> dict[str, int]:
    """Return the file sizes of the whole model. ExecuTorch's are left out: compiling it takes minutes."""
    from edgefl.artifacts.bundle import INFER, TRAIN, WEIGHTS
    from edgefl.artifacts.submodel import make_submodel
    from edgefl.masks import full_mask

    sizes = {name: len(bundle.files[name]) for name in (TRAIN, WEIGHTS) if name in files}
    if INFER in files:
        sizes[INFER] = len(make_submodel(bundle, full_mask(bundle.graph)).inference_model)
    return sizes


def _print_json(
    bundle: "Bundle",
    dense: "Cost",
    mask: "Mask | None",
    files: Mapping[str, bytes],
    parity: "Parity | None",
    accuracy: Mapping[str, Any],
    programs: "ExportedPrograms | None",
) -> None:
    from edgefl.cli.export_programs import programs_json
    from edgefl.values import digest_of

    costs = {"dense": dense} | ({} if mask is None else {"personal": mask.cost})
    told = {
        "model": bundle.manifest.model,
        "graph": bundle.manifest.graph,
        "files": dict(bundle.manifest.files),
        "mask": None if mask is None else mask.digest,
        "personal_files": {name: {"digest": digest_of(data), "bytes": len(data)} for name, data in files.items()},
        "gradient_error": None if parity is None else parity.gradient_error,
        "costs": {name: asdict(cost) for name, cost in costs.items()},
        "int8": {ending: asdict(found) for ending, found in accuracy.items()},
        **({} if programs is None else {"programs": programs_json(programs)}),
    }
    print(json.dumps(told, indent=2))

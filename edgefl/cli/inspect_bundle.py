"""`edgefl inspect` of a bundle, and of what it says about samples."""

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.artifacts.bundle import Bundle
    from edgefl.values import SampleSpec

__all__ = ["bundle_json", "bundle_rows", "sample_rows"]


def bundle_rows(bundle: "Bundle") -> list[tuple[str, str]]:
    """Return what a bundle holds, line by line."""
    manifest = bundle.manifest
    rows = [
        ("model", manifest.model),
        ("model graph", manifest.graph),
        ("loss", manifest.loss),
        ("made with", ", ".join(f"{name} {version}" for name, version in manifest.made_with.items())),
    ]
    programs = _program_rows(bundle)
    rows += [(name, f"{len(bundle.files[name]):,} bytes") for name in sorted(manifest.files) if name not in programs]
    rows += programs.items()
    return rows + [(f"sample {label}", text) for label, text in sample_rows(bundle.sample)]


def _program_rows(bundle: "Bundle") -> dict[str, str]:
    """Return what each ExecuTorch program is for, by file: the widest first."""
    from edgefl.artifacts.bundle import INFER, TRAIN, program_file
    from edgefl.planning.rungs import Ladder
    from edgefl.values.formatting import format_bytes

    files = bundle.manifest.files
    if not bundle.manifest.programs:
        return {}
    ladder = Ladder(bundle.graph, files[TRAIN], files[INFER])
    ordered = sorted(
        bundle.manifest.programs,
        key=lambda each: (each.spec.batch_size, sum(each.spec.widths.values()), len(each.spec.trained)),
        reverse=True,
    )
    return {
        program_file(each.spec): f"{each.size:,} bytes: {ladder.rung_of(each.spec)}, "
        f"{format_bytes(each.peak_bytes)} of memory, {each.made_with}"
        for each in ordered
    }


def bundle_json(bundle: "Bundle") -> dict[str, Any]:
    """Return the manifest of a bundle, and what a sample is."""
    from edgefl.values import to_json

    return {**to_json(bundle.manifest), "sample": to_json(bundle.sample)}


def sample_rows(sample: "SampleSpec") -> list[tuple[str, str]]:
    """Return what a sample is, line by line; of an example, its sizes alone."""
    from edgefl.values import describe

    rows = [(label, text) for label, text in describe(sample) if not label.startswith("example ")]
    if sample.example is not None:
        sizes = ", ".join(f"{len(base64.b64decode(getattr(sample.example, name))):,} bytes" for name in ("raw", "x"))
        rows.append(("example", f"class {sample.example.label}: {sizes} before and after normalisation"))
    return rows

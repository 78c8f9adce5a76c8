"""The model to measure: a zoo model, the user's own, or an exported bundle.

With torch, a zoo model is exported first. Without torch, a bundle is needed, or one of the models that every device has
for its profile. What cannot be made then is not an error: `no_source` has the reason, which the report repeats.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from device_runtime.profiler.cases import synthetic_weights
from device_runtime.profiler.reference_models import MODELS, reference_bundles
from edgefl.artifacts.bundle import WEIGHTS, Bundle, read_bundle
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.masks import Weights, full_mask
from edgefl.wire import BodyKind, decode

if TYPE_CHECKING:
    from export.model_source import ModelSource

__all__ = ["BenchmarkModel", "is_installed", "missing_dependency", "open_benchmark_model"]

_PERSONAL = "personal"


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkModel:
    """The model to measure."""

    bundle: Bundle
    weights: Weights
    """Weights of the whole model."""
    source: "ModelSource | None" = None
    """The torch model, if available."""
    target: str | None = None
    """Name by which PyTorch's process opens it again."""
    no_source: str = ""
    """Reason why there is no torch model."""
    personal: Path | None = None
    """Folder of a personal submodel that was exported with the bundle."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.bundle.manifest.model


def is_installed(package: str) -> bool:
    """Return whether a package is installed."""
    return importlib.util.find_spec(package) is not None


def missing_dependency(packages: Sequence[str], action: str, extra: str) -> MissingDependencyError | None:
    """Return the error for the first missing package, or None if all are installed."""
    missing = [package for package in packages if not is_installed(package)]
    return MissingDependencyError(missing[0], action=action, extra=extra) if missing else None


def open_benchmark_model(
    model: str | None,
    bundle: str | None,
    *,
    classes: int | None = None,
    sample: str | None = None,
    weights: str | None = None,
) -> BenchmarkModel:
    """Open a bundle, a zoo model or package.module:factory."""
    if (model is None) == (bundle is None):
        raise EdgeFLError(
            "no model, or more than one, was given", fix="Give either the name of a model or --bundle DIR."
        )
    if bundle is not None:
        return _of_bundle(Path(bundle))
    without = missing_dependency(("torch", "onnx"), f"Exporting {model}", "export")
    if without is None:
        return _exported(str(model), classes, sample, weights)
    if model in MODELS:
        return _built_in(str(model), str(without))
    raise EdgeFLError(
        without.problem,
        fix=f"{without.fix}, pass a model exported elsewhere with --bundle, or use one of {', '.join(MODELS)}.",
    )


def _exported(model: str, classes: int | None, sample: str | None, weights: str | None) -> BenchmarkModel:
    from export.bundle import make_bundle
    from export.model_source import open_source
    from export.zoo import block_of

    source = open_source(model, classes=classes, sample=sample, weights=weights)
    made = make_bundle(source.model, source.name, source.example, block_of=block_of)
    return BenchmarkModel(made, _stored(made), source, model)


def _of_bundle(path: Path) -> BenchmarkModel:
    bundle = read_bundle(path)
    folder = path.with_name(f"{path.stem}.{_PERSONAL}") if path.suffix == ".zip" else path / _PERSONAL
    personal = folder if folder.is_dir() else None
    weights = _stored(bundle) if WEIGHTS in bundle.files else synthetic_weights(full_mask(bundle.graph))
    source, why = _source_of(bundle)
    target = None if source is None else bundle.manifest.model
    return BenchmarkModel(bundle, weights, source, target, why, personal)


def _source_of(bundle: Bundle) -> "tuple[ModelSource | None, str]":
    """Build the torch model of a bundle again if it is a zoo model; a bundle contains graphs, not code."""
    without = missing_dependency(("torch", "onnx"), "Building the torch model", "export")
    if without is not None:
        return None, str(without)
    from export.model_source import open_source
    from export.zoo import ZOO

    manifest = bundle.manifest
    name = manifest.model
    if name not in ZOO or ZOO[name].input_shape != manifest.input_shape:
        return None, f"a bundle contains no torch model, and {name!r} with this input shape is not in the zoo"
    return open_source(name, classes=manifest.outputs), ""


def _built_in(model: str, without: str) -> BenchmarkModel:
    bundle = reference_bundles()[MODELS.index(model)]
    return BenchmarkModel(bundle, synthetic_weights(full_mask(bundle.graph)), no_source=without)


def _stored(bundle: Bundle) -> Weights:
    return decode(bundle.files[WEIGHTS], kind=BodyKind.WEIGHTS).arrays

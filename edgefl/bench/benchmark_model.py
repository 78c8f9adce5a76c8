"""Which model is measured: one of the zoo, the user's own, or an exported bundle; and what can be made of it here.

With torch a model of the zoo is exported on the spot. Without it a bundle does, or one of the models that every device
carries for its profile. What then cannot be made is not an error: `no_source` says why, and the report repeats it.
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
    """Of the whole model."""
    source: "ModelSource | None" = None
    """The torch model, where there is one."""
    target: str | None = None
    """By which name PyTorch's racer finds it again."""
    no_source: str = ""
    """Why there is no torch model."""
    personal: Path | None = None
    """The folder of a personal part that was exported with the bundle."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.bundle.manifest.model


def is_installed(package: str) -> bool:
    """Return whether a package is installed."""
    return importlib.util.find_spec(package) is not None


def missing_dependency(packages: Sequence[str], action: str, extra: str) -> MissingDependencyError | None:
    """Return why something cannot be done here, or None if all its packages are installed."""
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
    """Open what a command names: a bundle, or a model of the zoo or package.module:factory."""
    if (model is None) == (bundle is None):
        raise EdgeFLError("which model to measure is not said", fix="Give either the name of a model or --bundle DIR.")
    if bundle is not None:
        return _of_bundle(Path(bundle))
    without = missing_dependency(("torch", "onnx"), f"Exporting {model}", "export")
    if without is None:
        return _exported(str(model), classes, sample, weights)
    if model in MODELS:
        return _built_in(str(model), str(without))
    raise EdgeFLError(
        without.problem,
        fix=f"{without.fix}, give --bundle with a model that was exported elsewhere, or name {', '.join(MODELS)}.",
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
    """Build the torch model of a bundle anew, if it is one of the zoo; a bundle holds graphs, not code."""
    without = missing_dependency(("torch", "onnx"), "Building the torch model", "export")
    if without is not None:
        return None, str(without)
    from export.model_source import open_source
    from export.zoo import ZOO

    manifest = bundle.manifest
    name = manifest.model
    if name not in ZOO or ZOO[name].input_shape != manifest.input_shape:
        return None, f"a bundle holds no torch model, and {name!r} of this shape is none of the zoo"
    return open_source(name, classes=manifest.outputs), ""


def _built_in(model: str, without: str) -> BenchmarkModel:
    bundle = reference_bundles()[MODELS.index(model)]
    return BenchmarkModel(bundle, synthetic_weights(full_mask(bundle.graph)), no_source=without)


def _stored(bundle: Bundle) -> Weights:
    return decode(bundle.files[WEIGHTS], kind=BodyKind.WEIGHTS).arrays

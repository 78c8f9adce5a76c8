"""Model files for the inference benchmark: dense and sparse, each in float32 and int8.

ONNX models are made without torch, as on a coordinator: with weights baked in, or as inputs if the package onnx is
missing. ExecuTorch programs are compiled from the torch model, or taken from the folder `personal` that `edgefl export`
wrote. Whatever cannot be made is listed with the reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgefl.artifacts.bundle import INFER
from edgefl.bench.benchmark_model import BenchmarkModel, is_installed, missing_dependency
from edgefl.errors import EdgeFLError
from edgefl.masks import Array, Mask, full_mask, gather
from edgefl.planning import widest
from edgefl.wire import decode_mask, encode_weights

__all__ = ["ENGINES", "FORMS", "InferenceFile", "InferenceFiles", "make_inference_files", "sparse_mask"]

ENGINES = {"onnx": "onnxruntime", "executorch": "ExecuTorch"}
FORMS = ("dense", "sparse", "dense int8", "sparse int8")
ENDINGS = {"onnx": "onnx", "executorch": "pte"}


@dataclass(frozen=True, slots=True)
class InferenceFile:
    """One model file to measure."""

    name: str
    engine: str
    form: str
    model: Path
    weights: Path | None = None
    """File of the weights, if they are inputs of the model."""
    kept: float | None = None
    """Kept fraction of the parameters."""

    @property
    def file_bytes(self) -> int:
        """Size of the model, and of the weights if they are in a separate file."""
        return self.model.stat().st_size + (0 if self.weights is None else self.weights.stat().st_size)


@dataclass(slots=True)
class InferenceFiles:
    """The files made so far, and what is missing."""

    made: list[InferenceFile] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def sparse_mask(bench_model: BenchmarkModel, keep: float | None, multiple: int) -> tuple[Mask, Path | None]:
    """Return the mask of the submodel to measure, and the folder of its files if it was exported before.

    `keep` is the largest fraction of the parameters; None means the personal submodel of the bundle, or else 0.3.
    """
    personal = bench_model.personal
    if keep is None and personal is not None and (personal / "mask.safetensors").is_file():
        return decode_mask((personal / "mask.safetensors").read_bytes(), bench_model.bundle.graph), personal
    share = 0.3 if keep is None else keep
    if not 0 < share <= 1:
        raise EdgeFLError(f"--keep is {share:g}", fix="Give a fraction above 0 and at most 1.")
    graph = bench_model.bundle.graph
    return widest(graph, lambda cost: cost.parameters <= share * graph.parameters, multiple=multiple), None


@dataclass(frozen=True, slots=True, eq=False)
class _Maker:
    """Makes the files of one model."""

    bench_model: BenchmarkModel
    samples: Array
    """For the calibration of 8-bit activations."""
    folder: Path

    def onnx(self, mask: Mask, int8: bool) -> tuple[bytes, bytes | None]:
        """Return a model, and its weights if they are inputs."""
        bundle = self.bench_model.bundle
        if INFER not in bundle.files:
            raise EdgeFLError(
                "the built-in graphs are for training only",
                fix="Export the model elsewhere, and pass it with --bundle.",
            )
        part = gather(mask, self.bench_model.weights)
        if not is_installed("onnx"):
            if int8:
                raise EdgeFLError(
                    "8-bit models need the package onnx", fix="Install it, or export the model with --int8."
                )
            return bundle.files[INFER], encode_weights(part, {"model": bundle.graph.digest})
        import onnx

        from edgefl.artifacts.bake import bake
        from edgefl.artifacts.quantise import quantise

        model: bytes = bake(onnx.load_from_string(bundle.files[INFER]), part).SerializeToString(deterministic=True)
        return (quantise(model, self.samples) if int8 else model), None

    def executorch(self, mask: Mask, int8: bool) -> tuple[bytes, None]:
        """Return a program."""
        without = missing_dependency(("torch", "executorch"), "Compiling for ExecuTorch", "export")
        if without is not None:
            raise without
        source = self.bench_model.source
        if source is None:
            raise EdgeFLError(
                self.bench_model.no_source, fix="Export the program with the bundle: --format executorch."
            )
        from export.benchmark_steps import compiled_prediction

        return compiled_prediction(source, mask, self.bench_model.weights, self.samples if int8 else None), None


def make_inference_files(
    bench_model: BenchmarkModel,
    mask: Mask,
    exported: Path | None,
    *,
    engines: Sequence[str],
    forms: Sequence[str],
    samples: Array,
    folder: Path,
    progress: Callable[[str], None],
) -> InferenceFiles:
    """Write the files of every form for every engine; `exported` has files of the mask that were made before."""
    maker, parts = _Maker(bench_model, samples, folder), InferenceFiles()
    masks = {"dense": full_mask(bench_model.bundle.graph), "sparse": mask}
    for engine in engines:
        for form in forms:
            width, _, int8 = form.partition(" ")
            name = f"{form}, {ENGINES[engine]}"
            progress(name)
            try:
                part = _found(name, engine, form, exported) if width == "sparse" else None
                part = part or _made(maker, name, engine, form, masks[width], bool(int8))
            except EdgeFLError as error:
                parts.missing[name] = str(error)
                continue
            kept = masks[width].cost.parameters / mask.graph.parameters
            parts.made.append(replace(part, kept=kept))
    if any(part.weights is not None for part in parts.made):
        parts.notes.append("without the package onnx, weights are inputs of the model, which makes it slower")
    return parts


def _found(name: str, engine: str, form: str, exported: Path | None) -> InferenceFile | None:
    """Return the file of the personal submodel, if it was exported in this form."""
    if exported is None:
        return None
    file = exported / f"infer{'.int8' if form.endswith('int8') else ''}.{ENDINGS[engine]}"
    return InferenceFile(name, engine, form, file) if file.is_file() else None


def _made(maker: _Maker, name: str, engine: str, form: str, mask: Mask, int8: bool) -> InferenceFile:
    model, weights = (maker.onnx if engine == "onnx" else maker.executorch)(mask, int8)
    path = maker.folder / f"{form.replace(' ', '.')}.{ENDINGS[engine]}"
    path.write_bytes(model)
    if weights is None:
        return InferenceFile(name, engine, form, path)
    beside = path.with_suffix(".safetensors")
    beside.write_bytes(weights)
    return InferenceFile(name, engine, form, path, beside)

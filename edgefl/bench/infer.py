"""`edgefl bench infer`: compare dense, sparse and 8-bit models on every installed engine.

Each model runs in its own process and predicts one sample per turn, as a device would. Its speed-up is relative to the
dense model on the same engine, or to the first file if files were given.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from device_runtime.profiler.cases import Sample
from edgefl.bench.benchmark_model import BenchmarkModel
from edgefl.bench.engine_job import EngineJob, command_of
from edgefl.bench.inference_files import ENDINGS, ENGINES, FORMS, InferenceFile, make_inference_files, sparse_mask
from edgefl.bench.measurements import EngineMeasurement, MeasuringTime, measure_processes, noise_notes, source_notes
from edgefl.bench.report import BenchReport, busy_note, load_now
from edgefl.errors import EdgeFLError
from edgefl.masks import Array

if TYPE_CHECKING:
    from edgefl.data import Dataset

__all__ = ["InferRequest", "infer_files", "infer_model"]

CALIBRATION_SAMPLES = 64
TEST_SAMPLES = 500
NOISE_NOTE = "8-bit models were calibrated on noise: their speed and size are valid, their answers are not"
FRESH_NOTE = "the dense model is hardly better than chance, so the accuracies mean nothing"
CUT_NOTE = "sparse models were cut but not retrained: training would recover lost accuracy"


@dataclass(frozen=True, slots=True, eq=False)
class InferRequest:
    """What to measure, and for how long."""

    pace: MeasuringTime
    engines: tuple[str, ...] = tuple(ENGINES)
    forms: tuple[str, ...] = FORMS
    keep: float | None = None
    """Largest fraction of the parameters in the sparse model."""
    multiple: int = 16
    """Widths are multiples of this if a layer is wide enough, which suits the kernels."""
    data: "Dataset | None" = None
    progress: Callable[[str], None] = lambda step: None

    def __post_init__(self) -> None:
        for what, words, known in (("engine", self.engines, ENGINES), ("form", self.forms, FORMS)):
            unknown = [word for word in words if word not in known]
            if unknown or not words:
                raise EdgeFLError(f"unknown {what} {', '.join(unknown)!r}", fix=f"Known: {', '.join(known)}.")


def infer_model(bench_model: BenchmarkModel, request: InferRequest) -> BenchReport:
    """Compare the forms of a model."""
    load, manifest = load_now(), bench_model.bundle.manifest
    mask, exported = sparse_mask(bench_model, request.keep, request.multiple)
    samples = _calibration(bench_model, request.data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = make_inference_files(
            bench_model,
            mask,
            exported,
            engines=request.engines,
            forms=request.forms,
            samples=samples,
            folder=folder,
            progress=request.progress,
        )
        shape, dtype = tuple(manifest.input_shape), manifest.input_dtype.value
        found, missing = _measured(parts.made, request, folder, shape, dtype)
        rows = _rows(parts.made, found, lambda part: f"dense, {ENGINES[part.engine]}")
    notes = [*parts.notes, *_data_notes(request, rows, manifest.outputs)]
    setting = {"model": bench_model.name, "kept": mask.cost.parameters / mask.graph.parameters, "batch": 1}
    return _report(setting, request, rows, {**parts.missing, **missing}, [*notes, *busy_note(load)], found)


def infer_files(files: Sequence[Path], request: InferRequest, shape: tuple[int, ...] | None = None) -> BenchReport:
    """Compare finished models (.onnx, .pte)."""
    load = load_now()
    parts = [_file_part(file, files) for file in files]
    with tempfile.TemporaryDirectory() as name:
        found, missing = _measured(parts, request, Path(name), shape, "float32")
    rows = _rows(parts, found, lambda part: parts[0].name)
    setting = {"files": [str(file) for file in files], "batch": 1}
    notes = [] if request.data is not None else ["accuracy: no data given"]
    return _report(setting, request, rows, missing, [*notes, *busy_note(load)], found)


def _file_part(file: Path, files: Sequence[Path]) -> InferenceFile:
    engines = {ending: engine for engine, ending in ENDINGS.items()}
    engine = engines.get(file.suffix.lstrip("."))
    if engine is None:
        raise EdgeFLError(f"{file} is not a supported model file", fix="Give files that end in .onnx or .pte.")
    if not file.is_file():
        raise EdgeFLError(f"{file} does not exist", fix="Give the path of a model file.")
    alone = sum(other.name == file.name for other in files) == 1
    return InferenceFile(file.name if alone else str(file), engine, "file", file)


def _calibration(bench_model: BenchmarkModel, data: "Dataset | None") -> Array:
    manifest = bench_model.bundle.manifest
    if data is None:
        made = Sample(tuple(manifest.input_shape), manifest.input_dtype.value, manifest.outputs)
        return made.batch(CALIBRATION_SAMPLES).x
    data.check_shape(tuple(manifest.input_shape))
    return data.evenly(CALIBRATION_SAMPLES)[0]


def _measured(
    parts: Sequence[InferenceFile], request: InferRequest, folder: Path, shape: tuple[int, ...] | None, dtype: str
) -> tuple[dict[str, EngineMeasurement], dict[str, str]]:
    commands = {}
    for number, part in enumerate(parts):
        weights = None if part.weights is None else str(part.weights)
        job = EngineJob(
            task="infer",
            engine=part.engine,
            threads=request.pace.threads,
            batch=1,
            model=str(part.model),
            weights=weights,
            shape=shape,
            dtype=dtype,
        )
        commands[part.name] = command_of(job, folder / f"job-{number}.json")
    samples = None
    if request.data is not None:
        samples = folder / "samples.npz"
        x, y = request.data.evenly(TEST_SAMPLES, "test" if len(request.data.test) else "train")
        np.savez(samples, x=x, y=y)
    return measure_processes(commands, request.pace, samples=samples, progress=request.progress)


def _rows(
    parts: Sequence[InferenceFile], found: Mapping[str, EngineMeasurement], against: Callable[[InferenceFile], str]
) -> list[dict[str, Any]]:
    rows = []
    for part in parts:
        measurement, base = found.get(part.name), against(part)
        if measurement is None:
            continue
        speed_up = measurement.ratio_to(found[base], base, inverse=True) if base in found else None
        about = {"name": part.name, "engine": part.engine, "form": part.form, "kept": part.kept}
        rows.append({**about, "file_bytes": part.file_bytes, "speed_up": speed_up, **measurement.figures()})
    return rows


def _data_notes(request: InferRequest, rows: Sequence[Mapping[str, Any]], outputs: int) -> list[str]:
    if request.data is None:
        return ["accuracy: no data given", *([NOISE_NOTE] if any("int8" in row["form"] for row in rows) else [])]
    part = "test" if len(request.data.test) else "train"
    said = f"accuracy: {request.data.name}, {part} part"
    dense = [row["accuracy"]["right"] for row in rows if row["form"] == "dense"]
    by_chance = bool(dense) and max(dense) < 2 / outputs
    return [said, FRESH_NOTE if by_chance else CUT_NOTE]


def _report(
    setting: Mapping[str, Any],
    request: InferRequest,
    rows: list[dict[str, Any]],
    missing: Mapping[str, str],
    notes: Sequence[str],
    found: Mapping[str, EngineMeasurement],
) -> BenchReport:
    said = [*source_notes(found), *noise_notes(rows, "speed_up"), *notes]
    return BenchReport("infer", {**setting, **request.pace.setting()}, rows, missing, said)

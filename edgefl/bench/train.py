"""`edgefl bench train`: compare a training step (loss and all gradients) of every engine with PyTorch's.

Each engine runs in its own process, in turns, on the same batch. All must compute the same loss, otherwise their times
are not comparable. Without torch, only the installed engines run.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runtime.engines import ENGINES as INSTALLABLE
from edgefl.artifacts.bundle import GRAPH, TRAIN
from edgefl.artifacts.cut import cut_training_graph
from edgefl.bench.benchmark_model import BenchmarkModel, missing_dependency
from edgefl.bench.engine_job import PYTORCH, EngineJob, command_of
from edgefl.bench.inference_files import ENGINES
from edgefl.bench.measurements import EngineMeasurement, MeasuringTime, measure_processes, noise_notes, source_notes
from edgefl.bench.report import BenchReport, busy_note, load_now
from edgefl.errors import EdgeFLError
from edgefl.masks import Mask, freeze, full_mask, gather, leading_channels
from edgefl.values import Program, dumps
from edgefl.wire import encode_mask, encode_weights

__all__ = ["PARTS", "TrainRequest", "train_model"]

PARTS: Mapping[str, Callable[[Mask], Mask]] = {
    "full": lambda whole: whole,
    "half": lambda whole: leading_channels(whole.graph, 0.5),
    "head": lambda whole: freeze(whole, whole.graph.trainable_layers[:-1]),
}
"""The whole model; half of every layer's channels; only the last layer trained."""
ALIKE = 1e-3
"""Largest accepted relative difference between losses."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainRequest:
    """What to measure, and for how long."""

    pace: MeasuringTime
    engines: tuple[str, ...] = (PYTORCH, *ENGINES)
    batches: tuple[int, ...] = (32,)
    parts: tuple[str, ...] = ("full",)
    progress: Callable[[str], None] = lambda step: None

    def __post_init__(self) -> None:
        known = (PYTORCH, *ENGINES)
        for what, words, here in (("engine", self.engines, known), ("part", self.parts, tuple(PARTS))):
            unknown = [word for word in words if word not in here]
            if unknown or not words:
                raise EdgeFLError(f"unknown {what} {', '.join(unknown)!r}", fix=f"Known: {', '.join(here)}.")
        if not self.batches or min(self.batches) < 1:
            raise EdgeFLError(f"the batch sizes are {self.batches}", fix="Give numbers of at least 1.")


def train_model(bench_model: BenchmarkModel, request: TrainRequest) -> BenchReport:
    """Compare the engines on a model at each batch size."""
    load = load_now()
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    notes: list[str] = []
    for batch in request.batches:
        with tempfile.TemporaryDirectory() as name:
            field = _EngineJobs(bench_model, request, batch, Path(name))
            commands = field.commands()
            found, failed = measure_processes(commands, request.pace, progress=request.progress)
        missing |= field.missing | failed
        rows += _rows(field, found)
        notes += [note for note in [*source_notes(found), *_loss_notes(found)] if note not in notes]
    setting = {"model": bench_model.name, "batches": list(request.batches), **request.pace.setting()}
    return BenchReport("train", setting, rows, missing, [*notes, *noise_notes(rows, "time"), *busy_note(load)])


class _EngineJobs:
    """The engine jobs of one batch size: their files, and what is missing."""

    def __init__(self, bench_model: BenchmarkModel, request: TrainRequest, batch: int, folder: Path) -> None:
        self._subject, self._order, self._folder = bench_model, request, folder
        self.batch = batch
        self.missing: dict[str, str] = {}
        self.about: dict[str, dict[str, Any]] = {}

    def name(self, engine: str, part: str) -> str:
        """Return the name of a row."""
        title = "PyTorch" if engine == PYTORCH else ENGINES[engine]
        width = {"full": "", "half": ", half width", "head": ", head alone"}[part]
        return f"{title}{width}, batch {self.batch}"

    def commands(self) -> dict[str, list[str]]:
        """Write the files of all engines, and return their commands."""
        found: dict[str, list[str]] = {}
        for engine in self._order.engines:
            for part in self._order.parts:
                if engine == PYTORCH and part != "full":
                    continue  # submodels are compared with the whole model on the same engine
                name = self.name(engine, part)
                self._order.progress(name)
                try:
                    job = self._job(engine, part)
                except EdgeFLError as error:
                    self.missing[name] = str(error)
                    continue
                self.about[name] = {"engine": engine, "part": part, "batch": self.batch}
                found[name] = command_of(job, self._folder / f"job-{len(found)}.json")
        return found

    def _job(self, engine: str, part: str) -> EngineJob:
        bench_model, manifest = self._subject, self._subject.bundle.manifest
        mask = PARTS[part](full_mask(bench_model.bundle.graph))
        model: Path | None = None
        program: Program | None = None
        if engine == PYTORCH:
            self._need_source("PyTorch", ("torch",))
        else:
            content, program = self._program(engine, mask)
            model = self._file(f"{part}.{engine}", content)
        weights = encode_weights(gather(mask, bench_model.weights), {"mask": mask.digest})
        return EngineJob(
            task="train",
            engine=engine,
            threads=self._order.pace.threads,
            batch=self.batch,
            model=None if model is None else str(model),
            program=None if program is None else dumps(program),
            weights=str(self._file(f"{part}.weights", weights)),
            mask=str(self._file(f"{part}.mask", encode_mask(mask))),
            graph=str(self._file("graph.json", bench_model.bundle.files[GRAPH])),
            shape=tuple(manifest.input_shape),
            dtype=manifest.input_dtype.value,
            outputs=manifest.outputs,
            loss=manifest.loss,
            source=bench_model.target,
            classes=None if ":" in str(bench_model.target) else manifest.outputs,
        )

    def _program(self, engine: str, mask: Mask) -> tuple[bytes, Program | None]:
        package, extra, _ = INSTALLABLE[engine]
        without = missing_dependency((package,), f"The engine {engine!r}", extra)
        if without is not None:
            raise without
        if engine == "onnx":
            return self._training_graph(mask), None
        self._need_source("Compiling for ExecuTorch", ("torch", package))
        from export.benchmark_steps import compiled_step

        assert self._subject.source is not None  # _need_source has checked it
        program, pte = compiled_step(self._subject.source, self._subject.bundle, mask, self.batch)
        return pte, program

    def _training_graph(self, mask: Mask) -> bytes:
        graph, whole = self._subject.bundle.files[TRAIN], set(mask.graph.trainable_layers)
        if mask.trained == whole:
            return graph
        without = missing_dependency(("onnx",), "Cutting a graph for frozen layers", "export")
        if without is not None:
            raise without
        return cut_training_graph(graph, mask)

    def _need_source(self, action: str, packages: tuple[str, ...]) -> None:
        without = missing_dependency(packages, action, "export")
        if without is not None:
            raise without
        if self._subject.source is None:
            raise EdgeFLError(self._subject.no_source, fix="Give the name of the model instead of its bundle.")

    def _file(self, name: str, content: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(content)
        return path


def _rows(field: _EngineJobs, found: Mapping[str, EngineMeasurement]) -> list[dict[str, Any]]:
    """Return one row per engine: its time relative to PyTorch's, and a submodel's relative to the whole model's."""
    base = field.name(PYTORCH, "full")
    rows = []
    for name, measurement in found.items():
        about = field.about[name]
        whole = field.name(about["engine"], "full")
        rows.append(
            {
                "name": name,
                **about,
                "time": measurement.ratio_to(found[base], base) if base in found else None,
                "of_whole": measurement.ratio_to(found[whole], whole) if whole in found and whole != name else None,
                "loss": measurement.facts.get("loss"),
                **measurement.figures(),
            }
        )
    return rows


def _loss_notes(found: Mapping[str, EngineMeasurement]) -> list[str]:
    """Return a warning if engines that train the same model compute different losses."""
    losses = {name: one.facts["loss"] for name, one in found.items() if ", half" not in name and "loss" in one.facts}
    if len(losses) < 2:
        return []
    furthest = max(losses.values()) - min(losses.values())
    share = furthest / max(1e-9, abs(next(iter(losses.values()))))
    if share <= ALIKE:
        return []
    return [f"the engines compute different losses ({losses}): their times are not comparable"]

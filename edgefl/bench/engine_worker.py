"""The process of one engine: `python -m edgefl.bench.engine_worker JOB.json`, which `engine_processes` starts.

Engines are those of the device (`device_runtime.engines`); PyTorch comes from `export.benchmark_steps`. Memory taken by
importing an engine is not counted as the model's.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from device_runtime.engines import Engine, ThreadSettings, open_engine
from device_runtime.profiler.cases import Sample, synthetic_weights
from edgefl.bench.engine_job import PYTORCH, EngineJob
from edgefl.bench.process_loop import Workload, serve_requests
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.masks import Weights
from edgefl.model_graph import ModelGraph
from edgefl.values import Program, loads
from edgefl.wire import BodyKind, decode, decode_mask

__all__ = ["main"]

_AT_ONCE = 16


def main() -> None:
    """Load the job's model, and serve requests."""
    job = EngineJob.read(Path(sys.argv[1]))
    if job.engine == PYTORCH:
        serve_requests(partial(_torch_step, job), _import_torch)
        return
    opened: list[Engine] = []
    load = _prediction if job.task == "infer" else _step
    serve_requests(
        lambda: load(job, opened[0]), lambda: opened.append(open_engine(job.engine, ThreadSettings(job.threads)))
    )


def _prediction(job: EngineJob, engine: Engine) -> Workload:
    predict = engine.predictor(_content(job.model))
    weights = _weights(job.weights)
    shape = predict.sample_shape if job.shape is None else job.shape
    free = [size for size in shape if size is None]
    if free:
        raise EdgeFLError(
            f"the model does not define the shape of a sample: {shape}", fix="Give it, for example --input 3,32,32."
        )
    dtype = predict.sample_dtype if job.shape is None else job.dtype
    x = Sample(tuple(size for size in shape if size is not None), dtype, 1).batch(job.batch).x
    predict(weights, x)  # errors are reported before measuring
    return Workload(lambda: predict(weights, x), {"engine": engine.name}, partial(_evaluated, predict, weights))


def _evaluated(predict: Callable[..., Any], weights: Weights, file: str) -> Mapping[str, Any]:
    """Return the accuracy on the samples in a file."""
    with np.load(file) as data:
        x, y = data["x"], data["y"]
    parts = range(0, len(x), _AT_ONCE)
    answers = np.concatenate([predict(weights, x[at : at + _AT_ONCE]).argmax(axis=1) for at in parts])
    return {"right": float(np.mean(answers == y)), "samples": len(y)}


def _step(job: EngineJob, engine: Engine) -> Workload:
    graph = loads(ModelGraph, _content(job.graph))
    mask = decode_mask(_content(job.mask), graph)
    weights = synthetic_weights(mask) if job.weights is None else _weights(job.weights)
    sample = _sample(job)
    program = None if job.program is None else loads(Program, job.program)
    step = engine.train_step(_content(job.model), mask, labels=sample.labels, program=program)
    batch = sample.batch(job.batch)
    loss = step(weights, batch).loss
    return Workload(lambda: step(weights, batch), {"engine": engine.name, "loss": float(loss)})


def _import_torch() -> None:
    try:
        import export.benchmark_steps  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(error.name or "torch", action="PyTorch", extra="export") from None


def _torch_step(job: EngineJob) -> Workload:
    from export.benchmark_steps import eager_step

    batch = _sample(job).batch(job.batch)
    sample = ",".join(map(str, job.shape or ())) if ":" in str(job.source) else None
    step, loss, name = eager_step(
        str(job.source), batch.x, batch.y, threads=job.threads, classes=job.classes, sample=sample, weights=job.weights
    )
    return Workload(step, {"engine": name, "loss": loss})


def _sample(job: EngineJob) -> Sample:
    return Sample(job.shape or (), job.dtype, job.outputs, job.loss)


def _weights(path: str | None) -> Weights:
    return {} if path is None else decode(_content(path), kind=BodyKind.WEIGHTS).arrays


def _content(path: str | None) -> bytes:
    if path is None:
        raise EdgeFLError("the job names no file", fix="This is a bug in EdgeFL: please report it.")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise EdgeFLError(f"{path} cannot be read: {error.strerror}", fix="Give the path of a file.") from None


if __name__ == "__main__":
    main()

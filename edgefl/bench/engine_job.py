"""The job of an engine process: a JSON file that a benchmark writes and the process reads."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["PYTORCH", "ENGINE_WORKER", "EngineJob", "command_of"]

ENGINE_WORKER = "edgefl.bench.engine_worker"
PYTORCH = "pytorch"
"""PyTorch itself, in addition to the engines of `device_runtime.engines`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineJob:
    """One model on one engine. Files are paths; None if the job does not need them."""

    task: str
    """"infer" or "train"."""
    engine: str
    threads: int
    batch: int
    model: str | None = None
    """The inference model, training graph or program."""
    program: str | None = None
    """The description of a training program, as JSON."""
    weights: str | None = None
    """A body of kind `weights`, if the model does not contain them."""
    mask: str | None = None
    """For training: a body of kind `mask`."""
    graph: str | None = None
    """For training: the model graph of the mask."""
    shape: tuple[int, ...] | None = None
    """Shape of one sample; None if the model defines it."""
    dtype: str = "float32"
    outputs: int = 1
    loss: str = "cross_entropy"
    source: str | None = None
    """PyTorch: a zoo model, or package.module:factory, which then needs a shape."""
    classes: int | None = None

    @classmethod
    def read(cls, path: Path) -> "EngineJob":
        """Read a job."""
        given = json.loads(path.read_text(encoding="utf-8"))
        shape = given.pop("shape")
        return cls(**given, shape=None if shape is None else tuple(shape))


def command_of(job: EngineJob, path: Path) -> list[str]:
    """Write a job to a file, and return the command of its process."""
    path.write_text(json.dumps(asdict(job)), encoding="utf-8")
    return [ENGINE_WORKER, str(path)]

"""What a racer shall load: one file of JSON, which a benchmark writes and the racer's process reads."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["PYTORCH", "ENGINE_WORKER", "EngineJob", "command_of"]

ENGINE_WORKER = "edgefl.bench.engine_worker"
PYTORCH = "pytorch"
"""PyTorch itself, beside the engines of `device_runtime.engines`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineJob:
    """One model on one engine. Files are paths; None where the job needs none."""

    task: str
    """"infer" or "train"."""
    engine: str
    threads: int
    batch: int
    model: str | None = None
    """The inference model, training graph or program."""
    weights: str | None = None
    """A body of kind `weights`, where the model has none inside."""
    mask: str | None = None
    """To train: a body of kind `mask`."""
    graph: str | None = None
    """To train: the model graph that the mask is of."""
    shape: tuple[int, ...] | None = None
    """Of one sample; None where the model says it."""
    dtype: str = "float32"
    outputs: int = 1
    loss: str = "cross_entropy"
    source: str | None = None
    """PyTorch: a model of the zoo, or package.module:factory, which then needs a shape."""
    classes: int | None = None

    @classmethod
    def read(cls, path: Path) -> "EngineJob":
        """Read a job."""
        given = json.loads(path.read_text(encoding="utf-8"))
        shape = given.pop("shape")
        return cls(**given, shape=None if shape is None else tuple(shape))


def command_of(job: EngineJob, path: Path) -> list[str]:
    """Write a job to a file, and return the command of its racer."""
    path.write_text(json.dumps(asdict(job)), encoding="utf-8")
    return [ENGINE_WORKER, str(path)]

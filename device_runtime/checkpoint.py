"""The training state on disk, from which a device resumes after a crash; the file is complete or absent.

The file is a body of kind `weights`: the tensors as "weights/<name>", the rule's memory as "memory/<name>", the mask as
bytes under "mask", the times of the steps, and the progress as JSON. A checkpoint that is damaged or belongs to another
task is ignored.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgefl.artifacts.artifact_store import PRIVATE, write_atomically
from edgefl.errors import EdgeFLError
from edgefl.local_rules import State
from edgefl.model_graph import ModelGraph
from edgefl.wire import Body, BodyKind, Dense, decode, decode_mask, encode, encode_mask

__all__ = ["TrainingProgress", "load_checkpoint", "save_checkpoint"]

_WEIGHTS = "weights/"
_MEMORY = "memory/"


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """The progress of a task."""

    task_id: str
    epochs: int = 0
    """Completed epochs."""
    loss: float = 0.0
    """Mean training loss of the last completed epoch."""
    step_seconds: tuple[float, ...] = ()
    """The duration of every step."""


def save_checkpoint(path: Path, progress: TrainingProgress, state: State) -> None:
    """Write a state atomically."""
    tensors = {_WEIGHTS + name: Dense(array) for name, array in state.weights.items()}
    tensors |= {_MEMORY + name: Dense(array) for name, array in state.memory.items()}
    tensors["mask"] = Dense(np.frombuffer(encode_mask(state.mask), np.uint8))
    tensors["step_seconds"] = Dense(np.array(progress.step_seconds, np.float64))
    said = {"task_id": progress.task_id, "epochs": progress.epochs, "loss": progress.loss, "steps": state.steps}
    about = {"progress": json.dumps(said)}
    write_atomically(path, encode(Body(BodyKind.WEIGHTS, tensors, about=about)), mode=PRIVATE)


def load_checkpoint(path: Path, task_id: str, graph: ModelGraph) -> tuple[TrainingProgress, State] | None:
    """Return the state of a task, or None if there is no usable one."""
    try:
        body = decode(path.read_bytes(), kind=BodyKind.WEIGHTS)
        said = json.loads(body.about["progress"])
        steps = int(said.pop("steps"))
        arrays = body.arrays
        progress = TrainingProgress(**said, step_seconds=tuple(arrays.pop("step_seconds").tolist()))
        mask = decode_mask(arrays.pop("mask").tobytes(), graph)
    except (OSError, EdgeFLError, ValueError, KeyError, TypeError):
        return None
    if progress.task_id != task_id:
        return None
    # A rule changes its arrays in place; those of a body are read-only.
    weights = {name.removeprefix(_WEIGHTS): array.copy() for name, array in arrays.items() if name.startswith(_WEIGHTS)}
    memory = {name.removeprefix(_MEMORY): array.copy() for name, array in arrays.items() if name.startswith(_MEMORY)}
    return progress, State(mask, weights, memory, steps)

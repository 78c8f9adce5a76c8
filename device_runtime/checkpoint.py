"""The training state on disk, from which a device resumes after a crash; the file is complete or absent.

The file is a body of kind `weights`: the tensors as "weights/<name>", the rule's memory as "memory/<name>", the mask as
bytes under "mask", the times of the steps, and the progress as JSON. A checkpoint that is damaged, of another task, or
of other training (see `origin_of`) is ignored. One from before checkpoints were written within epochs is at the end of
an epoch, and read as that.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from device_runtime.refusal import RefusalError
from edgefl.artifacts.artifact_store import PRIVATE, write_atomically
from edgefl.errors import EdgeFLError, WireFormatError
from edgefl.local_rules import State
from edgefl.model_graph import ModelGraph
from edgefl.values import ClientPlan, Reason, digest_of, dumps
from edgefl.wire import Body, BodyKind, Dense, decode, decode_mask, encode, encode_mask

__all__ = [
    "CHECKPOINT_SECONDS",
    "CheckpointFile",
    "TrainingProgress",
    "load_checkpoint",
    "origin_of",
    "save_checkpoint",
]

CHECKPOINT_SECONDS = 60.0
"""Seconds of training between checkpoints: what a device without power loses, and how fast its flash memory wears. One
of a model of 400,000 parameters with momenta has 3 MB."""

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
    pass_steps: int = 0
    """Steps of the epoch that is not completed."""
    pass_loss: float = 0.0
    """The sum of their losses, added one after the other."""
    origin: str = ""
    """What is trained (`origin_of`); empty in checkpoints of versions that did not say."""

    @property
    def mean_loss(self) -> float:
        """Mean training loss of the last pass, whether it is complete or not."""
        return self.pass_loss / self.pass_steps if self.pass_steps else self.loss

    def after_step(self, loss: float) -> "TrainingProgress":
        """Return the progress after one more step."""
        return replace(self, pass_steps=self.pass_steps + 1, pass_loss=self.pass_loss + loss)

    def after_epoch(self) -> "TrainingProgress":
        """Return the progress after the last step of an epoch."""
        return replace(self, epochs=self.epochs + 1, loss=self.mean_loss, pass_steps=0, pass_loss=0.0)

    def timed(self, seconds: tuple[float, ...]) -> "TrainingProgress":
        """Return the progress with the durations of the steps."""
        return replace(self, step_seconds=seconds)


class CheckpointFile:
    """The checkpoint of one task; without a folder there is none. It is due `seconds` after the last one."""

    def __init__(self, folder: Path | None, task_id: str, seconds: float) -> None:
        self._path = None if folder is None else folder / f"{task_id}.checkpoint.safetensors"
        self._task_id, self._seconds = task_id, seconds
        self._saved = time.monotonic()
        self.steps = 0
        """The number of steps in it."""

    @property
    def is_due(self) -> bool:
        """Whether it is time to save."""
        return self._path is not None and time.monotonic() - self._saved >= self._seconds

    def load(self, graph: ModelGraph, origin: str) -> tuple[TrainingProgress, State] | None:
        """Return the state of the task, or None if there is no usable one."""
        known = None if self._path is None else load_checkpoint(self._path, self._task_id, graph)
        if known is not None and known[0].origin not in ("", origin):
            known = None
        self.steps = 0 if known is None else known[1].steps
        return known

    def save(self, progress: TrainingProgress, state: State) -> None:
        """Write a state, or refuse the task if that cannot be."""
        if self._path is None:
            return
        try:
            save_checkpoint(self._path, progress, state)
        except WireFormatError as error:  # a weight is not finite
            raise RefusalError(
                Reason.DIVERGED, error.problem, fix="Lower the learning rate, or clip the gradients."
            ) from None
        except OSError as error:
            raise RefusalError(
                Reason.STORAGE, f"a checkpoint cannot be written: {error.strerror}", fix="Free some space on the disk."
            ) from None
        self._saved, self.steps = time.monotonic(), state.steps

    def remove(self) -> None:
        """Remove it."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def origin_of(plan: ClientPlan, samples: int) -> str:
    """Return a digest of what the bits of training follow from: the plan, and the device's number of samples.

    An owner may change the data between two starts. Then the task begins again: its batches are others. The engine may
    change, too: a program computes what the graph does, so the other engine goes on where this one stopped.
    """
    same = replace(plan, deadline_seconds=0.0, predicted=None, tensors=None, program=None, inference_program=None)
    return digest_of(f"{dumps(same)} {samples}".encode())


def save_checkpoint(path: Path, progress: TrainingProgress, state: State) -> None:
    """Write a state atomically."""
    tensors = {_WEIGHTS + name: Dense(array) for name, array in state.weights.items()}
    tensors |= {_MEMORY + name: Dense(array) for name, array in state.memory.items()}
    tensors["mask"] = Dense(np.frombuffer(encode_mask(state.mask), np.uint8))
    tensors["step_seconds"] = Dense(np.array(progress.step_seconds, np.float64))
    said = {
        "task_id": progress.task_id,
        "epochs": progress.epochs,
        "loss": progress.loss,
        "pass_steps": progress.pass_steps,
        "pass_loss": progress.pass_loss,
        "steps": state.steps,
        "origin": progress.origin,
    }
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

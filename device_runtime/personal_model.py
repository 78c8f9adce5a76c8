"""The model that stays on the device: its own weights, at its own widths, and what predicts with them, in one file.

The trainer's result is stored after every task. `edgefl predict` reads it, and so do local rules that continue from it
in the next task (`own_weights`). It is never sent.

The previous model is kept beside it, so that a task that runs again starts from the same weights as before, and not
from its own result.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgefl.artifacts.artifact_store import PRIVATE, write_atomically
from edgefl.errors import EdgeFLError
from edgefl.local_rules import BaseNetworks, networks_within
from edgefl.masks import Array, Mask, Weights, gather, scatter
from edgefl.model_graph import ModelGraph
from edgefl.values import ClientPlan, GraphFormat, Program, dumps, loads
from edgefl.wire import Body, BodyKind, Dense, decode, decode_mask, encode, encode_mask

__all__ = ["SavedPersonalModel", "PersonalModel", "load_personal", "own_submodel", "own_weights", "save_personal"]

FILE = "personal.safetensors"
BEFORE = "personal.before.safetensors"
_TENSOR = "weights/"


@dataclass(frozen=True, slots=True, eq=False)
class PersonalModel:
    """A device's own model."""

    mask: Mask
    weights: Weights
    inference: bytes
    """The inference graph or program, which takes the weights as inputs."""
    round: int
    """The round in which it was last trained."""
    device_id: str = ""
    """The device's id at that time; it has another one in another federation."""
    task_id: str = ""
    """The task that produced it."""
    is_personal: bool = False
    """Whether that task personalised the final model."""
    program: Program | None = None
    """The description of `inference`, if that is an ExecuTorch program."""
    split_into: int = 0
    """Into how many base networks the whole model is split (Split-Mix); 0 if it is one network."""

    @property
    def networks(self) -> list[Weights]:
        """The networks whose logits are averaged in a prediction: one, unless the model is split."""
        if not self.split_into:
            return [self.weights]
        return networks_within(BaseNetworks(networks=self.split_into), self.mask, self.weights)

    @property
    def format(self) -> GraphFormat:
        """What an engine must run to predict."""
        return GraphFormat.ONNX if self.program is None else GraphFormat.EXECUTORCH


@dataclass(frozen=True, slots=True)
class SavedPersonalModel:
    """A record of a saved model and the state of its file, so that the next save need not read the file.

    A file that nobody has written since is taken to be sound; corruption of the disk itself goes unnoticed here.
    """

    task_id: str
    file: tuple[int, int, int]


def save_personal(folder: Path, model: PersonalModel, before: SavedPersonalModel | None = None) -> SavedPersonalModel:
    """Save a model and keep the previous one. After a crash, the previous one is still there under one of its two
    names."""
    tensors = {_TENSOR + name: Dense(array) for name, array in model.weights.items()}
    tensors["mask"] = _bytes(encode_mask(model.mask))
    tensors["graph"] = _bytes(dumps(model.mask.graph).encode())
    tensors["inference"] = _bytes(model.inference)
    if model.program is not None:
        tensors["program"] = _bytes(dumps(model.program).encode())
    about = {"round": str(model.round), "device": model.device_id, "task": model.task_id}
    about |= {"personal": "yes"} if model.is_personal else {}
    about |= {"split into": str(model.split_into)} if model.split_into else {}
    path = folder / FILE
    with contextlib.suppress(FileNotFoundError, EdgeFLError):  # it does not exist yet, or is damaged
        last = before if before is not None and before.file == _state(path) else _read(path)
        if last.task_id != model.task_id:
            path.replace(folder / BEFORE)
    write_atomically(path, encode(Body(BodyKind.WEIGHTS, tensors, about=about)), mode=PRIVATE)
    return SavedPersonalModel(model.task_id, _state(path))


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def load_personal(folder: Path) -> PersonalModel:
    """Read the model of a device."""
    for name in (FILE, BEFORE):
        with contextlib.suppress(OSError):
            return _read(folder / name)
    raise EdgeFLError(f"there is no personal model in {folder}", fix="Let the device train first, with `edgefl join`.")


def own_weights(folder: Path, plan: ClientPlan, mask: Mask, sent: Weights) -> Weights | None:
    """Return the model that the device had before a task, cut to the submodel of that task; None if it had none.

    A model of another federation or another network does not count.
    """
    for name in (FILE, BEFORE):
        with contextlib.suppress(FileNotFoundError, EdgeFLError):  # ignore a damaged one
            model = _read(folder / name)
            same = (model.device_id, model.mask.graph.digest) == (plan.device_id, mask.graph.digest)
            if same and model.task_id != plan.task_id:
                return own_submodel(model.mask, model.weights, mask, sent)
    return None


def own_submodel(had: Mask, own: Weights, mask: Mask, sent: Weights) -> Weights:
    """Convert a device's own model from the mask `had` to the mask `mask`.

    Channels that it did not have are taken from the coordinator's weights, so a device whose submodel grows keeps what
    it has learned.
    """
    if had.digest == mask.digest:
        return own
    part: dict[str, Array] = {}
    for tensor in mask.graph.tensors:  # one at a time: the whole model may not fit the device's memory
        name = tensor.name
        whole = scatter(mask, {name: sent[name]}, {name: np.zeros(tensor.shape, tensor.dtype.value)})
        part |= gather(mask, scatter(had, {name: own[name]}, whole), [name])
    return part


def _read(path: Path) -> PersonalModel:
    body = decode(path.read_bytes(), kind=BodyKind.WEIGHTS)
    arrays, about = body.arrays, body.about
    try:
        graph = loads(ModelGraph, arrays["graph"].tobytes())
        mask = decode_mask(arrays["mask"].tobytes(), graph)
        weights = {name.removeprefix(_TENSOR): array for name, array in arrays.items() if name.startswith(_TENSOR)}
        inference, number = arrays["inference"].tobytes(), int(about.get("round", "0"))
        device, task = about.get("device", ""), about.get("task", "")
        program = loads(Program, arrays["program"].tobytes()) if "program" in arrays else None
        personal, split_into = about.get("personal") == "yes", int(about.get("split into", "0"))
        return PersonalModel(mask, weights, inference, number, device, task, personal, program, split_into)
    except (KeyError, ValueError):
        raise EdgeFLError(f"{path} is not a personal model", fix="Let the device train again.") from None


def _bytes(content: bytes) -> Dense:
    array: Array = np.frombuffer(content, np.uint8)
    return Dense(array)

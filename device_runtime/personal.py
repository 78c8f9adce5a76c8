"""The model that stays on the device: its own weights, at its own widths, with the graph to predict with, in one file.

The trainer's result goes in after every task; `edgefl predict` reads it. Nothing of it is ever sent.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgefl.artifacts.store import write_whole
from edgefl.errors import EdgeFLError
from edgefl.masks import Array, Mask, Weights
from edgefl.model_graph import ModelGraph
from edgefl.values import dumps, loads
from edgefl.wire import Body, Dense, Kind, decode, decode_mask, encode, encode_mask

__all__ = ["PersonalModel", "load_personal", "save_personal"]

FILE = "personal.safetensors"
_TENSOR = "weights/"


@dataclass(frozen=True, slots=True, eq=False)
class PersonalModel:
    """A device's own model."""

    mask: Mask
    weights: Weights
    inference: bytes
    """The inference graph, which takes the weights as inputs."""
    round: int
    """The round that it was trained in last."""


def save_personal(folder: Path, model: PersonalModel) -> None:
    """Keep a model in place of the one before."""
    tensors = {_TENSOR + name: Dense(array) for name, array in model.weights.items()}
    tensors["mask"] = _bytes(encode_mask(model.mask))
    tensors["graph"] = _bytes(dumps(model.mask.graph).encode())
    tensors["inference"] = _bytes(model.inference)
    write_whole(folder / FILE, encode(Body(Kind.WEIGHTS, tensors, about={"round": str(model.round)})))


def load_personal(folder: Path) -> PersonalModel:
    """Read the model of a device."""
    try:
        data = (folder / FILE).read_bytes()
    except OSError:
        raise EdgeFLError(
            f"there is no personal model in {folder}", fix="Let the device train first, with `edgefl join`."
        ) from None
    body = decode(data, kind=Kind.WEIGHTS)
    arrays = body.arrays
    try:
        graph = loads(ModelGraph, arrays["graph"].tobytes())
        mask = decode_mask(arrays["mask"].tobytes(), graph)
        weights = {name.removeprefix(_TENSOR): array for name, array in arrays.items() if name.startswith(_TENSOR)}
        return PersonalModel(mask, weights, arrays["inference"].tobytes(), int(body.about.get("round", "0")))
    except (KeyError, ValueError):
        raise EdgeFLError(f"{folder / FILE} is no personal model", fix="Let the device train again.") from None


def _bytes(content: bytes) -> Dense:
    array: Array = np.frombuffer(content, np.uint8)
    return Dense(array)

"""The models that simulated devices keep between rounds: in memory, or in files where several workers share them.

On a real device this is `device_runtime.personal_model`, which survives crashes; here nothing has to.
"""

from pathlib import Path

import numpy as np

from device_runtime.personal_model import own_submodel
from edgefl.masks import Array, Mask, Weights
from edgefl.model_graph import ModelGraph
from edgefl.wire import Body, BodyKind, Dense, decode, decode_mask, encode, encode_mask

__all__ = ["DeviceModels"]

_MASK, _TENSOR = "mask", "weights/"


class DeviceModels:
    """One model for each device that has trained."""

    def __init__(self, graph: ModelGraph, folder: Path | None = None) -> None:
        self._graph, self._folder = graph, folder
        self._known: dict[int, tuple[Mask, Weights]] = {}

    def keep(self, device: int, mask: Mask, weights: Weights) -> None:
        """Keep a device's model, replacing the previous one."""
        if self._folder is None:
            self._known[device] = mask, {name: np.array(array) for name, array in weights.items()}
            return
        tensors = {_TENSOR + name: Dense(array) for name, array in weights.items()}
        tensors[_MASK] = Dense(np.frombuffer(encode_mask(mask), np.uint8))
        self._file(device).write_bytes(encode(Body(BodyKind.WEIGHTS, tensors)))

    def part(self, device: int, mask: Mask, sent: Weights) -> Weights | None:
        """Return a device's model at the widths of a task's submodel; None if it has none."""
        found = self._found(device)
        return None if found is None else own_submodel(*found, mask, sent)

    def _found(self, device: int) -> tuple[Mask, Weights] | None:
        if self._folder is None:
            return self._known.get(device)
        try:
            arrays: dict[str, Array] = decode(self._file(device).read_bytes(), kind=BodyKind.WEIGHTS).arrays
        except FileNotFoundError:
            return None
        mask = decode_mask(arrays.pop(_MASK).tobytes(), self._graph)
        return mask, {name.removeprefix(_TENSOR): array for name, array in arrays.items()}

    def _file(self, device: int) -> Path:
        if self._folder is None:
            raise RuntimeError("models in memory have no files")
        return self._folder / f"{device}.safetensors"

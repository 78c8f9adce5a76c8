"""How good the global model is on data that the coordinator has: onnxruntime, the inference graph, no torch.

The graph takes weights as inputs, so one session serves every round.
"""

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

from edgefl.artifacts.bundle import INFER, Bundle
from edgefl.data import Dataset, load
from edgefl.errors import DataError
from edgefl.federation import settings
from edgefl.masks import Weights
from edgefl.model_graph import Dtype

__all__ = ["Evaluator", "Score", "check_data"]


@dataclass(frozen=True, slots=True)
class Score:
    """What a model is worth on the test data."""

    accuracy: float
    loss: float
    """Mean cross-entropy."""
    samples: int


def check_data(bundle: Bundle, wanted: settings.EvaluationSettings) -> Dataset:
    """Return the data to evaluate on, if they fit the model."""
    data = load(wanted.data, wanted.folder)
    if len(data.test) == 0:
        raise DataError(f"the data set {data.name!r} has no test samples", fix="Give one that has, or no evaluation.")
    features, _ = data.batch([0], "test")
    shape, dtype = tuple(features.shape[1:]), Dtype(str(features.dtype))
    if shape != tuple(bundle.manifest.input_shape) or dtype is not bundle.manifest.input_dtype:
        raise DataError(
            f"samples of {data.name!r} have shape {shape} and type {dtype}, but the model "
            f"{bundle.manifest.model!r} takes {tuple(bundle.manifest.input_shape)} and {bundle.manifest.input_dtype}",
            fix="Evaluate on the data that the model was made for.",
        )
    if data.classes > bundle.manifest.outputs:
        raise DataError(
            f"{data.name!r} has {data.classes} classes, but the model gives {bundle.manifest.outputs} numbers",
            fix="Evaluate on the data that the model was made for.",
        )
    return data


class Evaluator:
    """Evaluates models of one bundle on one data set."""

    def __init__(self, bundle: Bundle, wanted: settings.EvaluationSettings, *, threads: int = 1) -> None:
        self._data = check_data(bundle, wanted)
        self._batch = wanted.batch_size
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(bundle.files[INFER], options, providers=["CPUExecutionProvider"])
        self._names = [node.name for node in self._session.get_inputs() if node.name != "x"]
        self._lock = threading.Lock()

    def score(self, weights: Weights) -> Score:
        """Return what these weights are worth."""
        feeds: dict[str, Any] = {name: weights[name] for name in self._names}
        right, loss, count = 0, 0.0, len(self._data.test)
        with self._lock:
            for start in range(0, count, self._batch):
                features, labels = self._data.batch(np.arange(start, min(count, start + self._batch)), "test")
                logits = self._session.run(None, feeds | {"x": features})[0].astype(np.float64)
                right += int(np.count_nonzero(logits.argmax(axis=1) == labels))
                logits -= logits.max(axis=1, keepdims=True)
                loss += float(np.sum(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]))
        return Score(right / count, loss / count, count)

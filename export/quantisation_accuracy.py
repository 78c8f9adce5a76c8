"""The accuracy of inference models on labelled samples, and how often two of them agree.

`edgefl export --int8` reports it: the cost of 8-bit integers has to be measured on data.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from edgefl.artifacts.onnx_session import open_onnx_session
from edgefl.masks import Array
from export.executorch import Runner

__all__ = ["Accuracy", "answers", "compare"]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Two models on the same samples."""

    before: float
    """Share of correct answers in float32."""
    after: float
    """Share of correct answers in 8-bit integers."""
    same: float
    """Share of samples with the same answer from both."""
    samples: int


def compare(files: Mapping[str, bytes], ending: str, x: Array, y: Array) -> Accuracy:
    """Compare infer.int8 with infer, in the format of this ending ("onnx" or "pte")."""
    before, after = (answers(files[f"{name}.{ending}"], ending, x) for name in ("infer", "infer.int8"))
    right, still_right, same = (float(np.mean(flags)) for flags in (before == y, after == y, before == after))
    return Accuracy(right, still_right, same, len(y))


def answers(model: bytes, ending: str, x: Array) -> Array:
    """Return the class that a model predicts for every sample."""
    predict = _onnx(model) if ending == "onnx" else _executorch(model)
    found: Array = predict(x).argmax(axis=1)
    return found


def _onnx(model: bytes) -> Callable[[Array], Array]:
    session = open_onnx_session(model)

    def predict(x: Array) -> Array:
        logits: Array = session.run(None, {"x": x})[0]
        return logits

    return predict


def _executorch(model: bytes) -> Callable[[Array], Array]:
    runner = Runner(model)
    return lambda x: np.concatenate([runner(x[at : at + 1])[0] for at in range(len(x))])

"""Evaluates the global model on the coordinator's own test data: onnxruntime and the inference graph, no torch.

The graph takes weights of any width as inputs, so one session serves every round and every part of the model.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgefl.artifacts.bundle import INFER, Bundle
from edgefl.artifacts.onnx_session import first_line, open_onnx_session
from edgefl.data import Dataset, load
from edgefl.errors import DataError
from edgefl.federation.evaluation import Score, networks_in, score_of, sum_of, tally_of
from edgefl.federation.settings import EvaluationSettings
from edgefl.local_rules import mean_logits
from edgefl.masks import Array, Weights
from edgefl.model_graph import Dtype
from edgefl.strategies import Model, Strategy
from edgefl.strategies.held_part import judged_part

__all__ = ["Evaluator", "Scorer", "check_data", "evaluated"]

Scorer = Callable[[Sequence[Weights]], Score]
"""Evaluates a model by the networks that it predicts with."""

_LOG = logging.getLogger(__name__)


def evaluated(score: Scorer, strategy: Strategy, model: Model) -> tuple[Score | None, str | None]:
    """Return what the part of a model that devices hold achieves.

    If it could not be evaluated, return why: a federation does not stop because of that.
    """
    try:
        part = judged_part(strategy, model)
        found = score(networks_in(strategy, model, part))
        return replace(found, judged_fraction=part.cost.parameters / max(model.graph.parameters, 1)), None
    except Exception as error:
        _LOG.warning("the model could not be evaluated", exc_info=error)
        return None, str(error)


def check_data(bundle: Bundle, settings: EvaluationSettings) -> Dataset:
    """Return the data to evaluate on. Raise a `DataError` unless it fits the model."""
    data = load(settings.data, settings.folder)
    manifest = bundle.manifest
    if len(data.test) == 0:
        raise DataError(f"the data set {data.name!r} has no test samples", fix="Give one that has, or no evaluation.")
    features, _ = data.batch([0], "test")
    shape, dtype = tuple(features.shape[1:]), Dtype(str(features.dtype))
    if shape != tuple(manifest.input_shape) or dtype is not manifest.input_dtype:
        raise DataError(
            f"samples of {data.name!r} have shape {shape} and type {dtype}, but the model "
            f"{manifest.model!r} takes {tuple(manifest.input_shape)} and {manifest.input_dtype}",
            fix="Evaluate on the data that the model was made for.",
        )
    if data.classes > manifest.outputs:
        raise DataError(
            f"{data.name!r} has {data.classes} classes, but the model has {manifest.outputs} outputs",
            fix="Evaluate on the data that the model was made for.",
        )
    return data


class Evaluator:
    """Evaluates models of one bundle on one data set."""

    def __init__(self, bundle: Bundle, settings: EvaluationSettings, *, threads: int = 1) -> None:
        self._data = check_data(bundle, settings)
        self._batch = settings.batch_size
        self._session = open_onnx_session(
            bundle.files[INFER], threads=threads, settings={"session.intra_op.allow_spinning": "0"}
        )
        self._names = [node.name for node in self._session.get_inputs() if node.name != "x"]
        self._lock = threading.Lock()

    def score(self, networks: Sequence[Weights]) -> Score:
        """Return the accuracy and loss of a network, or of the mean of several networks' logits."""
        feeds: list[dict[str, Any]] = [{name: weights[name] for name in self._names} for weights in networks]
        count, tallies = len(self._data.test), []
        with self._lock:
            for start in range(0, count, self._batch):
                features, labels = self._data.batch(np.arange(start, min(count, start + self._batch)), "test")
                logits = mean_logits(self._predict, feeds, features)
                tallies.append(tally_of(logits, labels))
        return score_of(sum_of(tallies))

    def _predict(self, weights: Weights, features: Array) -> Array:
        try:
            found: Array = self._session.run(None, {**weights, "x": features})[0]
        except Exception as error:  # onnxruntime raises a dozen kinds, of its own and RuntimeError
            raise DataError(
                f"onnxruntime cannot evaluate the model: {first_line(error)}",
                fix="Evaluate on data of the model's shape, or export the model again.",
            ) from None
        return found

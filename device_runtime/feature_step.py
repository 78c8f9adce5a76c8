"""A forward pass in the place of a training step, for rules that only run the model forward.

The graph of such a plan returns what the model's last layer reads (`features`); weights are its inputs.
"""

import numpy as np

from device_runtime.engines import Predictor
from edgefl.local_rules import Batch, StepResult
from edgefl.masks import Weights

__all__ = ["FeatureStep"]


class FeatureStep:
    """Runs a graph that returns features. The loss is the rule's business: it knows the head."""

    batch_size: int | None = None

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        """Return the features of a batch."""
        return StepResult(0.0, np.zeros(0, np.bool_), {}, features=self._predictor(weights, batch.x))

    def cancel(self) -> None:
        """End a running pass, and every later one."""
        self._predictor.cancel()

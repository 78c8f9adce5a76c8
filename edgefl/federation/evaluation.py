"""Evaluation: accuracy and cross-entropy from a model's logits, in pieces that can be added up.

The coordinator and the simulator's workers run the model; both measure it here. numpy only.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from edgefl.masks import Array, Mask, Weights, full_mask, gather
from edgefl.strategies import Model, Strategy

__all__ = ["Score", "Tally", "networks_in", "predicting_weights", "score_of", "sum_of", "tally_of"]


@dataclass(frozen=True, slots=True)
class Tally:
    """Correct predictions and the sum of the losses over some samples."""

    correct: int
    loss: float
    """Sum of the cross-entropies."""
    samples: int

    @property
    def accuracy(self) -> float:
        """Share of correct predictions."""
        return self.correct / self.samples


@dataclass(frozen=True, slots=True)
class Score:
    """What a model achieves on some samples."""

    accuracy: float
    loss: float
    """Mean cross-entropy."""
    samples: int
    judged_fraction: float = 1.0
    """Share of the model's parameters in the part that was judged."""


def networks_in(strategy: Strategy, model: Model, mask: Mask | None = None) -> list[Weights]:
    """Return the networks that a model, or a submodel of it, predicts with: one, unless the strategy mixes several."""
    networks, weights = getattr(strategy, "networks", None), predicting_weights(strategy, model, mask)
    if networks is None:
        return [weights if mask is None else gather(mask, weights)]
    return [gather(network, weights) for network in networks(full_mask(model.graph) if mask is None else mask)]


def predicting_weights(strategy: Strategy, model: Model, mask: Mask | None) -> Weights:
    """Return the whole model's weights as a submodel predicts with them: it may have a head of its own."""
    weights_of = getattr(strategy, "weights_of", None)
    if mask is None or weights_of is None:
        return model.weights
    found: Weights = weights_of(model, mask)
    return found


def tally_of(logits: Array, labels: Array) -> Tally:
    """Return the tally of one batch: softmax cross-entropy in double precision."""
    logits = logits.astype(np.float64)
    correct = int(np.count_nonzero(logits.argmax(axis=1) == labels))
    logits -= logits.max(axis=1, keepdims=True)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
    return Tally(correct, float(losses.sum()), len(labels))


def sum_of(tallies: Iterable[Tally]) -> Tally:
    """Add up the tallies of several batches, in their order."""
    correct, loss, samples = 0, 0.0, 0
    for tally in tallies:
        correct, loss, samples = correct + tally.correct, loss + tally.loss, samples + tally.samples
    return Tally(correct, loss, samples)


def score_of(tally: Tally) -> Score:
    """Return the means of a tally."""
    return Score(tally.accuracy, tally.loss / tally.samples, tally.samples)

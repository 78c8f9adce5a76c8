"""Rule `prune_regrow`: FedSpa on the device.

"Achieving Personalized Federated Learning with Sparse Local Models", Algorithms 1 to 3. A device holds some weights of
each tensor and trains those alone (Eq. 3). After training it gives up the held weights of the smallest magnitude and
takes up as many others, those with the largest dense gradient of one more batch (Algorithm 2): the number of held
weights never changes. With `method` "static" the mask stays as it is (RSM, Algorithm 3). `erk.py` makes the first mask.

What is sent is U = w_start - w_end at the weights of the old mask (Algorithm 1, line 17), which the coordinator
subtracts after averaging over all participants (Eq. 4): a device that does not hold a weight counts as one that did
not move it. The new mask goes with it and is applied to the dense global weights for the next round, so that what was
taken up starts from the coordinator's value (section 4.2, remark). On the device itself it is zero until then.

Tensors that the mask holds whole (norms, biases, what ERK left dense) are trained and sent whole. Masks of frozen
tensors stay as they are: they have no gradient to grow by.
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.local_rules.descent import Descent, start, train
from edgefl.local_rules.ranking import highest, lowest
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.masks import BoolArray, Mask
from edgefl.values import Fraction, check_fields
from edgefl.wire import Dense, Payload, Sparse

__all__ = ["RegrowMethod", "PruneRegrow", "next_held", "prune_rate"]

Floats = npt.NDArray[np.floating[Any]]


class RegrowMethod(StrEnum):
    """How the mask of the next round is found."""

    DYNAMIC = "dynamic"
    """DST: prune by magnitude, regrow by gradient."""
    STATIC = "static"
    """RSM: never changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRegrow:
    """The settings of FedSpa on a device; the defaults are the paper's."""

    name: ClassVar[str] = "prune_regrow"
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.1, weight_decay=5e-4))
    """Section 5.1. Its decay of the rate, 0.998 a round, is for the strategy to send."""
    method: RegrowMethod = RegrowMethod.DYNAMIC
    initial_rate: Fraction = 0.5
    """alpha_0: the share of the held weights that is exchanged in the first round."""

    def __post_init__(self) -> None:
        check_fields(self)

    def begin(self, part: TrainingInput) -> State:
        """Start from the held weights as they were sent."""
        return start(part)

    def step(self, part: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Move the held weights down their gradients (Eq. 3)."""
        return train(self.descent, part, state, batch, run)

    def finish(self, part: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Find the next mask, and return what the weights of the old one lost."""
        rate = prune_rate(self.initial_rate, part.round, part.rounds) if self.method is RegrowMethod.DYNAMIC else 0.0
        mask = self._next_mask(state, rate, batch, run) if rate else state.mask
        tensors = {name: _difference(part, state, name) for name in part.mask.trained_tensors}
        weights = dict(state.weights)
        exchanged = 0
        for name in mask.held:
            exchanged += int(np.count_nonzero(mask.held[name] & ~state.mask.held[name]))
            weights[name] = np.where(mask.held[name], weights[name], np.float32(0))
        metrics = {
            "learning_rate": self.descent.rate(part, max(state.steps - 1, 0)),
            "density": mask.cost.parameters / mask.graph.parameters,
            "prune_rate": rate,
            "exchanged_weights": float(exchanged),
        }
        return Update(tensors, weights, mask, metrics)

    def extra_bytes(self, mask: Mask) -> int:
        """Return what a round needs beyond the part's weights and the engine's own memory.

        The weights are sparse in value only, and the engine works on whole arrays. So there is a copy of the trained
        tensors, momenta, and the most of: dense gradients while training; these and 16 bytes an entry of the largest
        sparse tensor while exchanging weights; what is sent and 48 bytes an entry of that tensor while sending.
        """
        sizes = {name: math.prod(mask.shapes[name]) for name in trained_parameters(mask)}
        counts = {name: int(np.count_nonzero(mask.held[name])) for name in sizes if name in mask.held}
        own, largest = 4 * sum(sizes.values()), max((sizes[name] for name in counts), default=0)
        exchanging = own + 16 * largest if self.method is RegrowMethod.DYNAMIC else own
        sending = 4 * sum((sizes | counts).values()) + 4 * largest + 48 * max(counts.values(), default=0)
        return own * (2 if self.descent.momentum else 1) + max(exchanging, sending)

    def _next_mask(self, state: State, rate: float, batch: Batch, run: TrainStep) -> Mask:
        held = dict(state.mask.held)
        sparse = [name for name in trained_parameters(state.mask) if name in held]
        gradients = run(state.weights, batch).gradients if sparse else {}
        for name in sparse:
            if name in gradients:  # a weight that the forward pass does not use has none
                held[name] = next_held(state.weights[name], gradients[name], held[name], rate)
        return Mask(state.mask.graph, state.mask.trained, state.mask.kept, held)


def prune_rate(initial_rate: float, number: int, rounds: int) -> float:
    """Return alpha_t = 0.5 alpha_0 (1 + cos(pi t / (T - 1))), appendix A.

    It is zero in the last round, so that the model that is kept was trained as it is; that goes for a single round too.
    """
    if number >= rounds - 1:
        return 0.0
    return 0.5 * initial_rate * (1 + math.cos(math.pi * number / (rounds - 1)))


def next_held(weights: Floats, gradient: Floats, held: BoolArray, rate: float) -> BoolArray:
    """Return where a tensor is held next (Algorithm 2, lines 7 and 8).

    ceil(rate * held weights) of the smallest magnitude go, and as many come by the magnitude of their gradient, from
    all that are not held then: what just went may come back at once, as in RigL (Evci et al. 2020).
    """
    count = math.ceil(rate * np.count_nonzero(held))
    remaining = held & ~lowest(np.where(held, np.abs(weights), np.inf), count)
    return remaining | highest(np.where(remaining, -1, np.abs(gradient)), count)


def _difference(part: TrainingInput, state: State, name: str) -> Payload:
    difference = part.weights[name] - state.weights[name]
    held = part.mask.held.get(name)
    return Dense(difference) if held is None else Sparse.where(difference, held)

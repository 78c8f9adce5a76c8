"""A step of gradient descent, which rules share: learning rate, clipping, decay, momentum, the proximal term.

A rule holds a `Descent` (its settings), and calls `descend` with the arrays to move and their gradients. The order is
that of PyTorch's SGD, so that a plain rule trains as PyTorch does:

    d = clipped gradient + weight_decay * w + proximal * (w - w_global)         FedProx, Li et al. 2020, Eq. 2
    v = momentum * v + d                                                        (v starts at zero)
    w = w - rate * (d + momentum * v with Nesterov, else v)

The factor of clipping, the rate and all settings are rounded to float32 once, and every operation is one of float32, in
this order, so that other clients get the same bits (docs/rules.md).

What a mask does not hold never moves: `d` is zero there. Gradients are read, never changed. Everything happens block by
block in place, so a step needs scratch space of one block whatever the size of the model.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import numpy as np

from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, trained_parameters
from edgefl.local_rules.sent_tensors import new_values
from edgefl.local_rules.summation import sum_of_squares
from edgefl.masks import Array, Mask, Weights
from edgefl.model_graph import TensorRole
from edgefl.values import Dimension, FieldError, Fraction, Quantity, check_fields
from edgefl.wire import Expected

__all__ = [
    "SMALLEST_RATE",
    "Descent",
    "DescentRule",
    "ScheduleUnit",
    "Positive",
    "Schedule",
    "adopt_statistics",
    "descend",
    "start",
    "train",
    "weight_tensors",
]

BLOCK = 1 << 14
"""The number of entries per block: they and their scratch space fit a small processor's cache."""
SMALLEST_RATE = 1e-12

Positive = Annotated[float, Quantity(Dimension.NUMBER, "a number above 0", "0.1", low=SMALLEST_RATE)]
NotNegative = Annotated[float, Quantity(Dimension.NUMBER, "a number of 0 or more", "0.0005")]


class Schedule(StrEnum):
    """How the learning rate changes."""

    CONSTANT = "constant"
    STEP_DECAY = "step_decay"
    """Times `decay_factor` at every fraction of `decay_at`."""
    EXPONENTIAL = "exponential"
    """Times `decay_factor` every round."""
    COSINE = "cosine"
    """Along half a cosine to `final_rate`."""


class ScheduleUnit(StrEnum):
    """What the schedule counts: rounds of the federation, or also the steps within them."""

    ROUND = "round"
    STEP = "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """The settings of gradient descent."""

    learning_rate: Positive = 0.1
    momentum: Fraction = 0.0
    nesterov: bool = False
    weight_decay: NotNegative = 0.0
    proximal: NotNegative = 0.0
    """FedProx's mu."""
    clip_norm: Positive | None = None
    """The largest norm of all gradients together; None does not clip."""
    schedule: Schedule = Schedule.CONSTANT
    schedule_by: ScheduleUnit = ScheduleUnit.ROUND
    decay_at: str = "0.5, 0.75"
    """Where the rate drops in a step decay, as fractions of the whole training."""
    decay_factor: Fraction = 0.1
    """The factor on the rate at each drop, or every round."""
    final_rate: NotNegative = 0.0
    """The rate at the end of a cosine."""

    def __post_init__(self) -> None:
        check_fields(self)
        self.drops()

    def drops(self) -> tuple[float, ...]:
        """Return where the rate drops, as fractions of the whole training."""
        try:
            drops = tuple(float(text) for text in self.decay_at.split(","))
        except ValueError:
            drops = (-1.0,)
        if not all(0 <= drop <= 1 for drop in drops):
            raise FieldError(
                f"must be a list of fractions from 0 to 1, got {self.decay_at[:60]!r}",
                fix="Write for example '0.5, 0.75'",
                path=("decay_at",),
            )
        return drops

    def rate(self, inputs: TrainingInput, step: int) -> float:
        """Return the learning rate of a step, counted from 0 within the round."""
        steps = inputs.steps if self.schedule_by is ScheduleUnit.STEP else 1
        done = inputs.round * steps + (step if self.schedule_by is ScheduleUnit.STEP else 0)
        return self._scheduled(done, inputs.rounds, steps)

    def round_rate(self, number: int, rounds: int) -> float:
        """Return the learning rate with which a round starts."""
        return self._scheduled(number, rounds, 1)

    def _scheduled(self, done: int, rounds: int, steps: int) -> float:
        """Return the learning rate after `done` of the steps of all rounds, of which each has `steps`."""
        progress = min(done / max(rounds * steps, 1), 1.0)
        match self.schedule:
            case Schedule.CONSTANT:
                return self.learning_rate
            case Schedule.STEP_DECAY:  # PerFedMask's code: times 0.1 at T/2 and at 3T/4
                return self.learning_rate * self._dropped(progress)
            case Schedule.EXPONENTIAL:  # FedSpa, section 5: times 0.998 after each round
                return self.learning_rate * float(self.decay_factor ** (done / steps))
            case Schedule.COSINE:  # Loshchilov and Hutter, SGDR, 2017, Eq. 5, one period
                swing = 0.5 * (1 + math.cos(math.pi * progress))
                return self.final_rate + (self.learning_rate - self.final_rate) * swing

    def _dropped(self, progress: float) -> float:
        """Return the factor after the drops so far, product by product: powers differ between platforms."""
        factor = 1.0
        for drop in self.drops():
            factor *= self.decay_factor if progress >= drop else 1.0
        return factor

    def last_rate(self, inputs: TrainingInput, state: State) -> float:
        """Return the learning rate of the last step so far."""
        return self.rate(inputs, max(state.steps - 1, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class DescentRule:
    """Base class of local rules: gradient descent from the weights as they were sent. A rule adds a name and `finish`.

    Call an inherited method by its class, `DescentRule.begin(self, ...)`: `slots=True` creates the class a second time,
    and `super()` without arguments would still refer to the first.
    """

    descent: Descent = field(default_factory=Descent)

    def __post_init__(self) -> None:
        check_fields(self)

    def trains(self, mask: Mask) -> Mask:
        """Train what the mask trains."""
        return mask

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the new values of everything that is trained."""
        return new_values(mask)

    def begin(self, inputs: TrainingInput) -> State:
        """Start from the weights as they were sent."""
        return start(inputs)

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Move every trained tensor down its gradient."""
        return train(self.descent, inputs, state, batch, run)


def start(inputs: TrainingInput, mask: Mask | None = None) -> State:
    """Return the state before the first step, with copies of what `mask` (by default that of the inputs) trains."""
    chosen = inputs.mask if mask is None else mask
    weights = dict(inputs.weights)
    for name in chosen.trained_tensors:
        weights[name] = np.array(inputs.weights[name], order="C")
    return State(chosen, weights)


def train(descent: Descent, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
    """Take one plain step of gradient descent on every trained tensor."""
    result = run(state.weights, batch)
    moved = {name: state.weights[name] for name in trained_parameters(state.mask)}
    descend(descent, descent.rate(inputs, state.steps), moved, result.gradients, state, anchors=inputs.weights)
    adopt_statistics(state, result)
    state.steps += 1
    return result


def adopt_statistics(state: State, result: StepResult) -> None:
    """Copy the new running statistics of trained layers; those of frozen layers do not change."""
    for name in state.mask.trained_tensors:
        if name in result.statistics and state.mask.graph.tensor[name].role is TensorRole.STATISTIC:
            np.copyto(state.weights[name], result.statistics[name], where=state.mask.held.get(name, True))


def weight_tensors(mask: Mask) -> tuple[str, ...]:
    """Return the trained matrices and kernels, including the head's: what FedMRN masks and others compress."""
    roles = (TensorRole.WEIGHT, TensorRole.HEAD)
    return tuple(
        name
        for name in trained_parameters(mask)
        if mask.graph.tensor[name].role in roles and len(mask.graph.tensor[name].shape) > 1
    )


def descend(
    descent: Descent,
    rate: float,
    moved: Mapping[str, Array],
    gradients: Weights,
    state: State,
    *,
    anchors: Weights,
) -> None:
    """Move arrays one step down their gradients, in place. An array without a gradient (an unused one) does not move.

    `anchors` are what the proximal term pulls to; an array without an anchor is pulled to zero.
    """
    known = [name for name in moved if name in gradients]
    scale = _clipping(descent, state.mask, {name: gradients[name] for name in known})
    momenta = {name: _momentum(descent, state, name, moved[name]) for name in known}
    for name in known:
        _move(
            descent,
            (rate, scale),
            _in_place(moved[name]),
            gradients[name].reshape(-1),
            anchor=_flat(anchors.get(name)) if descent.proximal else None,
            momentum=_flat(momenta[name]),
            held=_flat(state.mask.held.get(name)),
        )


def _move(
    descent: Descent,
    factors: tuple[float, float],
    array: Array,
    gradient: Array,
    *,
    anchor: Array | None,
    momentum: Array | None,
    held: Array | None,
) -> None:
    rate, scale = factors
    if scale == 1.0 and momentum is None and held is None and not (descent.weight_decay or descent.proximal):
        for begin in range(0, array.size, BLOCK):  # plain descent: the same numbers in fewer passes
            array[begin : begin + BLOCK] -= gradient[begin : begin + BLOCK] * array.dtype.type(rate)
        return
    scratch = np.empty((2, min(array.size, BLOCK)), array.dtype)
    for begin in range(0, array.size, BLOCK):
        here = slice(begin, begin + BLOCK)
        w = array[here]
        d, term = scratch[0, : w.size], scratch[1, : w.size]
        np.multiply(gradient[here], scale, out=d)
        if descent.weight_decay:
            d += np.multiply(w, descent.weight_decay, out=term)
        if descent.proximal:
            np.copyto(term, w) if anchor is None else np.subtract(w, anchor[here], out=term)
            term *= descent.proximal
            d += term
        if held is not None:
            d *= held[here]
        if momentum is not None:
            v = momentum[here]
            v *= descent.momentum
            v += d
            d = np.add(d, np.multiply(v, descent.momentum, out=term), out=d) if descent.nesterov else v
        w -= np.multiply(d, rate, out=term)


def _clipping(descent: Descent, mask: Mask, gradients: Weights) -> float:
    """Return the factor on gradients that makes their norm, over all that the mask holds, at most `clip_norm`."""
    if descent.clip_norm is None:
        return 1.0
    total = 0.0
    for name, gradient in gradients.items():
        total += sum_of_squares(gradient, mask.held.get(name))
    return min(1.0, descent.clip_norm / (math.sqrt(total) + 1e-6))  # as torch.nn.utils.clip_grad_norm_


def _momentum(descent: Descent, state: State, name: str, array: Array) -> Array | None:
    if not descent.momentum:
        return None
    key = f"momentum:{name}"
    if key not in state.memory:
        state.memory[key] = np.zeros(array.shape, array.dtype)
    return state.memory[key]


def _in_place(array: Array) -> Array:
    """Return a flat view of an array: a copy would be moved in its place, and nobody would notice."""
    if not array.flags.c_contiguous:
        raise ValueError("an array that is moved in place must be in row-major order")
    return array.reshape(-1)


def _flat(array: Array | None) -> Array | None:
    return None if array is None else array.reshape(-1)

"""Rule `maml`: the device moves the model to where a step of gradient descent makes it good. Per-FedAvg.

Fallah, Mokhtari and Ozdaglar, "Personalized Federated Learning with Theoretical Guarantees: A Model-Agnostic
Meta-Learning Approach", NeurIPS 2020, Algorithm 1: each local update has batches D, D' and D'' of its own.

    w' = w - alpha * gradient(w; D)
    w  = w - beta * (I - alpha * H(w; D'')) g,   g = gradient(w'; D')             H: the Hessian of the loss

Two variants need no Hessian. FO leaves H out. HF takes, for some small delta,

    H(w; D'') g = (gradient(w + delta * g; D'') - gradient(w - delta * g; D'')) / (2 * delta)

A batch of the paper is a step here: an update takes 2 steps with FO, and 3 with HF, whose third runs the engine
twice. So a round reads each sample as often as by other rules, and takes as long (HF a third longer), with half or a
third of the updates. Between steps, w' or g are in `State.memory`. A round that ends within an update completes it
with the extra batch, which then is D' or D'' or both.

What the paper leaves open, and what is done here:
- beta is the learning rate, and its schedule, momentum, clipping and decay act on the direction of the update. The
  step to w' is plain. delta is not given: 0.001, as in implementations by others.
- Running statistics of norms are those of D, at w.
- The loss of a step is that of its batch where the gradient was taken: at w, at w', or the mean of the two beside w.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np

from edgefl.local_rules.descent import DescentRule, Positive, adopt_statistics, descend
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.masks import Array, Weights
from edgefl.wire import Dense

__all__ = ["Maml", "MetaGradient"]

_ADAPTED, _OUTER = "adapted:", "outer:"


class MetaGradient(StrEnum):
    """How the gradient of the adapted model's loss is taken."""

    FIRST_ORDER = "first_order"
    """FO: without the Hessian."""
    HESSIAN_FREE = "hessian_free"
    """HF: with the Hessian's product as a difference of gradients."""

    @property
    def batches(self) -> int:
        """The number of batches, and so of steps, of an update."""
        return 2 if self is MetaGradient.FIRST_ORDER else 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Maml(DescentRule):
    """Model-agnostic meta-learning."""

    name: ClassVar[str] = "maml"
    variant: MetaGradient = MetaGradient.HESSIAN_FREE
    inner_rate: Positive = 0.01
    """alpha: the learning rate of the adaptation."""
    difference: Positive = 0.001
    """delta: how far beside w gradients are taken for the Hessian, in multiples of g."""

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Take the next gradient of an update, and after the last one move the model."""
        place = state.steps % self.variant.batches
        if place == 0:
            result = self._adapt(state, batch, run)
        elif place == 1:
            result = self._look_ahead(inputs, state, batch, run)
        else:
            result = self._curve(inputs, state, batch, run)
        state.steps += 1
        return result

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Complete the last update, and send the new values."""
        ended = state
        if state.steps % self.variant.batches:
            ended = _copied(state)  # what is interrupted here is ended again from the state as it was
            while ended.steps % self.variant.batches:
                self.step(inputs, ended, batch, run)
        tensors = {name: Dense(ended.weights[name]) for name in ended.mask.trained_tensors}
        metrics = {"learning_rate": self.descent.last_rate(inputs, state), "inner_rate": self.inner_rate}
        return Update(tensors, ended.weights, ended.mask, metrics)

    def _adapt(self, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Remember w'."""
        result = run(state.weights, batch)
        state.memory |= _named(_ADAPTED, _beside(state, _held(state, result.gradients), -self.inner_rate))
        adopt_statistics(state, result)
        return result

    def _look_ahead(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Take the gradient at w': move by it, or remember it."""
        result = run({**state.weights, **_under(_ADAPTED, state)}, batch)
        if self.variant is MetaGradient.FIRST_ORDER:
            self._move(inputs, state, result.gradients)
        else:
            state.memory |= _named(_OUTER, _held(state, result.gradients))
        _forget(_ADAPTED, state)
        return result

    def _curve(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Take the gradients on both sides of w, and move by what they make of g."""
        outer = _under(_OUTER, state)
        ahead = run({**state.weights, **_beside(state, outer, self.difference)}, batch)
        loss, meta = ahead.loss, {name: np.array(ahead.gradients[name]) for name in outer}
        del ahead  # its gradients would be in memory beside those of the next run
        behind = run({**state.weights, **_beside(state, outer, -self.difference)}, batch)
        for name, gradient in meta.items():  # g - alpha / (2 delta) * (ahead - behind)
            gradient -= behind.gradients[name]
            gradient *= np.float32(-self.inner_rate / (2 * self.difference))
            gradient += outer[name]
        self._move(inputs, state, meta)
        _forget(_OUTER, state)
        return replace(behind, loss=(loss + behind.loss) / 2)

    def _move(self, inputs: TrainingInput, state: State, gradients: Weights) -> None:
        moved = {name: state.weights[name] for name in trained_parameters(state.mask)}
        rate = self.descent.rate(inputs, state.steps)
        descend(self.descent, rate, moved, gradients, state, anchors=inputs.weights)


def _held(state: State, gradients: Weights) -> dict[str, Array]:
    """Return copies of the gradients of trained parameters, zero where the mask does not hold them."""
    held = state.mask.held
    names = [name for name in trained_parameters(state.mask) if name in gradients]
    return {name: gradients[name] * held[name] if name in held else np.array(gradients[name]) for name in names}


def _beside(state: State, direction: Weights, distance: float) -> dict[str, Array]:
    """Return the weights that lie in a direction from the state's."""
    return {name: state.weights[name] + array * np.float32(distance) for name, array in direction.items()}


def _named(prefix: str, arrays: Weights) -> dict[str, Array]:
    return {prefix + name: array for name, array in arrays.items()}


def _under(prefix: str, state: State) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in state.memory.items() if name.startswith(prefix)}


def _forget(prefix: str, state: State) -> None:
    for name in [name for name in state.memory if name.startswith(prefix)]:
        del state.memory[name]


def _copied(state: State) -> State:
    weights = {name: array.copy() for name, array in state.weights.items()}
    return State(state.mask, weights, {name: array.copy() for name, array in state.memory.items()}, state.steps)

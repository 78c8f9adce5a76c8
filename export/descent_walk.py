"""A walk of gradient descent that every engine can follow: same start, same batches, same rate.

After some steps an engine's weights must be PyTorch's. A kink that is crossed on different sides sends two walks apart
for good: fifty steps that change CNN8's weights by 1.4e-2 lead PyTorch in single precision 1.6e-3 away from PyTorch in
double precision. So before each step the same small move is added to everybody's biases (see `export.kinks`), and they
end 9e-7 apart: plain SGD with these moves as part of it, and whoever finds the same gradients comes to the same place.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from export.engines import Arrays
from export.kinks import CalmBatch, calm_batch, nudge
from export.ops.dropout import SEED
from export.parity import random_batch, state_of
from export.shared_dropout_noise import SameNoise

__all__ = ["FIRST_STEP", "Walk", "distance", "follow", "plan_walk"]

FIRST_STEP = 0.002
"""By which share of its norm the first step changes the weight that it changes most; the rate follows from it. With
0.01, rounding grows by a third a step in MobileNet, for PyTorch as for everybody."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The steps, and where PyTorch comes to."""

    rate: float
    start: Arrays
    steps: tuple[tuple[CalmBatch, Tensor], ...]
    """For every step the batch with the moves of the biases, and the labels."""
    end: Arrays
    """Parameters and running statistics that PyTorch reaches in double precision."""
    own_end: Arrays
    """What PyTorch reaches in single precision."""
    moved: float
    """How far PyTorch's weights are from where they began, without biases and norms, which were moved on purpose."""


def plan_walk(
    model: nn.Module,
    example: Tensor,
    *,
    steps: int,
    batch: int = 4,
    first_step: float = FIRST_STEP,
    settled: bool = True,
) -> Walk:
    """Let PyTorch walk, in double and in single precision. Without `settled`, kinks are left to chance."""
    generator = torch.Generator().manual_seed(0)
    exact, single = copy.deepcopy(model).double().train(), copy.deepcopy(model).train()
    start, rate = state_of(single), 0.0
    taken = []

    def draw() -> Tensor:
        return random_batch(example, batch, generator)

    for number in range(steps):
        calm = calm_batch(exact, draw, seed=number) if settled else CalmBatch(draw(), {}, 0.0)
        nudge(single, calm.nudges)
        labels = torch.randint(0, 2**31, (batch,), generator=generator)
        labels = _backward(exact, calm.x.double() if calm.x.is_floating_point() else calm.x, labels, number)
        _backward(single, calm.x, labels, number)
        rate = rate or first_step / _largest_share(exact)
        for walker in (exact, single):
            _descend(walker, rate)
        taken.append((calm, labels))
    end = state_of(exact)
    moved = distance(start, {name: end[name] for name, parameter in model.named_parameters() if parameter.ndim > 1})
    return Walk(rate, start, tuple(taken), end, state_of(single), moved)


def follow(walk: Walk, step: Callable[[Arrays], Arrays]) -> Arrays:
    """Walk with an engine: `step` takes x, y, seed and weights, and returns gradients and new running statistics."""
    weights = dict(walk.start)
    rate = np.float32(walk.rate)
    for number, (calm, labels) in enumerate(walk.steps):
        for name, move in calm.nudges.items():
            weights[name] = weights[name] + move.numpy().astype(np.float32)
        given = {"x": calm.x.numpy(), "y": labels.numpy(), SEED: np.array(number, np.uint64)}
        for name, value in step({**given, **weights}).items():
            if name.startswith(GRADIENT):
                tensor = name.removeprefix(GRADIENT)
                weights[tensor] = np.asarray(weights[tensor] - rate * value)
            elif name.startswith(NEW_STATISTIC):
                weights[name.removeprefix(NEW_STATISTIC)] = value
    return weights


def distance(reached: Arrays, end: Arrays) -> float:
    """Return the norm of the difference relative to the norm of the tensor, of the tensor where that is largest."""
    parts = {name: array for name, array in end.items() if np.issubdtype(array.dtype, np.floating)}
    return max(
        float(np.linalg.norm(reached[name].astype(np.float64) - array) / max(float(np.linalg.norm(array)), 1e-30))
        for name, array in parts.items()
    )


def _backward(model: nn.Module, x: Tensor, labels: Tensor, seed: int) -> Tensor:
    """Leave the gradients of a batch in a model, and return its labels brought down to the number of classes."""
    model.zero_grad()
    with SameNoise(seed):
        logits = model(x)
    y: Tensor = labels % logits.shape[1]
    nn.functional.cross_entropy(logits, y).backward()  # type: ignore[no-untyped-call]
    return y


def _largest_share(model: nn.Module) -> float:
    """Return the largest norm of a weight's gradient, relative to the norm of the weight; biases and norms left out."""
    weights = [parameter for parameter in model.parameters() if parameter.ndim > 1 and parameter.grad is not None]
    return max(float(weight.grad.norm() / weight.detach().norm()) for weight in weights if weight.grad is not None)


def _descend(model: nn.Module, rate: float) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(parameter.grad, alpha=rate)

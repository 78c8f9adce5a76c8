"""A trajectory of gradient descent that every engine can follow: same start, same batches, same learning rate.

After some steps an engine's weights must equal PyTorch's. Two runs that cross a kink on different sides diverge for
good: after fifty steps that change CNN8's weights by 1.4e-2, PyTorch in single precision is 1.6e-3 away from PyTorch in
double precision. So before each step the same small shift is added to the biases of every run (see
`export.kink_avoidance`), and they end 9e-7 apart. This is plain SGD with these shifts as part of it: any engine that
computes the same gradients reaches the same weights.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from export.engines import Arrays
from export.kink_avoidance import SmoothBatch, shift_biases, smooth_batch
from export.ops.dropout import SEED, seed_input
from export.parity import random_batch, state_of
from export.shared_dropout_noise import SharedDropoutNoise

__all__ = ["FIRST_STEP", "Trajectory", "distance", "follow_trajectory", "plan_trajectory"]

FIRST_STEP = 0.002
"""The share of its norm by which the first step changes the weight that it changes most; it determines the learning
rate. With 0.01, rounding errors grow by a third per step in MobileNet, in PyTorch as in any engine."""


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """The steps, and the weights that PyTorch reaches."""

    rate: float
    start: Arrays
    steps: tuple[tuple[SmoothBatch, Tensor], ...]
    """The batch with the bias shifts, and the labels, of every step."""
    end: Arrays
    """Parameters and running statistics that PyTorch reaches in double precision."""
    own_end: Arrays
    """What PyTorch reaches in single precision."""
    moved: float
    """The distance of PyTorch's weights from the start, without biases and norms, which were shifted on purpose."""


def plan_trajectory(
    model: nn.Module,
    example: Tensor,
    *,
    steps: int,
    batch: int = 4,
    first_step: float = FIRST_STEP,
    avoid_kinks: bool = True,
) -> Trajectory:
    """Run PyTorch in double and in single precision. Without `avoid_kinks`, batches may lie on kinks."""
    generator = torch.Generator().manual_seed(0)
    exact, single = copy.deepcopy(model).double().train(), copy.deepcopy(model).train()
    start, rate = state_of(single), 0.0
    taken = []

    def draw() -> Tensor:
        return random_batch(example, batch, generator)

    for number in range(steps):
        smooth = smooth_batch(exact, draw, seed=number) if avoid_kinks else SmoothBatch(draw(), {}, 0.0)
        shift_biases(single, smooth.shifts)
        labels = torch.randint(0, 2**31, (batch,), generator=generator)
        labels = _backward(exact, smooth.x.double() if smooth.x.is_floating_point() else smooth.x, labels, number)
        _backward(single, smooth.x, labels, number)
        rate = rate or first_step / _largest_share(exact)
        for trained in (exact, single):
            _descend(trained, rate)
        taken.append((smooth, labels))
    end = state_of(exact)
    moved = distance(start, {name: end[name] for name, parameter in model.named_parameters() if parameter.ndim > 1})
    return Trajectory(rate, start, tuple(taken), end, state_of(single), moved)


def follow_trajectory(trajectory: Trajectory, step: Callable[[Arrays], Arrays]) -> Arrays:
    """Run an engine: `step` takes x, y, seed and weights, and returns gradients and new running statistics."""
    weights = dict(trajectory.start)
    rate = np.float32(trajectory.rate)
    for number, (smooth, labels) in enumerate(trajectory.steps):
        for name, move in smooth.shifts.items():
            weights[name] = weights[name] + move.numpy().astype(np.float32)
        given = {"x": smooth.x.numpy(), "y": labels.numpy(), SEED: seed_input(number)}
        for name, value in step({**given, **weights}).items():
            if name.startswith(GRADIENT):
                tensor = name.removeprefix(GRADIENT)
                weights[tensor] = np.asarray(weights[tensor] - rate * value)
            elif name.startswith(NEW_STATISTIC):
                weights[name.removeprefix(NEW_STATISTIC)] = value
    return weights


def distance(reached: Arrays, end: Arrays) -> float:
    """Return the largest relative difference of a tensor: the norm of the difference over the norm of the tensor."""
    parts = {name: array for name, array in end.items() if np.issubdtype(array.dtype, np.floating)}
    return max(
        float(np.linalg.norm(reached[name].astype(np.float64) - array) / max(float(np.linalg.norm(array)), 1e-30))
        for name, array in parts.items()
    )


def _backward(model: nn.Module, x: Tensor, labels: Tensor, seed: int) -> Tensor:
    """Compute the gradients of a batch in a model, and return its labels modulo the number of classes."""
    model.zero_grad()
    with SharedDropoutNoise(seed):
        logits = model(x)
    y: Tensor = labels % logits.shape[1]
    nn.functional.cross_entropy(logits, y).backward()  # type: ignore[no-untyped-call]
    return y


def _largest_share(model: nn.Module) -> float:
    """Return the largest norm of a weight's gradient, relative to the norm of the weight, without biases and norms."""
    weights = [parameter for parameter in model.parameters() if parameter.ndim > 1 and parameter.grad is not None]
    return max(float(weight.grad.norm() / weight.detach().norm()) for weight in weights if weight.grad is not None)


def _descend(model: nn.Module, rate: float) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(parameter.grad, alpha=rate)

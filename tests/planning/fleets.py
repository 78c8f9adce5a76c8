"""Small fleets and models for the tests of planning."""

import itertools
from collections.abc import Sequence

import numpy as np

from edgefl.planning import Block, FreezingDevice
from edgefl.planning.freezing.bias import bias_of
from edgefl.planning.freezing.problem import Problem
from edgefl.values import Budget

MOBILENET_WIDTHS = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)


def blocks(*sizes: int) -> tuple[Block, ...]:
    return tuple(Block(f"b{number}", (f"layer{number}",), size) for number, size in enumerate(sizes))


def fleet(budgets: Sequence[int], samples: Sequence[int] | None = None) -> list[FreezingDevice]:
    counts = samples or [1] * len(budgets)
    return [
        FreezingDevice(device_id=f"d{number:05d}", budget=Budget(trainable_parameters=int(budget)), samples=int(count))
        for number, (budget, count) in enumerate(zip(budgets, counts, strict=True))
    ]


def mobilenet_blocks() -> tuple[Block, ...]:
    """PerFedMask's MobileNet: a stem and thirteen pairs of a depthwise and a pointwise convolution with their norms."""
    sizes, channels = [27 * 32 + 2 * 32], 32
    for width in MOBILENET_WIDTHS:
        sizes.append(9 * channels + 2 * channels + channels * width + 2 * width)
        channels = width
    return blocks(*sizes)


def best_by_trying_all(problem: Problem) -> tuple[float, int]:
    """The least bias, in units of d, and the least unused budget of a plan that has it, by trying every plan."""
    choices: list[list[int]] = [[] for _ in problem.devices]
    for family in problem.families:
        for device in family.devices:
            choices[device] = family.choices.tolist()
    plans = [np.array(plan) for plan in itertools.product(*choices)]
    biases = np.array([bias_of(problem.pool[plan], problem.weights) for plan in plans])
    least = float(biases.min())
    ties = [problem.unused(plan) for plan, bias in zip(plans, biases, strict=True) if bias <= least + 1e-9]
    return least, min(ties)

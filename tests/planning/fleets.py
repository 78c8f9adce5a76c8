"""Small fleets and models for the tests of planning."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from edgefl.planning import Block, FreezingDevice
from edgefl.planning.freezing.problem import Problem, problem_of
from edgefl.values import Budget

Set = frozenset[int]
"""Numbers of blocks."""

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


@dataclass(frozen=True)
class SmallFleet:
    """A fleet whose plans can all be tried, in plain numbers: nothing here is asked of the planner."""

    sizes: Sequence[int]
    budgets: Sequence[int]
    samples: Sequence[int]
    tolerance: float

    @property
    def problem(self) -> Problem:
        """The same for the planner."""
        devices = fleet(self.budgets, self.samples)
        return problem_of(blocks(*self.sizes), None, devices, tolerance=self.tolerance, seed=0)

    def choices(self) -> list[list[Set]]:
        """For each device the sets of blocks that the rules in `problem.py` let it train; none if nothing fits."""
        numbers = range(len(self.sizes))
        every = [frozenset(chosen) for count in numbers for chosen in itertools.combinations(numbers, count + 1)]
        fitting = [[chosen for chosen in every if self._fill(chosen) <= budget] for budget in self.budgets]
        filled = [
            [
                chosen
                for chosen in fits
                if self._fill(chosen) >= min(max(map(self._fill, fits)), (1 - self.tolerance) * budget)
            ]
            for fits, budget in zip(fitting, self.budgets, strict=True)
        ]
        left = set(numbers).difference(*(chosen for sets in filled for chosen in sets))
        for fits, sets in zip(fitting, filled, strict=True):
            for block in left:
                with_it = [chosen for chosen in fits if block in chosen]
                sets += [c for c in with_it if self._fill(c) == max(map(self._fill, with_it)) and c not in sets]
        return filled

    @cached_property
    def best(self) -> tuple[float, int]:
        """The least bias, in units of d, and the least unused budget of a plan that has it, by trying every plan."""
        choices = self.choices()
        active = [number for number, sets in enumerate(choices) if sets]
        budget = sum(self.budgets[number] for number in active)
        plans = []
        for plan in itertools.product(*(choices[number] for number in active)):
            bias = _bias(plan, [self.samples[number] for number in active], len(self.sizes))
            plans.append((bias, budget - sum(map(self._fill, plan))))
        least = min((bias for bias, _ in plans), default=math.inf)
        return least, min((unused for bias, unused in plans if bias <= least + 1e-9), default=0)

    def _fill(self, chosen: Set) -> int:
        return sum(self.sizes[block] for block in chosen)


def _bias(plan: Sequence[Set], samples: Sequence[int], blocks: int) -> float:
    """Eq. 9 in units of d, device by device and block by block."""
    trainers = [
        sum(count for chosen, count in zip(plan, samples, strict=True) if block in chosen) for block in range(blocks)
    ]
    if not all(trainers):
        return math.inf
    return (
        sum(max(count / trainers[block] for block in chosen) for chosen, count in zip(plan, samples, strict=True)) - 1
    )

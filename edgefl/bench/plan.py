"""`edgefl bench plan`: run time and quality of planners for fleets of several sizes.

A plan says which blocks of a model each device trains. Its bias is in parameters, as in PerFedMask. The bound is
proven: no valid plan has less bias, so the gap is the largest possible improvement. The default model is PerFedMask's
MobileNet, which needs neither torch nor a bundle.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgefl.bench.benchmark_model import missing_dependency
from edgefl.bench.report import BenchReport, busy_note, load_now
from edgefl.errors import EdgeFLError
from edgefl.planning import Block, FreezingDevice, FreezingPlan, PlanningMethod, freezing_plan
from edgefl.values import Budget

__all__ = ["MOBILENET", "fleet_of", "mobilenet_blocks", "plan_report", "timed_plan"]

MOBILENET = "PerFedMask's MobileNet"
SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Fractions of the model's parameters that devices may train: five kinds of device."""
MOST_FOR_SCA = 200
"""The paper's own method takes minutes for more devices."""
_WIDTHS = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
METHODS = (PlanningMethod.AUTO, PlanningMethod.SCA, PlanningMethod.SEQUENTIAL, PlanningMethod.RANDOM)


def plan_report(
    model: Sequence[Block],
    name: str,
    sizes: Sequence[int],
    *,
    methods: Sequence[str] = tuple(METHODS),
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> BenchReport:
    """Plan for a fleet of each size with each method."""
    unknown = [method for method in methods if method not in tuple(PlanningMethod)]
    if unknown or not methods:
        raise EdgeFLError(f"unknown method {', '.join(unknown)!r}", fix=f"Known: {', '.join(PlanningMethod)}.")
    if not sizes or min(sizes) < 1:
        raise EdgeFLError(f"the fleet sizes are {list(sizes)}", fix="Give numbers of at least 1.")
    without = missing_dependency(("scipy",), "Planning", "coordinator")
    if without is not None:
        raise without
    import scipy.optimize  # noqa: F401  its import takes a second, which must not count as planning

    load, rows, missing = load_now(), [], {}
    for size in sizes:
        fleet = _mixed_fleet(model, size, seed)
        for method in map(PlanningMethod, methods):
            title = f"{size:,} devices, {method.value}"
            if method is PlanningMethod.SCA and size > MOST_FOR_SCA:
                missing[title] = f"the paper's method takes minutes for more than {MOST_FOR_SCA} devices."
                continue
            progress(title)
            rows.append({"name": title, "devices": size, **_figures(*timed_plan(model, fleet, method))})
    dimension = sum(block.size for block in model)
    setting = {"model": name, "blocks": len(model), "parameters": dimension, "budgets": list(SHARES), "seed": seed}
    notes = ["the first device may train the whole model; the others one of five fractions of it, drawn at random"]
    return BenchReport("plan", setting, rows, missing, [*notes, *busy_note(load)])


def _figures(plan: FreezingPlan, seconds: float) -> dict[str, Any]:
    return {
        "method": plan.method.value,
        "seconds": seconds,
        "bias": plan.bias,
        "lower_bound": plan.lower_bound,
        "gap": plan.gap,
        "unused": plan.unused,
    }


def timed_plan(
    model: Sequence[Block], devices: Sequence[FreezingDevice], method: PlanningMethod
) -> tuple[FreezingPlan, float]:
    """Return a plan and its run time, measured once, since planning takes seconds and is not noisy."""
    start = time.perf_counter()
    plan = freezing_plan(model, devices, method=method)
    return plan, time.perf_counter() - start


def fleet_of(budgets: Sequence[int], samples: Sequence[int] | None = None) -> list[FreezingDevice]:
    """Return devices with these budgets of trainable parameters."""
    counts = samples or [450] * len(budgets)
    return [
        FreezingDevice(device_id=f"{number:05d}", budget=Budget(trainable_parameters=budget), samples=count)
        for number, (budget, count) in enumerate(zip(budgets, counts, strict=True))
    ]


def _mixed_fleet(model: Sequence[Block], size: int, seed: int) -> list[FreezingDevice]:
    generator = np.random.default_rng(seed)
    dimension = sum(block.size for block in model)
    shares = [1.0, *generator.choice(SHARES, size - 1)]  # one device must be able to train every block
    samples = generator.integers(50, 1000, size).tolist()
    return fleet_of([int(share * dimension) for share in shares], samples)


def mobilenet_blocks() -> list[Block]:
    """Return PerFedMask's MobileNet: a stem and thirteen pairs of depthwise and pointwise convolutions with norms."""
    found, channels = [Block("stem", ("stem",), 27 * 32 + 2 * 32)], 32
    for number, width in enumerate(_WIDTHS, start=1):
        size = 9 * channels + 2 * channels + channels * width + 2 * width
        found.append(Block(f"block{number}", (f"block{number}",), size))
        channels = width
    return found

"""Freezing plans: their bias compared with a proven bound and other methods, and their run time.

The papers' set-ups and unusual fleets; `edgefl bench plan` has fleets of several sizes. Biases are in millions of
parameters, as in PerFedMask's table 5. `random 10` is the best of ten random plans.
"""

from collections.abc import Sequence

import numpy as np
import scipy.optimize  # noqa: F401  what takes a second to import is no planner's time

from edgefl.bench.plan import fleet_of, mobilenet_blocks, timed_plan
from edgefl.planning import Block, FreezingPlan, PlanningMethod, freezing_blocks, freezing_plan
from examples.networks import preresnet18

TABLE_6 = {(1, 1): "8/3", (1, 2): "10/3", (1, 3): "2", (2, 2): "2", (2, 3): "2", (3, 3): "2", (4, 4): "0"}


def main() -> None:
    """Print the tables."""
    _table_6()
    _authors()
    _random_fleets()
    _large_fleets()


def _table_6() -> None:
    print("Table 6 of the paper: four parameters, three devices, the third trains all; tolerance 0")
    print(f"{'budgets':<10} {'paper':>6} {'ours':>8} {'bound':>8} {'unused':>7}")
    model = [Block(f"b{number}", (f"b{number}",), 1) for number in range(4)]
    for (one, two), paper in TABLE_6.items():
        plan = freezing_plan(model, fleet_of([one, two, 4]), tolerance=0)
        print(f"{f'{one}, {two}, 4':<10} {paper:>6} {plan.bias:>8.4f} {plan.lower_bound:>8.4f} {plan.unused:>7}")


def _authors() -> None:
    print("\nThe authors' set-up: 100 devices, a share of them strong, the others d/8")
    print(
        f"{'model':<12} {'strong':>6} {'method':<12} {'bias':>8} {'bound':>8} {'gap':>7} {'unused':>8} {'seconds':>8}"
    )
    for name, model in (("MobileNet", mobilenet_blocks()), ("PreResNet18", freezing_blocks(preresnet18()))):
        dimension = sum(block.size for block in model)
        for strong in (20, 50):
            devices = fleet_of([dimension] * strong + [dimension // 8] * (100 - strong))
            for method in (PlanningMethod.AUTO, PlanningMethod.SCA, PlanningMethod.SEQUENTIAL, PlanningMethod.RANDOM):
                plan, seconds = timed_plan(model, devices, method)
                print(f"{name:<12} {strong / 100:>6.0%} {method:<12} {_line(plan, seconds)}")


def _random_fleets() -> None:
    print("\nRandom fleets: 20 models of 4 to 10 blocks, 3 to 12 devices of 4 budgets; means of bias / d")
    generator = np.random.default_rng(0)
    rows: dict[str, list[float]] = {
        name: [] for name in ("auto", "bound", "approximate", "sca", "sequential", "random 10")
    }
    for _ in range(20):
        sizes = generator.integers(1, 60, generator.integers(4, 11))
        model = [Block(f"b{number}", (f"b{number}",), int(size)) for number, size in enumerate(sizes)]
        shares = generator.choice([0.3, 0.5, 0.8, 1.0], generator.integers(3, 13))
        devices = fleet_of([int(share * sizes.sum()) for share in (1.0, *shares)])
        plan = freezing_plan(model, devices)
        rows["auto"].append(plan.bias / plan.dimension)
        rows["bound"].append(plan.lower_bound / plan.dimension)
        for method in (PlanningMethod.APPROXIMATE, PlanningMethod.SCA, PlanningMethod.SEQUENTIAL):
            rows[method].append(freezing_plan(model, devices, method=method).bias / plan.dimension)
        chance = [freezing_plan(model, devices, method="random", seed=seed).bias for seed in range(10)]
        rows["random 10"].append(min(chance) / plan.dimension)
    for name, values in rows.items():
        worse = sum(value < ours - 1e-6 for value, ours in zip(values, rows["auto"], strict=True))
        print(f"{name:<12} {np.mean(values):>8.4f}   better than auto in {worse} of {len(values)}")


def _large_fleets() -> None:
    print("\nLarge fleets, MobileNet unless said otherwise")
    print(f"{'fleet':<44} {'bias':>8} {'bound':>8} {'gap':>7} {'unused':>8} {'seconds':>8}")
    generator = np.random.default_rng(1)
    classes = [0.125, 0.25, 0.5, 0.75, 1.0]
    mobilenet = mobilenet_blocks()
    deep = [Block(f"b{n}", (f"b{n}",), int(size)) for n, size in enumerate(generator.integers(1000, 200_000, 60))]
    cases: list[tuple[str, Sequence[Block], np.ndarray[tuple[int], np.dtype[np.float64]]]] = [
        ("10,000 devices, two budgets (1, 1/8)", mobilenet, generator.choice([0.125, 1.0], 10_000)),
        ("10,000 devices, five budgets", mobilenet, generator.choice(classes, 10_000)),
        ("10,000 devices, 10,000 budgets", mobilenet, generator.uniform(0.1, 1, 10_000)),
        ("100,000 devices, 50 budgets", mobilenet, generator.choice(np.linspace(0.1, 1, 50), 100_000)),
        ("1,000 devices, five budgets, 60 blocks", deep, generator.choice(classes, 1000)),
        ("10,000 devices, 10,000 budgets, 60 blocks", deep, generator.uniform(0.1, 1, 10_000)),
    ]
    for name, model, shares in cases:
        dimension = sum(block.size for block in model)
        samples = generator.integers(50, 1000, shares.size).tolist()
        plan, seconds = timed_plan(
            model, fleet_of([int(share * dimension) for share in shares], samples), PlanningMethod.AUTO
        )
        print(f"{name:<44} {_line(plan, seconds)}")


def _line(plan: FreezingPlan, seconds: float) -> str:
    return (
        f"{plan.bias / 1e6:>7.3f}M {plan.lower_bound / 1e6:>7.3f}M {plan.gap:>7.2%} {plan.unused / 1e6:>7.3f}M "
        f"{seconds:>8.2f}"
    )


if __name__ == "__main__":
    main()

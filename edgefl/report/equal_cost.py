"""Runs at equal cost: how good each was when the cheapest one ended, and what it took to come near the best.

Accuracy is that of the global model. A round's cost is what the run had spent by its end, so a run is credited with the
last round that it had finished, and evaluated, within the cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.simulation.run_cost import COSTS, RunCost, costs_of
from edgefl.simulation.run_folder import Run

__all__ = ["TARGETS", "EqualCost", "RunAtCost", "Target", "equal_cost_of", "evaluated_costs"]

TARGETS = (0.8, 0.9, 0.95)
"""Shares of the best accuracy of all runs."""


@dataclass(frozen=True, slots=True)
class Target:
    """An accuracy to reach."""

    share: float
    """Of the best accuracy that any of the runs reached."""
    accuracy: float


@dataclass(frozen=True, slots=True)
class RunAtCost:
    """One run at the costs of a comparison."""

    accuracy: Mapping[str, float | None]
    """By the name of the cost: what it had reached when it had spent as much as the cheapest run did in all."""
    costs: tuple[Mapping[str, float | None], ...]
    """For each target, what it had spent when it was first reached; None of a target that was not reached."""


@dataclass(frozen=True, slots=True)
class EqualCost:
    """Runs at equal cost."""

    budgets: Mapping[str, float]
    """By the name of the cost: what the cheapest run spent in all. Costs that are not known of all runs are missing."""
    targets: tuple[Target, ...]
    """Empty if no run was evaluated."""
    runs: tuple[RunAtCost, ...]

    def as_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the JSON form, with the names of the runs."""
        return {
            "budgets": dict(self.budgets),
            "targets": [{"share": one.share, "accuracy": one.accuracy} for one in self.targets],
            "runs": [
                {"name": name, "accuracy": dict(run.accuracy), "costs": [dict(one) for one in run.costs]}
                for name, run in zip(names, self.runs, strict=True)
            ],
        }


def equal_cost_of(runs: Sequence[Run]) -> EqualCost:
    """Compare runs at equal cost."""
    spent = [list(costs_of(run.rounds))[-1:] or [RunCost()] for run in runs]
    totals = {name: [getattr(cost, name) for (cost,) in spent] for name in COSTS}
    budgets = {name: min(each) for name, each in totals.items() if None not in each}
    scored = [evaluated_costs(run) for run in runs]
    best = max((accuracy for points in scored for _, accuracy in points), default=None)
    targets = () if best is None else tuple(Target(share, share * best) for share in TARGETS)
    return EqualCost(
        budgets,
        targets,
        tuple(
            RunAtCost(
                {name: _within(points, name, budget) for name, budget in budgets.items()},
                tuple(_first(points, target.accuracy) for target in targets),
            )
            for points in scored
        ),
    )


def evaluated_costs(run: Run) -> list[tuple[RunCost, float]]:
    """Return what had been spent, and the accuracy, after each round that was evaluated."""
    rounds = zip(costs_of(run.rounds), run.rounds, strict=True)
    return [(cost, result.score.accuracy) for cost, result in rounds if result.score is not None]


def _within(points: Sequence[tuple[RunCost, float]], name: str, budget: float) -> float | None:
    return next((accuracy for cost, accuracy in reversed(points) if getattr(cost, name) <= budget), None)


def _first(points: Sequence[tuple[RunCost, float]], accuracy: float) -> dict[str, float | None]:
    reached = next((cost for cost, found in points if found >= accuracy), None)
    return {name: None if reached is None else getattr(reached, name) for name in COSTS}

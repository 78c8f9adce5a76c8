"""The tables of `equal_cost.py`, for pages."""

from collections.abc import Mapping, Sequence

from edgefl.report.equal_cost import EqualCost
from edgefl.report.html_elements import Markup, element
from edgefl.report.tables import number_cell, table
from edgefl.simulation.run_cost import COSTS
from edgefl.values.formatting import format_fraction, format_percent

__all__ = ["budget_table", "target_table"]

_BUDGET_NOTE = (
    "Each column is what the cheapest run spent in all; a run is credited with the last round that it had finished "
    "and evaluated within that cost. Costs that are not known of all runs are left out."
)
_TARGET_NOTE = (
    "What had been spent when the global model first had this accuracy in an evaluation; a dash if it never had. "
    "Graphs are not counted in bytes."
)


def budget_table(names: Sequence[str], found: EqualCost) -> Markup:
    """Return how good each run was when the cheapest one ended."""
    head = ("Run", *(COSTS[name].text(budget) for name, budget in found.budgets.items()))
    lines = [
        (
            element("th", name, scope="row"),
            *(number_cell(format_percent(accuracy), accuracy) for accuracy in run.accuracy.values()),
        )
        for name, run in zip(names, found.runs, strict=True)
    ]
    return table(
        "budgets-table",
        head,
        lines,
        caption="Accuracy of the global model at equal cost",
        note=_BUDGET_NOTE,
        numbers=range(1, len(head)),
        sortable=True,
    )


def target_table(names: Sequence[str], found: EqualCost) -> Markup:
    """Return what each run took to come near the best accuracy."""
    head = ("Accuracy", "Of the best", "Run", *(kind.title for kind in COSTS.values()))
    lines = [
        (
            number_cell(format_percent(target.accuracy), target.accuracy),
            number_cell(format_fraction(target.share), target.share),
            element("th", name, scope="row"),
            *_costs(run.costs[place]),
        )
        for place, target in enumerate(found.targets)
        for name, run in zip(names, found.runs, strict=True)
    ]
    return table(
        "targets-table",
        head,
        lines,
        caption="Cost of reaching an accuracy",
        note=_TARGET_NOTE,
        numbers={0, 1, *range(3, len(head))},
        sortable=True,
    )


def _costs(costs: Mapping[str, float | None]) -> Sequence[Markup]:
    return [number_cell(COSTS[name].format(amount), amount) for name, amount in costs.items()]

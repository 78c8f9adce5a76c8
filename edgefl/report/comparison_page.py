"""The HTML page that compares runs."""

from collections.abc import Sequence

from edgefl.report.comparison import FIGURES, SHARES, Comparison, RunRow
from edgefl.report.comparison_charts import comparison_charts
from edgefl.report.equal_cost_tables import budget_table, target_table
from edgefl.report.html_elements import Markup, element, joined
from edgefl.report.page import charts, page
from edgefl.report.tables import number_cell, table
from edgefl.simulation.run_folder import Run
from edgefl.values.formatting import format_change

__all__ = ["comparison_page"]

_NOTE = (
    "Personal accuracy is a mean over devices, before and after personalisation. Time is simulated, and energy is "
    "estimated, by device class. Differences from the first run are in percentage points for fractions, and in per "
    "cent for amounts."
)


def comparison_page(runs: Sequence[Run], compared: Comparison) -> str:
    """Return the page as one text."""
    names = [row.name for row in compared.rows]
    return page(
        title="Comparison of runs",
        subtitle=", ".join(names),
        notices=compared.warnings,
        sections=(
            ("figures", "Results", _figures(compared.rows)),
            ("equal", "At equal cost", _equal(names, compared)),
            ("curves", "Curves", charts(comparison_charts(runs, names), columns="three")),
            ("asked", "Settings that differ", _asked(compared.rows)),
        ),
    )


def _equal(names: Sequence[str], compared: Comparison) -> Markup:
    found = compared.equal_cost
    if not found.targets:
        return element("p", "No run was evaluated yet.", class_="empty")
    return joined(budget_table(names, found), target_table(names, found))


def _figures(rows: Sequence[RunRow]) -> Markup:
    head = ("Run", "Strategy", *(title for _, title, _ in FIGURES))
    lines = [
        (
            element("th", row.name, scope="row"),
            element("td", row.strategy),
            *(_cell(row, name, first=place == 0) for name, _, _ in FIGURES),
        )
        for place, row in enumerate(rows)
    ]
    caption = f"Figures of each run, and differences from {rows[0].name}"
    return table("runs-table", head, lines, caption=caption, note=_NOTE, numbers=range(2, len(head)), sortable=True)


def _cell(row: RunRow, name: str, *, first: bool) -> Markup:
    say = {figure: words for figure, _, words in FIGURES}[name]
    value = getattr(row.figures, name)
    told = "" if first else format_change(row.differences[name], points=name in SHARES)
    return number_cell(say(value), value, element("span", told, class_="change") if told else Markup())


def _asked(rows: Sequence[RunRow]) -> Markup:
    keys = list(rows[0].asked)
    if not keys:
        return element("p", "None: all runs have the same settings.", class_="empty")
    lines = [
        (element("th", key, scope="row"), *(element("td", _shown(row.asked[key])) for row in rows)) for key in keys
    ]
    head = ("Setting", *(row.name for row in rows))
    return table("asked-table", head, lines, caption="Settings that differ between the runs")


def _shown(value: object) -> str:
    return "none" if value is None else str(value)

"""The report of a run: a table for people, and the same as JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from edgefl.conformance.director import RowOutcome
from edgefl.conformance.situation import RowVerdict
from edgefl.values import printable

__all__ = ["HEAD", "report_json", "report_rows", "summary"]

HEAD = ("row", "", "had to", "did", "see")
_LONGEST = 72
_SHOWN = {
    RowVerdict.RIGHT: "right",
    RowVerdict.WRONG: "WRONG",
    RowVerdict.NOT_REACHED: "NOT REACHED",
    RowVerdict.NOT_ASKED: "-",
}


def report_rows(outcomes: Sequence[RowOutcome]) -> list[list[str]]:
    """Return the lines of the table. What was wrong is shown in full."""
    return [
        [one.row.name, _SHOWN[one.verdict], one.row.asks, _short(one), f"docs/{one.row.section}"] for one in outcomes
    ]


def report_json(outcomes: Sequence[RowOutcome]) -> dict[str, Any]:
    """Return the report as JSON data."""
    counted = Counter(one.verdict for one in outcomes)
    rows = [
        {
            "row": one.row.name,
            "verdict": one.verdict.value,
            "asks": one.row.asks,
            "did": one.did,
            "section": one.row.section,
            "seconds": round(one.seconds, 3),
        }
        for one in outcomes
    ]
    return {"counts": {verdict.value: counted[verdict] for verdict in RowVerdict}, "rows": rows}


def summary(outcomes: Sequence[RowOutcome]) -> str:
    """Return how many rows went how."""
    counted = Counter(one.verdict for one in outcomes)
    said = [f"{counted[verdict]} {verdict.value}" for verdict in RowVerdict if counted[verdict]]
    return f"{len(outcomes)} rows: {', '.join(said)}"


def _short(outcome: RowOutcome) -> str:
    text = printable(outcome.did)
    return text if outcome.verdict is RowVerdict.WRONG or len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."

"""Rows of texts as a table on stdout, and the few things in them that every verb of `edgefl fed` says alike.

Whatever comes from a coordinator may have come from a device: nothing in a cell can move the cursor or forge a row.
"""

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["accuracy_of", "ago", "percent", "print_json", "print_table", "table"]


def print_json(data: object) -> None:
    """Print data for programs."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows under a head, in columns; a column of numbers is aligned to the right, None is a dash."""
    from edgefl.values.words import printable

    texts = [["-" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *texts, strict=True)]
    right = [
        bool(rows) and all(cell is None or isinstance(cell, int | float) for cell in column)
        for column in ([row[index] for row in rows] for index in range(len(head)))
    ]
    lines = []
    for line in [list(head), *texts]:
        cells = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]], nothing: str) -> None:
    """Print a table, or a line that says that there is nothing to show."""
    print(table(head, rows) if rows else nothing)


def ago(moment: float | None, now: float) -> str:
    """'12 s ago', 'never'."""
    from edgefl.values.words import seconds_in_words

    if moment is None:
        return "never"
    return f"{seconds_in_words(max(0, round(now - moment)))} ago"


def percent(share: Any) -> str | None:
    """'93.5 %', or None of nothing."""
    return f"{100 * share:.1f} %" if isinstance(share, int | float) else None


def accuracy_of(report: Any) -> Any:
    """Return a report's accuracy on the coordinator's data or, where there are none, on the devices' own."""
    if not isinstance(report, dict):
        return None
    found = report.get("accuracy")
    return report.get("device_accuracy") if found is None else found

"""Tables and JSON on stdout, for every command.

Text from a coordinator may have come from a device, so no cell can move the cursor or forge a row.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["cell", "print_json", "print_table", "table"]


def print_json(data: object) -> None:
    """Print data as JSON."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def cell(value: Any, formatted: Callable[[Any], str]) -> str | None:
    """Return the formatted value, or None, which a table shows as a dash."""
    return None if value is None else formatted(value)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an aligned table; columns of numbers are right-aligned, None is shown as a dash."""
    from edgefl.values.formatting import printable

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
    """Print a table, or the line `nothing` if it has no rows."""
    print(table(head, rows) if rows else nothing)

"""Every row of the suite, in the order of the table; and the order in which a client is led through them."""

from collections.abc import Sequence

from edgefl.conformance.situation import Row
from edgefl.conformance.situations import (
    downloads,
    ending,
    enrolment,
    hostile_answers,
    pairing,
    polling,
    refusals,
    sample,
    training,
    uploads,
)
from edgefl.errors import EdgeFLError

__all__ = ["ROWS", "chosen_rows", "in_order"]

ROWS: tuple[Row, ...] = (
    *enrolment.ROWS,
    *sample.ROWS,
    *pairing.ROWS,
    *polling.ROWS,
    *training.ROWS,
    *downloads.ROWS,
    *uploads.ROWS,
    *refusals.ROWS,
    *hostile_answers.ROWS,
    *ending.ROWS,
)


def chosen_rows(words: Sequence[str] | None) -> list[Row]:
    """Return the rows of these names or themes; None for all of them."""
    if words is None:
        return list(ROWS)
    known = {row.name for row in ROWS} | {row.theme for row in ROWS}
    unknown = [word for word in words if word not in known]
    if unknown:
        raise EdgeFLError(
            f"there is no row {unknown[0]!r}",
            fix="Name rows or themes of docs/conformance.md, such as uploads/late or training, separated by commas.",
        )
    return [row for row in ROWS if row.name in words or row.theme in words]


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return rows in the order in which a client meets them: tasks to refuse are spread among the others.

    A client may slow down after several refusals in a row, as a coordinator's tasks may all be broken.
    """
    refused = [row for row in rows if row.is_refused]
    others = [row for row in rows if not row.is_refused and row.theme != ending.THEME]
    last = [row for row in rows if not row.is_refused and row.theme == ending.THEME]
    step = max(1, len(others) // (len(refused) + 1))
    mixed: list[Row] = []
    for number, row in enumerate(others, start=1):
        mixed.append(row)
        if number % step == 0 and refused:
            mixed.append(refused.pop(0))
    return [*mixed, *refused, *last]

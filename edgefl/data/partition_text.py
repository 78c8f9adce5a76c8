"""Text rendering of a partition for the terminal: clients by classes, shaded by share.

A shade shows how much of a client's data has that label, next to the client's size, so uneven labels and uneven sizes
are both visible. It fits a given width: if there are too many, neighbouring classes share a column, later clients are
left out, and a note says so.
"""

import textwrap

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError

__all__ = ["text_picture", "distance_from_whole"]

WIDTH = 100
LEAST_WIDTH = 30
MOST_ROWS = 24

SHADES = "·░▒▓█"
PLAIN_SHADES = ".-+*#"

_BAR = 12
_NARROW = 60  # narrower tables have no size bars


def distance_from_whole(counts: NDArray[np.int64]) -> float:
    """Return how much the clients differ from the whole: 0 if all have the same labels, near 1 if they share none.

    This is the total variation distance between a client's labels and all labels, averaged by the clients' sizes.
    """
    whole = counts.sum(axis=0) / counts.sum()
    sizes = counts.sum(axis=1)
    each = 0.5 * np.abs(counts / sizes[:, None] - whole).sum(axis=1)
    return float((each * sizes).sum() / sizes.sum())


def text_picture(counts: NDArray[np.int64], *, plain: bool = False, width: int = WIDTH) -> str:
    """Return a table of clients by classes as lines of text; `plain` uses ASCII only.

    No line is longer than `width`, which is at least 30.
    """
    if counts.ndim != 2 or counts.size == 0 or counts.sum(axis=1).min() < 1:
        raise DataError(
            f"A table of shape {counts.shape} has no clients, or a client without samples",
            fix="Pass Partition.label_counts(labels, classes)",
        )
    width = max(width, LEAST_WIDTH)
    bar_width = _BAR if width >= _NARROW else 0
    left = f"{'client':>6} {'samples':>9} {'':<{bar_width}} "
    together, cell = _columns(counts.shape[1], width - len(left) - 1)
    shown = counts[:MOST_ROWS]
    shares = _grouped(counts, together) / counts.sum(axis=1)[:, None]
    levels = _levels(shares)
    shades = PLAIN_SHADES if plain else SHADES
    largest = int(counts.sum(axis=1).max())
    lines = [left + _heads(counts.shape[1], together, cell)]
    for client, row in enumerate(shown):
        size = int(row.sum())
        bar = ("#" if plain else "█") * (bar_width and max(1, round(bar_width * size / largest)))
        cells = "".join((shades[level] * max(1, cell - 1)).rjust(cell) for level in levels[client])
        lines.append(f"{client:>6} {size:>9} {bar:<{bar_width}} {cells}".rstrip())
    notes = [textwrap.fill(note, width) for note in _notes(counts, together, shares, shades)]
    return "\n".join([*lines, *notes])


def _columns(classes: int, room: int) -> tuple[int, int]:
    """Return how many classes share a column, and the width of a column."""
    together = -(-classes // room)
    columns = -(-classes // together)
    return together, max(1, min(3, room // columns))


def _grouped(counts: NDArray[np.int64], together: int) -> NDArray[np.int64]:
    return np.add.reduceat(counts, np.arange(0, counts.shape[1], together), axis=1)


def _levels(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return 0 for none, and 1 to 4 by quarters of the largest share."""
    quarters = np.ceil(4 * shares / shares.max() - 1e-9).astype(np.int64)
    return np.where(shares > 0, np.clip(quarters, 1, 4), 0)


def _heads(classes: int, together: int, cell: int) -> str:
    """Return column heads: every class's number if there is room, otherwise every tenth column's."""
    if cell == 3:
        return "".join(f"{column:>3}" for column in range(classes))
    columns = -(-classes // together)
    heads = [" "] * (columns * cell)
    for column in range(0, columns, 10):
        text, end = str(column * together), column * cell + cell - 1
        if end + len(text) <= len(heads):
            heads[end : end + len(text)] = text
    return "".join(heads).rstrip()


def _notes(counts: NDArray[np.int64], together: int, shares: NDArray[np.float64], shades: str) -> list[str]:
    sizes, held = counts.sum(axis=1), (counts > 0).sum(axis=1)
    notes = []
    if len(counts) > MOST_ROWS:
        more = len(counts) - MOST_ROWS
        notes.append(f"   ... and {more} more client{'s' if more > 1 else ''}")
    notes.append("")
    steps = ", ".join(f"{shade} to {shares.max() * level / 4:.0%}" for level, shade in enumerate(shades[1:], start=1))
    notes.append(f"share of a client's samples: {shades[0]} none, {steps}")
    if together > 1:
        notes.append(f"every column stands for {together} classes, numbered by the first")
    for what, values in (("samples per client", sizes), ("classes per client", held)):
        notes.append(f"{what}: {values.min()} to {values.max()}, median {np.median(values):g}")
    notes.append(
        f"distance from the whole: {distance_from_whole(counts):.2f} (0: all clients alike, near 1: nothing in common)"
    )
    return notes

"""A picture of a partition as a file: the share of every class in every client, and the clients' sizes.

matplotlib is imported when a plot is asked for, drawn by its Agg canvas, and never through pyplot, so this
needs no screen and leaves no global state behind.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["save_plot", "SUFFIXES"]

SUFFIXES = (".png", ".svg", ".pdf")

_MOST_TICKS = 26


def save_plot(counts: NDArray[np.int64], file: Path, *, title: str, class_names: tuple[str, ...] | None = None) -> None:
    """Draw a table of clients by classes into a .png, .svg or .pdf file."""
    if file.suffix.lower() not in SUFFIXES:
        raise DataError(
            f"A plot cannot be written as {file.name!r}", fix=f"Use a name that ends in {', '.join(SUFFIXES)}"
        )
    figure = _figure(counts, title, class_names)
    try:
        figure.savefig(file, format=file.suffix.lower()[1:])
    except OSError as error:
        raise DataError(
            f"The plot {file} cannot be written: {error.strerror or error}",
            fix="Choose a folder that exists and may be written to",
        ) from error


def _figure(counts: NDArray[np.int64], title: str, class_names: tuple[str, ...] | None) -> "Figure":
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("matplotlib", action="Drawing a plot", extra="plot") from error
    clients, classes = counts.shape
    height = float(np.clip(1.9 + 0.22 * clients, 3.6, 9.0))
    width = float(np.clip(4.6 + 0.3 * classes, 7.0, 13.0))
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    table, sizes = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1))
    shares = 100 * counts / counts.sum(axis=1)[:, None]
    image = table.imshow(shares, aspect="auto", cmap="Blues", vmin=0, interpolation="nearest")
    figure.colorbar(image, ax=table, label="% of a client's samples", pad=0.02, fraction=0.05)
    _label_table(table, counts.shape, class_names)
    sizes.barh(np.arange(clients), counts.sum(axis=1), color="#4a7fb5", height=0.8)
    sizes.set_xlabel("samples a client")
    sizes.locator_params(axis="x", nbins=3)
    sizes.tick_params(axis="y", left=False, labelleft=False)
    for side in ("top", "right"):
        sizes.spines[side].set_visible(False)
    figure.suptitle(title)
    return figure


def _label_table(axes: "Axes", shape: tuple[int, ...], class_names: tuple[str, ...] | None) -> None:
    clients, classes = shape
    axes.set_xlabel("class")
    axes.set_ylabel("client")
    ticks = _ticks(classes)
    # A class name is text from a file; a lone $ in it would otherwise start a formula.
    names = [class_names[tick].replace("$", r"\$") if class_names else str(tick) for tick in ticks]
    longest = max(map(len, names))
    axes.set_xticks(ticks, names, rotation=45 if longest > 3 else 0, ha="right" if longest > 3 else "center")
    axes.set_yticks(_ticks(clients))


def _ticks(count: int) -> list[int]:
    """Round numbers below `count`, as many as are readable."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 10 ** len(str(count))) if count <= _MOST_TICKS * step)
    return list(range(0, count, step))

"""Plot of a partition: the share of each class in each client, and the clients' sizes.

matplotlib is imported when a plot is requested, and used without pyplot, so this needs no screen and leaves no global
state.
"""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError, MissingDependencyError
from edgefl.values import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["save_plot", "plot_format", "SUFFIXES"]

SUFFIXES = (".png", ".svg", ".pdf")

_MOST_TICKS = 26


def plot_format(file: Path) -> str:
    """Return the format of a file name, such as "png"."""
    if file.suffix.lower() not in SUFFIXES:
        raise DataError(
            f"A plot cannot be written as {file.name!r}", fix=f"Use a name that ends in {', '.join(SUFFIXES)}"
        )
    return file.suffix.lower()[1:]


def save_plot(counts: NDArray[np.int64], file: Path, *, title: str, class_names: tuple[str, ...] | None = None) -> None:
    """Draw a table of clients by classes to a .png, .svg or .pdf file."""
    form = plot_format(file)
    figure = _figure(counts, title, class_names)
    try:
        figure.savefig(file, format=form)
    except OSError as error:
        raise DataError(
            f"The plot {file} cannot be written: {error.strerror or error}",
            fix="Choose an existing, writable folder",
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
    # One outline: one bar object per client would take minutes for many clients.
    sizes.stairs(counts.sum(axis=1), np.arange(clients + 1) - 0.5, orientation="horizontal", fill=True, color="#4a7fb5")
    sizes.set_xlabel("samples per client")
    sizes.locator_params(axis="x", nbins=3)
    sizes.tick_params(axis="y", left=False, labelleft=False)
    for side in ("top", "right"):
        sizes.spines[side].set_visible(False)
    figure.suptitle(printable(title), parse_math=False)
    return figure


def _label_table(axes: "Axes", shape: tuple[int, ...], class_names: tuple[str, ...] | None) -> None:
    clients, classes = shape
    axes.set_xlabel("class")
    axes.set_ylabel("client")
    ticks = _ticks(classes)
    names = [printable(class_names[tick]) if class_names else str(tick) for tick in ticks]
    turned = max(map(len, names)) > 3
    # A class name is text from a file, in which a $ must not start a formula.
    axes.set_xticks(ticks, names, rotation=45 if turned else 0, ha="right" if turned else "center", parse_math=False)
    axes.set_yticks(_ticks(clients))


def _ticks(count: int) -> list[int]:
    """Return a readable number of round numbers below `count`."""
    steps = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    return list(range(0, count, next(step for step in steps if count <= _MOST_TICKS * step)))

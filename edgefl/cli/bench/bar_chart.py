"""Bar chart of a benchmark report: one horizontal bar per row, with its quartiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.data.partition_plot import plot_format
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.values import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Bar", "check_plot", "save_bars"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar and its range."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def check_plot(file: Path) -> Path:
    """Check that the chart can be drawn before minutes are spent on measuring."""
    plot_format(file)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingDependencyError("matplotlib", action="Drawing a measurement", extra="plot") from None
    return file


def save_bars(bars: Sequence[Bar], file: Path, *, title: str, axis: str) -> None:
    """Draw bars into a .png, .svg or .pdf file."""
    if not bars:
        raise EdgeFLError(
            "nothing was measured, so there is nothing to draw", fix="The report lists what is missing and why."
        )
    try:
        _figure(bars, title, axis).savefig(file, format=plot_format(file))
    except OSError as error:
        raise EdgeFLError(
            f"{file} cannot be written: {error.strerror or error}", fix="Choose a writable folder."
        ) from None


def _figure(bars: Sequence[Bar], title: str, axis: str) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 1.4 + 0.34 * len(bars)), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    places = range(len(bars))
    values = [bar.value for bar in bars]
    axes.barh(places, values, color="#4a7fb5", height=0.7)
    for place, bar in zip(places, bars, strict=True):
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [place, place], color="#222222", linewidth=1.4, marker="|", markersize=7)
        furthest = max(bar.value, bar.high or 0)
        axes.annotate(
            f"{bar.value:.3g}", (furthest, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8
        )
    axes.set_yticks(list(places), [printable(bar.name) for bar in bars], fontsize=8, parse_math=False)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(axis)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title(printable(title), loc="left", fontsize=10, parse_math=False)
    return figure

"""Accuracy by round, one plot per set-up, if matplotlib is installed."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy_study.setups import Setup

__all__ = ["save_curves"]

_COLOURS = 10
"""Lines of different colours; after these, colours come again in another style."""
_STYLES = ("solid", "dashed", "dotted")


def save_curves(results: Sequence[Mapping[str, Any]], setup: Setup, folder: Path) -> None:
    """Draw the mean over seeds of every strategy: the global model, and devices' own right after their training."""
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        return
    good = [result for result in results if "error" not in result]
    if setup.rounds < 2 or not good:
        return
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    FigureCanvasSVG(figure)
    parts = zip(figure.subplots(1, 2, sharey=True), ("accuracy", "own_accuracy"), strict=True)
    for axes, measure in parts:
        for place, label in enumerate(dict.fromkeys(result["label"] for result in good)):
            xs, ys = _curve([result["curve"] for result in good if result["label"] == label], measure)
            style = _STYLES[place // _COLOURS % len(_STYLES)]
            axes.plot(xs, ys, label=label, linewidth=1.2, linestyle=style)
        axes.set_title("global model" if measure == "accuracy" else "devices' own models after training", fontsize=10)
        axes.set_xlabel("round")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("accuracy, %")
    figure.suptitle(f"{setup.name}: {setup.about}", fontsize=10)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    figure.savefig(folder / f"curves-{setup.name}.svg", metadata={"Date": None})


def _curve(curves: Sequence[Sequence[Mapping[str, Any]]], measure: str) -> tuple[list[int], list[float]]:
    found: dict[int, list[float]] = {}
    for curve in curves:
        for point in curve:
            if point[measure] is not None:
                found.setdefault(point["round"], []).append(100 * point[measure])
    return list(found), [statistics.fmean(values) for values in found.values()]

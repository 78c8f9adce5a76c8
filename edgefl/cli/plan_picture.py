"""Heatmap of a plan: devices by layers, with the kept fraction of each layer and the frozen layers."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgefl.data.partition_plot import plot_format
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.masks import Array, BoolArray, Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from edgefl.strategies import PlannedTask

__all__ = ["save_picture"]

_MOST_ROWS = 60


def save_picture(planned_tasks: "Mapping[str, PlannedTask]", graph: ModelGraph, file: Path, *, title: str) -> None:
    """Draw a plan to a .png, .svg or .pdf file."""
    if not planned_tasks:
        raise EdgeFLError("no device gets a submodel, so there is nothing to draw", fix="Allow more time or memory.")
    figure = _figure(planned_tasks, graph, title)
    try:
        figure.savefig(file, format=plot_format(file))
    except OSError as error:
        raise EdgeFLError(
            f"{file} cannot be written: {error.strerror or error}", fix="Choose a writable folder."
        ) from None


def _figure(planned_tasks: "Mapping[str, PlannedTask]", graph: ModelGraph, title: str) -> "Figure":
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        raise MissingDependencyError("matplotlib", action="Drawing a plan", extra="plot") from None
    shown = dict(list(planned_tasks.items())[:_MOST_ROWS])
    layers = graph.trainable_layers
    kept, frozen = _table(shown, graph)
    figure = Figure(figsize=(max(6.0, 2.5 + 0.35 * len(layers)), max(2.6, 1.8 + 0.24 * len(shown))), dpi=120)
    FigureCanvasAgg(figure)
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    image = axes.imshow(kept, aspect="auto", cmap="Greens", vmin=0, vmax=100, interpolation="nearest")
    for row, column in np.argwhere(frozen):
        axes.add_patch(_frozen_cell(row, column))
    axes.legend(
        handles=[Patch(facecolor="white", edgecolor="#555555", hatch="////", label="frozen")],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
    )
    figure.colorbar(image, ax=axes, label="% of the layer kept", pad=0.02, fraction=0.05)
    _label(axes, list(shown), list(layers))
    more = f" (the first {len(shown)} of {len(planned_tasks)} devices)" if len(shown) < len(planned_tasks) else ""
    axes.set_title(printable(title) + more, loc="left", parse_math=False)
    return figure


def _table(planned_tasks: "Mapping[str, PlannedTask]", graph: ModelGraph) -> tuple[Array, BoolArray]:
    """Return, for each device and layer, the kept percentage and whether the layer is frozen."""
    layers = graph.trainable_layers
    kept, frozen = np.zeros((len(planned_tasks), len(layers))), np.zeros((len(planned_tasks), len(layers)), np.bool_)
    for row, planned in enumerate(planned_tasks.values()):
        mask = planned.works_on
        for column, name in enumerate(layers):
            tensors = graph.layer[name].tensors
            whole = sum(graph.tensor[tensor].size for tensor in tensors)
            part = sum(_held(mask, tensor) for tensor in tensors)
            kept[row, column] = 100 * part / max(whole, 1)
            frozen[row, column] = name not in mask.trained
    return kept, frozen


def _held(mask: Mask, tensor: str) -> int:
    held = mask.held.get(tensor)
    return int(np.prod(mask.shapes[tensor])) if held is None else int(np.count_nonzero(held))


def _frozen_cell(row: int, column: int) -> "Patch":
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", edgecolor="#777777", linewidth=0)


def _label(axes: "Axes", devices: list[str], layers: list[str]) -> None:
    axes.set_xticks(
        range(len(layers)), [printable(name) for name in layers], rotation=60, ha="right", fontsize=7, parse_math=False
    )
    axes.set_yticks(range(len(devices)), [printable(name) for name in devices], fontsize=7, parse_math=False)
    axes.set_xlabel("layer")
    axes.set_xticks(np.arange(1, len(layers)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(devices)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)

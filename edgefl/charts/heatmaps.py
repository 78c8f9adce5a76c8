"""Heatmaps of devices by labels, layers or channels.

Large fleets are cut to their first devices, and neighbouring channels of wide groups share a column, so a heatmap has
at most a few hundred rows and columns.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgefl.charts.device_parts import DevicePart
from edgefl.charts.figure import MOST_LABELS, Figure, cells, layout, names_axis, plain
from edgefl.masks import Array
from edgefl.values.formatting import format_count, format_percent, pluralise

__all__ = ["MOST_DEVICES", "MOST_GROUPS", "channel_heatmaps", "label_heatmap", "layer_heatmap", "shown_of"]

MOST_DEVICES = 200
"""Maximum number of rows."""
MOST_GROUPS = 24
"""Maximum number of channel groups with a heatmap."""
_MOST_COLUMNS = 256
_MOST_WRITTEN = 16
"""Cells show their numbers up to this many rows and columns."""


def shown_of(devices: int) -> str:
    """Return a sentence that says which devices are shown, or an empty text if all are."""
    return f" The first {MOST_DEVICES} of {devices:,} devices are shown." if devices > MOST_DEVICES else ""


def label_heatmap(fleet: Sequence[tuple[str, Sequence[int]]]) -> Figure | None:
    """Draw the number of training samples by device and label; `fleet` has names and counts per label."""
    rows = fleet[:MOST_DEVICES]
    classes = max((len(labels) for _, labels in rows), default=0)
    if not classes:
        return None
    counts = np.array([(*labels, *[0] * (classes - len(labels))) for _, labels in rows], np.int64)
    totals, present = counts.sum(axis=1), (counts > 0).sum(axis=1)
    names, labels = [name for name, _ in rows], [str(label) for label in range(classes)]
    return Figure(
        name="labels",
        title="Data by device and label",
        summary=f"Training samples of {pluralise(len(rows), 'device')}: {_range(totals.tolist(), format_count)} each, "
        f"of {_range(present.tolist(), format_count)} of {classes} labels.{shown_of(len(fleet))}",
        traces=(
            _heatmap(names, labels, counts.tolist(), top=int(counts.max()), hover="%{z:,} samples of label %{x}")
            | _written(counts.shape, "%{z}"),
        ),
        layout=_table_layout(names, labels, x="label"),
        key=(("scale", f"none to {pluralise(int(counts.max()), 'sample')}"),),
    )


def layer_heatmap(parts: Sequence[DevicePart]) -> Figure | None:
    """Draw the kept fraction of each layer by device, with different colours for trained and frozen layers."""
    rows = parts[:MOST_DEVICES]
    if not rows or not rows[0].layers:
        return None
    names, layers = [part.device_id for part in rows], [layer.name for layer in rows[0].layers]
    kept = np.array([[round(100 * layer.kept) for layer in part.layers] for part in rows], np.uint8)
    trained = np.array([[layer.trained for layer in part.layers] for part in rows], np.bool_)
    everything = int(trained.all(axis=1).sum())
    return Figure(
        name="layers",
        title="Layers: trained or frozen, and how much of each is kept",
        summary=f"{everything} of {pluralise(len(rows), 'device')} train all {len(layers)} layers. Devices keep "
        f"{_range([part.kept_fraction for part in rows], format_percent)} of the model's parameters."
        f"{shown_of(len(parts))}",
        traces=tuple(
            _heatmap(names, layers, _only(kept, where), top=100, hover=f"%{{x}}: {word}, %{{z}} % kept", scale=word)
            | _written(kept.shape, "%{text}")
            | {"text": [[_cell_text(word, value) for value in row] for row in _only(kept, where)]}
            for where, word in ((trained, "trained"), (~trained, "frozen"))
            if where.any()
        ),
        layout=_table_layout(names, layers, x="layer"),
        key=tuple(
            key
            for key, where in (
                (("trained", "trained; darker means more of the layer is kept, in per cent"), trained),
                (("frozen", "frozen: used but not trained"), ~trained),
            )
            if where.any()
        ),
    )


def channel_heatmaps(parts: Sequence[DevicePart]) -> tuple[Figure, ...]:
    """Draw the kept channels by device, one heatmap per channel group."""
    rows = parts[:MOST_DEVICES]
    groups = list(rows[0].channels)[:MOST_GROUPS] if rows else []
    return tuple(_channels(rows, group, place, len(parts)) for place, group in enumerate(groups))


def _channels(rows: Sequence[DevicePart], group: str, place: int, devices: int) -> Figure:
    names = [part.device_id for part in rows]
    flags = np.array([[flag == "1" for flag in part.channels[group]] for part in rows], np.bool_)
    width = flags.shape[1]
    each = -(-width // _MOST_COLUMNS)
    starts = np.arange(0, width, each)
    portions = np.add.reduceat(flags, starts, axis=1, dtype=np.int64) / np.diff(np.append(starts, width))
    kept, holders = flags.sum(axis=1), flags.sum(axis=0)
    common = int((holders == len(rows)).sum())
    columns = f" A column is {each} channels." if each > 1 else ""
    return Figure(
        name=f"channels-{place}",
        title=f"Channels of {group}",
        summary=f"Devices keep {_range(kept.tolist(), format_count)} of {pluralise(width, 'channel')}; {common:,} are "
        f"kept by all, {int((holders == 0).sum()):,} by none.{columns}{shown_of(devices)}",
        traces=(
            _heatmap(
                names, [], cells(np.round(100 * portions)), top=100, hover="channel %{x}: %{z} % kept", scale="kept"
            )
            | {"x0": float(starts[0] + (each - 1) / 2), "dx": each},
        ),
        layout=_channel_layout(names, width),
        key=(("kept", "kept"), ("empty", "not kept")),
    )


def _range(values: Sequence[Any], say: Callable[[Any], str]) -> str:
    low, high = say(min(values)), say(max(values))
    return low if low == high else f"{low} to {high}"


def _only(values: Array, where: Array) -> list[list[int | None]]:
    return [
        [int(value) if there else None for value, there in zip(row, flags, strict=True)]
        for row, flags in zip(values, where, strict=True)
    ]


def _cell_text(word: str, kept: int | None) -> str:
    if kept is None:
        return ""
    return str(kept) if word == "trained" else "frozen" if kept == 100 else f"frozen {kept}"


def _heatmap(
    devices: Sequence[str], across: Sequence[str], z: Any, *, top: int, hover: str, scale: str = "trained"
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "heatmap",
        "y": [plain(name) for name in devices],
        "z": z,
        "zmin": 0,
        "zmax": max(top, 1),
        "colorscale": [[0, f"var(--{scale}-0)"], [0.5, f"var(--{scale}-1)"], [1, f"var(--{scale}-2)"]],
        "showscale": False,
        # A gap, even an invisible one, keeps plotly from scaling a small image with an inline style.
        "xgap": 1 if across and len(across) <= MOST_LABELS else 0.01,
        "ygap": 1 if len(devices) <= MOST_LABELS else 0.01,
        "hoverongaps": False,
        "hovertemplate": f"%{{y}}<br>{hover}<extra></extra>",
    }
    return made | ({"x": [plain(name) for name in across]} if across else {})


def _written(shape: tuple[int, ...], text: str) -> dict[str, Any]:
    """Return the settings that show cell texts, if there are few enough cells to read."""
    return (
        {"texttemplate": text, "textfont": {"size": 11, "color": "var(--cell-text)"}}
        if max(shape) <= _MOST_WRITTEN
        else {}
    )


def _table_layout(devices: Sequence[str], across: Sequence[str], *, x: str) -> dict[str, Any]:
    return _picture_layout(devices, x=x, row=26, xaxis=names_axis(across))


def _channel_layout(devices: Sequence[str], width: int) -> dict[str, Any]:
    xaxis = {"range": [-0.5, width - 0.5], "constrain": "domain", "tickformat": ",d", "nticks": 6}
    return _picture_layout(devices, x="channel", row=16, xaxis=xaxis)


def _picture_layout(devices: Sequence[str], *, x: str, row: int, xaxis: dict[str, Any]) -> dict[str, Any]:
    height = 64 + max(90, min(row * len(devices), 240 + 3 * len(devices)))
    rows = {
        "autorange": "reversed",
        "showgrid": False,
        "ticks": "",
        "ticklabelstandoff": 5,
        "title": {"text": ""},
        "rangemode": "normal",
    }
    return layout(
        x=x,
        y="",
        height=height,
        hovermode="closest",
        xaxis={"showline": False, "ticks": "", **xaxis},
        yaxis={"showline": False, **rows, **names_axis(devices)},
    )

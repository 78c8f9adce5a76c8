"""A chart as plain data: traces and layout for plotly.js, and a text summary for accessibility.

Colours are names of CSS properties, such as `var(--series-1)`, which `static/charts.js` looks up, so that one spec
works in light and dark pages. Nothing here imports plotly.
"""

import base64
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgefl.values import printable

__all__ = [
    "MOST_LABELS",
    "SERIES",
    "Figure",
    "band",
    "bars",
    "cells",
    "layout",
    "line",
    "names_axis",
    "number",
    "plain",
    "short",
]

SERIES = tuple(f"var(--series-{place})" for place in range(1, 9))
"""Distinguishable colours, in order of use."""

_DASHES = ("solid", "dash", "dot", "dashdot")
_MOST_MARKERS = 60
"""Lines with more points have no markers, which would hide the line."""
MOST_LABELS = 40
"""Maximum number of names along an axis."""
_LONGEST_LABEL = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart with its title and summary."""

    name: str
    """Unique on its page: letters, digits and dashes."""
    title: str
    summary: str
    """The content of the chart as text."""
    traces: tuple[Mapping[str, Any], ...]
    layout: Mapping[str, Any]
    key: tuple[tuple[str, str], ...] = ()
    """Meaning of its colours if it has no legend: pairs of CSS class and text."""

    def spec(self) -> dict[str, Any]:
        """Return the spec that `charts.js` draws."""
        return {"traces": list(self.traces), "layout": dict(self.layout)}


def number(value: float | None) -> float | None:
    """Return a number that JSON can hold, to six digits; None for None, NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def plain(text: str) -> str:
    """Escape a text so that plotly, which interprets markup in labels, shows it unchanged."""
    return html.escape(printable(text), quote=False)


def short(text: str) -> str:
    """Return a text for an axis, with the middle cut out if it is long."""
    text = printable(text)
    if len(text) > _LONGEST_LABEL:
        half = _LONGEST_LABEL // 2
        text = f"{text[: half - 1]}…{text[-half:]}"
    return html.escape(text, quote=False)


def layout(*, x: str, y: str, height: int = 250, **changes: Any) -> dict[str, Any]:
    """Return the common layout with axis titles; `changes` are plotly settings, merged into an axis's own."""
    axis = {
        "automargin": True,
        "gridcolor": "var(--grid)",
        "linecolor": "var(--line)",
        "tickcolor": "var(--line)",
        "zeroline": False,
    }
    made: dict[str, Any] = {
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "var(--font)", "size": 12, "color": "var(--muted)"},
        "margin": {"l": 44, "r": 10, "t": 10, "b": 36},
        "hovermode": "x unified",
        "hoverlabel": {
            "bgcolor": "var(--surface)",
            "bordercolor": "var(--line)",
            "font": {"color": "var(--text)", "family": "var(--font)"},
        },
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        "showlegend": False,
        "xaxis": {**axis, "title": {"text": x, "standoff": 6}, "showgrid": False},
        "yaxis": {**axis, "title": {"text": y, "standoff": 6}, "rangemode": "tozero"},
    }
    for key, value in changes.items():
        made[key] = {**made[key], **value} if key in ("xaxis", "yaxis", "margin", "legend") else value
    return made


def line(
    xs: Sequence[float | None], ys: Sequence[float | None], *, name: str, place: int = 0, form: str = ".3~g"
) -> dict[str, Any]:
    """Return a line; `place` chooses its colour and, if colours run out, its dashes."""
    colour, dash = SERIES[place % len(SERIES)], _DASHES[place // len(SERIES) % len(_DASHES)]
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(xs) <= _MOST_MARKERS else "lines",
        "name": plain(name),
        "x": [number(x) for x in xs],
        "y": [number(y) for y in ys],
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"color": colour, "size": 5},
        "hovertemplate": f"%{{y:{form}}}",
    }


def band(xs: Sequence[float], low: Sequence[float], high: Sequence[float], *, name: str) -> list[dict[str, Any]]:
    """Return the two edges of a shaded band."""
    edge = {"type": "scatter", "mode": "lines", "x": list(xs), "line": {"width": 0}, "hoverinfo": "skip"}
    return [
        {**edge, "y": [number(y) for y in low], "showlegend": False},
        {**edge, "y": [number(y) for y in high], "name": name, "fill": "tonexty", "fillcolor": "var(--series-1-soft)"},
    ]


def bars(xs: Sequence[object], ys: Sequence[float], *, name: str, colour: str) -> dict[str, Any]:
    """Return a bar trace."""
    return {
        "type": "bar",
        "name": plain(name),
        "x": list(xs),
        "y": list(ys),
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertemplate": "%{y:,}",
    }


def cells(values: ArrayLike) -> dict[str, str]:
    """Return a table of integers from 0 to 255 in plotly.js's compact form."""
    table = np.asarray(values, np.uint8)
    return {
        "dtype": "u1",
        "bdata": base64.b64encode(table.tobytes()).decode("ascii"),
        "shape": ", ".join(map(str, table.shape)),
    }


def names_axis(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis of names, showing as many as are readable."""
    step = -(-len(names) // MOST_LABELS)
    some = names[::step] if names else []
    return {
        "type": "category",
        "tickmode": "array",
        "tickvals": [plain(name) for name in some],
        "ticktext": [short(name) for name in some],
    }

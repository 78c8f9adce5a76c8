"""Coverage chart: how many devices train each layer."""

from collections.abc import Sequence

from edgefl.charts.device_parts import DevicePart
from edgefl.charts.figure import Figure, bars, layout, names_axis, plain
from edgefl.values.formatting import pluralise

__all__ = ["coverage_chart"]

_MOST_NAMED = 4
_MANY_LAYERS = 12
"""With more layers, their names are slanted."""


def coverage_chart(parts: Sequence[DevicePart]) -> Figure | None:
    """Draw how many devices train each layer, and how many have it frozen."""
    if not parts or not parts[0].layers:
        return None
    layers = [layer.name for layer in parts[0].layers]
    trained = [sum(part.layers[place].trained for part in parts) for place in range(len(layers))]
    names = [plain(name) for name in layers]
    return Figure(
        name="coverage",
        title="Coverage: how many devices train each layer",
        summary=_summary(layers, trained, len(parts)),
        traces=tuple(
            bars(names, counts, name=words, colour=colour)
            for counts, words, colour in (
                (trained, "train it", "var(--trained-2)"),
                ([len(parts) - count for count in trained], "have it frozen", "var(--frozen-2)"),
            )
            if any(counts)
        ),
        layout=layout(
            x="layer",
            y="devices",
            barmode="stack",
            bargap=0.3,
            showlegend=True,
            height=250 if len(layers) <= _MANY_LAYERS else 330,
            xaxis=names_axis(layers),
        ),
    )


def _summary(layers: Sequence[str], trained: Sequence[int], devices: int) -> str:
    least, most = min(trained), max(trained)
    if least == most:
        return f"Every layer is trained by {least:,} of {pluralise(devices, 'device')}."
    weakest = [name for name, count in zip(layers, trained, strict=True) if count == least]
    more = f" and {len(weakest) - _MOST_NAMED} more" if len(weakest) > _MOST_NAMED else ""
    return (
        f"A layer is trained by {least:,} to {most:,} of {pluralise(devices, 'device')}; by the fewest: "
        f"{', '.join(weakest[:_MOST_NAMED])}{more}."
    )

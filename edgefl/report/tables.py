"""Tables and lists of the pages. A cell has a number to sort by and the text to read."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.report.device_rows import DeviceRow
from edgefl.report.headlines import Headline
from edgefl.report.html_elements import Markup, element
from edgefl.simulation.device_class import DeviceClass
from edgefl.simulation.run_folder import FleetRow
from edgefl.values.formatting import (
    format_byte_rate,
    format_bytes,
    format_count,
    format_joules,
    format_percent,
    format_seconds,
    format_watts,
)

__all__ = ["class_table", "definitions", "device_table", "number_cell", "table", "tiles"]


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of numbers."""

    head: str
    value: Callable[[Any], float | None]
    say: Callable[[Any], str]


_DEVICE_COLUMNS = (
    _Column("Samples", lambda row: row.samples, format_count),
    _Column("Kept", lambda row: row.kept_fraction, format_percent),
    _Column("Trained", lambda row: row.trained_fraction, format_percent),
    _Column("Arrived", lambda row: row.arrived, format_count),
    _Column("Late", lambda row: row.late, format_count),
    _Column("Lost", lambda row: row.lost, format_count),
    _Column("Refused", lambda row: row.refused, format_count),
    _Column("Round", lambda row: row.seconds, format_seconds),
    _Column("Memory", lambda row: row.peak_bytes, format_bytes),
    _Column("Energy", lambda row: row.joules, format_joules),
    _Column("Up", lambda row: row.up_bytes, format_bytes),
    _Column("Down", lambda row: row.down_bytes, format_bytes),
    _Column("Before", lambda row: row.before, format_percent),
    _Column("After", lambda row: row.after, format_percent),
)
_LONG_NAME = 32
_DEVICE_NOTE = (
    "Kept and trained: fraction of the model's parameters in the last submodel. Arrived to refused: number of tasks. "
    "Round: median simulated time. Memory: peak, energy: sum, both estimated by device class. Before and after: "
    "accuracy on the device's own test samples, of its submodel of the last global model and of its personal model. "
    "Select a heading to sort."
)
_CLASS_NOTE = (
    "Speed 1 is about a Raspberry Pi 4. Memory: available for training. Fails: fraction of tasks that return nothing."
)
_CLASS_COLUMNS = (
    _Column("Speed", lambda kind: kind.speed, lambda value: f"{value:g}"),
    _Column("Memory", lambda kind: kind.memory_bytes, format_bytes),
    _Column("Download", lambda kind: kind.download_bytes_per_second, format_byte_rate),
    _Column("Upload", lambda kind: kind.upload_bytes_per_second, format_byte_rate),
    _Column("Idle", lambda kind: kind.idle_watts, format_watts),
    _Column("Busy", lambda kind: kind.busy_watts, format_watts),
    _Column("Fails", lambda kind: kind.fails, format_percent),
)


def device_table(rows: Sequence[DeviceRow]) -> Markup:
    """Return the sortable table of devices."""
    head = ("Device", "Class", *(column.head for column in _DEVICE_COLUMNS))
    lines = [
        (
            element("th", row.device_id, scope="row", class_="long" if len(row.device_id) > _LONG_NAME else None),
            element("td", row.kind),
            *(_cell(column, row) for column in _DEVICE_COLUMNS),
        )
        for row in rows
    ]
    return table(
        "devices-table",
        head,
        lines,
        caption="Submodel, tasks and cost of each device over all rounds",
        note=_DEVICE_NOTE,
        numbers=range(2, 16),
        sortable=True,
    )


def class_table(classes: Sequence[DeviceClass], fleet: Sequence[FleetRow]) -> Markup:
    """Return the table of device classes, with the sources of their figures."""
    kinds = [row.kind for row in fleet]
    head = ("Class", "Devices", *(column.head for column in _CLASS_COLUMNS), "Source of these figures")
    lines = [
        (
            element("th", kind.name, scope="row"),
            element("td", format_count(kinds.count(kind.name)), class_="number"),
            *(_cell(column, kind) for column in _CLASS_COLUMNS),
            element("td", kind.source or "not given", class_="prose"),
        )
        for kind in classes
    ]
    return table(
        "classes-table", head, lines, caption="The device classes of the fleet", note=_CLASS_NOTE, numbers=range(1, 9)
    )


def table(
    name: str,
    head: Sequence[str],
    lines: Sequence[Sequence[Markup]],
    *,
    caption: str,
    note: str = "",
    numbers: Container[int] = (),
    sortable: bool = False,
) -> Markup:
    """Return a table that scrolls on narrow screens; `numbers` are the indices of its number columns."""
    heads = [
        element("th", words, scope="col", class_="number" if place in numbers else None)
        for place, words in enumerate(head)
    ]
    made = element(
        "table",
        element("caption", element("span", caption), id=f"{name}-caption"),
        element("thead", element("tr", *heads)),
        element("tbody", *(element("tr", *line) for line in lines)),
        class_="sortable" if sortable else None,
    )
    return element(
        "div",
        element("div", made, class_="scroll", role="region", tabindex="0", aria_labelledby=f"{name}-caption"),
        element("p", note, class_="note") if note else Markup(),
        class_="table",
    )


def definitions(pairs: Sequence[tuple[str, str]]) -> Markup:
    """Return a definition list of names and values."""
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in pairs))


def tiles(figures: Sequence[Headline]) -> Markup:
    """Return figures as tiles in large type."""
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", one.title),
                element("dd", *(element("span", part, " ") for part in one.value.split(", ")), class_="value"),
                element("dd", one.note, class_="note"),
            )
            for one in figures
        ),
        class_="tiles",
    )


def number_cell(text: str, value: float | None, *more: Markup) -> Markup:
    """Return a cell that is sorted by its value."""
    return element("td", text, *more, class_="number", data_v=None if value is None else f"{value:.6g}")


def _cell(column: _Column, row: object) -> Markup:
    value = column.value(row)
    return number_cell(column.say(value), value)

"""The study as text, CSV, JSON and plots."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.accuracy_study.curves import save_curves
from benchmarks.accuracy_study.figures import MEASURES, Figure, Figures, Value
from benchmarks.accuracy_study.setups import Setup
from benchmarks.accuracy_study.tuning import Choice
from benchmarks.accuracy_study.verdicts import Verdict
from edgefl.artifacts.artifact_store import write_atomically

__all__ = ["write_report"]

_LATE = "Late is the mean over the last 30 % of the rounds that were evaluated."
_COUNTED = "Bytes (before packing), multiply-adds and parameters are of one update; deviations are over seeds."


def write_report(
    figures: Figures,
    verdicts: Sequence[Verdict],
    results: Sequence[Mapping[str, Any]],
    setups: Sequence[Setup],
    choices: Sequence[Choice],
    folder: Path,
) -> None:
    """Print the tables, and write everything to a folder."""
    table, claims, tuning = _table(figures, setups), _claims(verdicts), _tuning(choices)
    print(table, claims, sep="\n")
    everything = {
        "figures": [_plain(figure) for figure in figures.values()],
        "claims": [asdict(verdict) for verdict in verdicts],
        "setups": [asdict(setup) for setup in setups],
        "tuning": [asdict(choice) for choice in choices],
        "runs": list(results),
    }
    texts = {
        "table.txt": table,
        "claims.md": claims,
        "table.csv": _csv(figures),
        "tuning.txt": tuning,
        "tables.md": _page(figures, setups, choices),
    }
    for name, text in (texts | {"results.json": json.dumps(everything, indent=1)}).items():
        write_atomically(folder / name, text.encode())
    for setup in setups:
        save_curves([result for result in results if result["setup"] == setup.name], setup, folder)


def _page(figures: Figures, setups: Sequence[Setup], choices: Sequence[Choice]) -> str:
    """Return the tables as a page: each set-up with what its methods reached, and what they were tuned with."""
    lines = ["# The tables of the accuracy study", ""]
    for setup in setups:
        found = [figure for (name, _), figure in figures.items() if name == setup.name]
        tuned = [choice for choice in choices if choice.entry.setup == setup.name]
        if found:
            table = "\n".join(line.rstrip() for line in [*_rows(found), *_series(found), *_problems(found)])
            lines += [f"## {setup.name}", "", f"{setup.about}.", "", "```text", table, "```", ""]
            lines += ["```text", _tuning(tuned).strip(), "```", ""] if _tuning(tuned).strip() else []
    return "\n".join([*lines, _LATE, _COUNTED, ""])


def _percent(value: Value) -> str:
    return f"{100 * value.mean:.1f} ±{100 * value.deviation:.1f}"


def _share(value: Value) -> str:
    return f"{100 * value.mean:.0f} %"


def _kilobytes(value: Value) -> str:
    return f"{value.mean / 1000:,.1f}"


_COLUMNS: Sequence[tuple[str, str, Callable[[Value], str]]] = (
    ("global", "accuracy", _percent),
    ("late", "late_accuracy", _percent),
    ("own before", "before", _percent),
    ("own after", "after", _percent),
    ("KB up", "up_bytes", _kilobytes),
    ("KB down", "down_bytes", _kilobytes),
    ("M mult-adds", "multiply_adds", lambda value: f"{value.mean / 1e6:,.1f}"),
    ("trained", "trained_fraction", _share),
    ("kept", "kept_fraction", _share),
    ("ms a step", "step_milliseconds", lambda value: f"{value.mean:.2f}"),
)


def _table(figures: Figures, setups: Sequence[Setup]) -> str:
    lines = []
    for setup in setups:
        found = [figure for (name, _), figure in figures.items() if name == setup.name]
        if found:
            lines += [f"{setup.name}: {setup.about}", *_rows(found), *_series(found), *_problems(found), ""]
    lines += [_LATE, _COUNTED]
    return "\n".join(lines)


def _rows(figures: Sequence[Figure]) -> list[str]:
    head = ["strategy", "seeds", *(title for title, _, _ in _COLUMNS)]
    return _aligned([head, *([figure.label, str(figure.seeds), *_cells(figure)] for figure in figures)])


def _cells(figure: Figure) -> list[str]:
    return [show(figure.values[name]) if name in figure.values else "-" for _, name, show in _COLUMNS]


def _series(figures: Sequence[Figure]) -> list[str]:
    lines = []
    for name in dict.fromkeys(name for figure in figures for name in figure.series):
        having = [figure for figure in figures if figure.series.get(name)]
        places = sorted({place for figure in having for place in figure.series[name]}, reverse=name.startswith("size"))
        head = [f"accuracy by {name}", *(f"{place:g}" for place in places)]
        rows = [[figure.label, *(_cell(figure.series[name].get(place)) for place in places)] for figure in having]
        lines += ["", *_aligned([head, *rows])]
    return lines


def _cell(value: Value | None) -> str:
    return "-" if value is None else _percent(value)


def _problems(figures: Sequence[Figure]) -> list[str]:
    return [f"  {figure.label}: {problem}" for figure in figures for problem in figure.problems]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + row[0].ljust(widths[0]) + "".join(f"  {cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]


def _claims(verdicts: Sequence[Verdict]) -> str:
    rows = [f"| {v.paper} | {v.claim} | {v.published} | {v.figures} | {v.ruling.value} |" for v in verdicts]
    return "\n".join(["| paper | claim | published | here | verdict |", "| --- | --- | --- | --- | --- |", *rows, ""])


def _tuning(choices: Sequence[Choice]) -> str:
    """Return what every method was tried with; a star marks what was taken."""
    lines = []
    for choice in choices:
        best = max(choice.tried, key=lambda settings: choice.tried[settings], default=None)
        found = "; ".join(
            f"{settings}: {100 * mean:.1f}{' *' if settings == best else ''}" for settings, mean in choice.tried.items()
        )
        lines += [f"{choice.entry.setup} {choice.entry.label}: {found}"] if found else []
    return "\n".join([*lines, ""])


def _csv(figures: Figures) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["setup", "strategy", "seeds", *(f"{name}{end}" for name in MEASURES for end in ("", "_deviation"))]
    )
    for figure in figures.values():
        cells: list[object] = []
        for name in MEASURES:
            value = figure.values.get(name)
            cells += ["", ""] if value is None else [f"{value.mean:.6g}", f"{value.deviation:.6g}"]
        writer.writerow([figure.setup, figure.label, figure.seeds, *cells])
    return text.getvalue()


def _plain(figure: Figure) -> dict[str, object]:
    plain = asdict(figure)
    plain["series"] = {
        name: {str(place): value for place, value in found.items()} for name, found in plain["series"].items()
    }
    return plain

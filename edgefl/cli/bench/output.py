"""Benchmark output: a table or JSON on stdout, a chart in a file, progress on stderr if that is a terminal."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.bench.report import BenchReport
    from edgefl.cli.bench.bar_chart import Bar

__all__ = ["Columns", "BenchProgress", "picture_file", "ratio_cell", "show", "tail_of"]

_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Columns:
    """How the rows of a report become a table and a chart."""

    title: str
    head: Sequence[str]
    cells: Callable[[Mapping[str, Any]], Sequence[object]]
    bar: "Callable[[Mapping[str, Any]], Bar | None]"
    """The bar of a row, or None."""
    axis: str
    """What the bars show."""


class BenchProgress:
    """A progress line on stderr."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, what: str) -> None:
        """Show the current step."""
        if self._shown:
            print(f"\r{what[:_WIDTH]:<{_WIDTH}}", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        """Clear the line."""
        if self._shown:
            print("\r" + " " * _WIDTH + "\r", end="", file=sys.stderr, flush=True)


def picture_file(args: argparse.Namespace) -> Path | None:
    """Return the file of --plot; check before measuring that it can be drawn."""
    if args.plot is None:
        return None
    from edgefl.cli.bench.bar_chart import check_plot

    return check_plot(Path(args.plot))


def show(report: "BenchReport", columns: Columns, *, as_json: bool, plot: Path | None) -> int:
    """Print and draw a report. Return the exit code: 1 if nothing could be measured."""
    if as_json:
        print(json.dumps(report.as_json(), indent=2, ensure_ascii=False))
    else:
        _print(report, columns)
    if plot is not None:
        from edgefl.cli.bench.bar_chart import save_bars

        bars = [bar for row in report.rows if (bar := columns.bar(row)) is not None]
        save_bars(bars, plot, title=columns.title, axis=columns.axis)
    return 0 if report.rows else 1


def _print(report: "BenchReport", columns: Columns) -> None:
    from edgefl.cli.tables import table
    from edgefl.values.formatting import printable

    print(printable(columns.title) + "\n")
    if report.rows:
        print(table(columns.head, [columns.cells(row) for row in report.rows]))
    else:
        print("nothing could be measured")
    if report.missing:
        print("\nnot measured:")
        for name, reason in report.missing.items():
            print(f"  {printable(name)}: {printable(reason)}")
    if report.notes:
        print()
        for note in report.notes:
            print(printable(note))


def ratio_cell(ratio: Mapping[str, Any] | None) -> str | None:
    """'3.24x (3.10-3.38)' with quartiles in brackets, and '?' if the ratio means little; None for None."""
    if ratio is None:
        return None
    if ratio["verdict"] == "baseline":
        return "1"
    from edgefl.values.formatting import format_ratio

    doubt = "" if ratio["verdict"] == "clear" else " ?"
    return format_ratio(ratio["ratio"], ratio["low"], ratio["high"]) + doubt


def tail_of(seconds: Mapping[str, Any]) -> float:
    """Return the 99th percentile, or the slowest turn if there are too few turns for it."""
    slowest: float = seconds["max"] if seconds["p99"] is None else seconds["p99"]
    return slowest

"""`edgefl fed status`: show the state of a federation, once or until it ends."""

import argparse
import shutil
import sys
import time
from typing import Any

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import Api, CoordinatorUnreachableError, connect, path_of
from edgefl.cli.tables import cell, print_json
from edgefl.errors import EdgeFLError

__all__ = ["accuracy_of", "add_parser"]

_OVER = ("finished", "aborted")
_EVERY_SECONDS = 1.0
_WIDTH = 30


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = add_action(
        actions,
        "status",
        run,
        help="show the state of a federation",
        more="\nWith --watch, a progress bar on stderr follows the federation to its end, and waits if the\n"
        "coordinator is unreachable; the exit code is 1 if the federation was aborted.",
    )
    parser.add_argument("--watch", action="store_true", help="follow the federation until it ends")


def run(args: argparse.Namespace) -> int:
    """Print the state, at once or when the federation ends."""
    path = path_of("federations", args.name)
    with connect(args) as api:
        told = api.get(path)
        if args.watch:
            told = _watch(api, path, told)
    if args.json:
        print_json(told)
    else:
        _print(told, api.now)
    if args.watch and told["state"] == "aborted":
        raise EdgeFLError(f"federation {args.name!r} was aborted: {told['reason'] or 'no reason given'}", fix=_NEXT)
    return 0


_NEXT = "The model of the last finished round is available: edgefl fed export."


def _watch(api: Api, path: str, told: dict[str, Any]) -> dict[str, Any]:
    """Follow a federation to its end."""
    line = _Line()
    try:
        while told["state"] not in _OVER:
            line.show(_progress(told, api.now if line.drawn else None))
            time.sleep(_EVERY_SECONDS)
            try:
                told = api.get(path)
            except CoordinatorUnreachableError:
                line.show(f"{_bar(told)} the coordinator does not respond; waiting for it")
    finally:
        line.clear()
    return told


class _Line:
    """A status line on stderr: redrawn on a terminal, otherwise one line for each change."""

    def __init__(self) -> None:
        self.drawn = sys.stderr.isatty()
        self._last = ""

    def show(self, text: str) -> None:
        """Replace the text shown."""
        from edgefl.values.formatting import printable

        text = printable(text)
        if self.drawn:
            text = text[: max(20, shutil.get_terminal_size().columns - 1)]  # a wrapped line cannot be redrawn
            print("\r" + text.ljust(len(self._last)), end="", file=sys.stderr, flush=True)
        elif text != self._last:
            print(text, file=sys.stderr, flush=True)
        self._last = text

    def clear(self) -> None:
        """Leave an empty line."""
        if self.drawn:
            print("\r" + " " * len(self._last) + "\r", end="", file=sys.stderr, flush=True)


def _bar(told: dict[str, Any]) -> str:
    done = round(_WIDTH * told["rounds_done"] / told["rounds"])
    return f"[{'#' * done:.<{_WIDTH}}]"


def _progress(told: dict[str, Any], now: float | None) -> str:
    """Return the status line; `now` adds the remaining time, for a line that is redrawn continuously."""
    from edgefl.values.formatting import format_part, format_percent, format_seconds

    unit = "models" if told["mode"] == "buffered" else "rounds"
    parts = [f"{_bar(told)} {told['rounds_done']} of {told['rounds']} {unit}"]
    if told["state"] != "running":
        parts.append(_state(told))
    latest = told["round"]
    if latest is not None and latest["state"] == "open":
        parts.append(f"{told['updates']} of {told['wanted']} updates")
        if now is not None and latest["deadline_at"] > now:
            parts.append(f"{format_seconds(round(latest['deadline_at'] - now))} left")
    elif latest is None and told["state"] == "running":
        parts.append(f"{told['devices']} devices joined, waiting for enough of them")
    report = told["report"]
    found = cell(accuracy_of(report), format_percent)
    if found is not None:
        parts.append(f"accuracy {found}{format_part(report.get('judged_fraction'))}")
    return ", ".join(parts)


def _state(told: dict[str, Any]) -> str:
    return str(told["state"]) if told["reason"] is None else f"{told['state']}: {told['reason']}"


def _print(told: dict[str, Any], now: float) -> None:
    from edgefl.values.formatting import format_ago, printable

    rows = [
        ("federation", told["name"]),
        ("state", _state(told)),
        ("model", told["model"]),
        ("strategy", told["strategy"]),
        ("mode", told["mode"]),
        ("rounds", f"{told['rounds_done']} of {told['rounds']} done"),
        *_round_rows(told, now),
        ("devices", str(told["devices"])),
        *_report_rows(told["report"]),
        *_personal_rows(told["personal"]),
        ("created", format_ago(told["created_at"], now)),
    ]
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        print(f"  {label:<{width}}  {printable(text)}")


def _round_rows(told: dict[str, Any], now: float) -> list[tuple[str, str]]:
    from edgefl.values.formatting import format_seconds

    latest = told["round"]
    if latest is None:
        return [("round", "none opened yet")]
    attempt = f", attempt {latest['attempt']}" if latest["attempt"] > 1 else ""
    number = "personalisation" if latest["number"] >= told["rounds"] else latest["number"] + 1
    rows = [("round", f"{number}, {latest['state']}{attempt}")]
    rows.append(("updates", f"{told['updates']} of {told['wanted']}"))
    if latest["state"] == "open":
        left = latest["deadline_at"] - now
        rows.append(("deadline", f"in {format_seconds(round(left))}" if left > 0 else "over"))
    return rows


def _personal_rows(report: dict[str, Any] | None) -> list[tuple[str, str]]:
    if report is None or report.get("device_accuracy") is None:
        return []
    from edgefl.values.formatting import format_percent

    before = cell(report.get("device_accuracy_before"), format_percent)
    since = "" if before is None else f", {before} before"
    return [("personal models", f"{format_percent(report['device_accuracy'])} on the devices' own data{since}")]


def _report_rows(report: dict[str, Any] | None) -> list[tuple[str, str]]:
    if report is None:
        return []
    from edgefl.values.formatting import format_part, format_percent

    rows = []
    if report.get("accuracy") is not None:
        samples = f"{report['test_samples']:,} test samples{format_part(report.get('judged_fraction'))}"
        rows.append(("accuracy", f"{format_percent(report['accuracy'])} of {samples}"))
    if report.get("device_accuracy") is not None:
        rows.append(("on devices", f"{format_percent(report['device_accuracy'])} of their own validation samples"))
    if report.get("loss") is not None:
        rows.append(("training loss", f"{report['loss']:.4g}"))
    return rows


def accuracy_of(report: dict[str, Any] | None) -> float | None:
    """Return a report's accuracy on the coordinator's data or, if it has none, on the devices' own."""
    if report is None:
        return None
    accuracy: float | None = report.get("accuracy")
    return report.get("device_accuracy") if accuracy is None else accuracy

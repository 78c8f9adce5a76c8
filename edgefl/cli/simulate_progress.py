"""Output of `edgefl simulate`: a progress line on stderr, and a summary on stdout."""

import sys
from typing import TYPE_CHECKING

from edgefl.values.formatting import (
    format_bytes,
    format_joules,
    format_part,
    format_percent,
    format_seconds,
)

if TYPE_CHECKING:
    from edgefl.simulation.request import SimulationRequest
    from edgefl.simulation.results import RoundResult
    from edgefl.simulation.run_cost import CostLimits
    from edgefl.simulation.summary import Summary

__all__ = ["SimulationProgress", "summary_lines"]

_WIDTH = 20


class SimulationProgress:
    """Progress by rounds: one redrawn line on a terminal, otherwise one line per round."""

    def __init__(self, rounds: int, until: "CostLimits | None" = None, *, shown: bool = True) -> None:
        from edgefl.simulation.run_cost import CostLimits, RunCost

        self._rounds, self._until, self._shown = rounds, until or CostLimits(), shown
        self._moves = sys.stderr.isatty()
        self._accuracy = ""
        self._cost = RunCost()

    def stage(self, text: str) -> None:
        """Show the current stage."""
        if self._shown and self._moves:
            self._write(text)

    def round(self, result: "RoundResult") -> None:
        """Show a finished round."""
        if result.score is not None:
            part = format_part(result.score.judged_fraction, unit="%")
            self._accuracy = f", accuracy {result.score.accuracy:.1%}{part}"
        self._cost = cost = self._cost.after(result)
        share = max((result.number + 1) / self._rounds, self._until.share(cost))
        done = int(_WIDTH * min(share, 1.0))
        bar = f"[{'#' * done}{'.' * (_WIDTH - done)}] " if self._moves else ""
        arrived = sum(one.fate.value == "arrived" for one in result.devices)
        self._write(
            f"{bar}round {result.number + 1}/{self._rounds}: {arrived} of {len(result.devices)} devices"
            f"{self._accuracy}, {format_seconds(cost.seconds)}, {format_joules(cost.joules)}, "
            f"{format_bytes(cost.up_bytes)} up"
        )

    def done(self) -> None:
        """Clear the line."""
        if self._shown and self._moves:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        if not self._shown:
            return
        if self._moves:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)


def summary_lines(request: "SimulationRequest", found: "Summary", *, over_http: bool = False) -> list[str]:
    """Return the summary of a run; with `over_http`, the byte counts are those actually sent."""
    graphs = f"{format_bytes(found.setup_bytes)} of graphs, before packing"
    federation = request.federation
    classes = ", ".join(kind.name for kind in request.classes)
    fates = [f"{count} {word}" for word, count in (("late", found.late), ("lost", found.lost)) if count]
    fates += [f"{found.refused} refused"] if found.refused else []
    lines = [
        f"{federation.strategy.name}, {request.model} on {request.data} ({request.partition}), "
        f"{request.devices} devices ({classes}), {found.rounds} rounds, seed {federation.seed}",
        f"global model        {_percent(found.accuracy)} of the test samples"
        f"{format_part(found.judged_fraction, unit='%')}",
        f"on the devices      {_percent(found.personal_before)} before, {_percent(found.personal_after)} after "
        "personalisation",
        f"their models        {_percent(found.kept_fraction)} of the parameters",
        f"simulated           {format_seconds(found.simulated_seconds)}, {_joules(found.joules)}",
        *([f"ended early         {found.stopped}"] if found.stopped else []),
        f"updates             {found.updates} counted{''.join(', ' + one for one in fates)}",
        f"bytes               {format_bytes(found.up_bytes)} up, {format_bytes(found.down_bytes)} down, "
        f"{'as sent' if over_http else graphs}",
        f"here                {format_seconds(found.wall_seconds)}",
    ]
    return [line for line in lines if "unknown" not in line or line.startswith("simulated")]


def _percent(share: float | None) -> str:
    return "unknown" if share is None else format_percent(share, unit="%")


def _joules(amount: float | None) -> str:
    return "energy unknown" if amount is None else f"{amount:,.1f} J (estimated by device class)"

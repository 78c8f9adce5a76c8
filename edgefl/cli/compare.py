"""`edgefl compare`: compare runs, in the terminal or as an HTML page."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from edgefl.report import Comparison

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl compare runs/fedavg runs/hermes
  edgefl compare runs/fedavg runs/hermes runs/heterofl --out compared.html
  edgefl compare --json runs/*

The other runs are compared with the first: fractions differ in percentage points (pp), amounts in per cent. Accuracy
is that of the part of the global model that devices hold, and 'judged' the fraction of the parameters in it; 'before'
and 'personal' are means over devices before and after personalisation. Time is simulated, and energy is estimated, by
device class. --out needs the extra 'report'.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "compare",
        help="compare simulated runs",
        description="Compare runs: accuracy, time, energy and traffic, the differences from the first run, and the\n"
        "settings that differ.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", metavar="RUN", nargs="+", help="run folders, two or more")
    parser.add_argument("--out", metavar="FILE", help="also write an HTML page with their curves")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the runs, print the comparison and write the page."""
    from edgefl.cli.tables import print_json
    from edgefl.report import comparison_of
    from edgefl.simulation.run_folder import read_run
    from edgefl.values import printable

    if len(args.folders) < 2:
        raise EdgeFLError("only one run was given", fix="Give two or more, or use `edgefl report`.")
    runs = [read_run(Path(folder)) for folder in args.folders]
    compared = comparison_of(runs)
    for warning in compared.warnings:
        print(f"edgefl: warning: {printable(warning)}", file=sys.stderr)
    if args.out is not None:
        from edgefl.artifacts.artifact_store import write_atomically
        from edgefl.report import comparison_page

        write_atomically(Path(args.out), comparison_page(runs, compared).encode())
        print(f"wrote {args.out}", file=sys.stderr)
    if args.json:
        print_json(compared.as_json())
    else:
        _print(compared)
    return 0


def _print(compared: "Comparison") -> None:
    from edgefl.cli.tables import table
    from edgefl.report.comparison import FIGURES, SHARES
    from edgefl.values.formatting import format_change, printable

    heads = [title.lower() for _, title, _ in FIGURES]
    rows = [
        (row.name, row.strategy, *(say(getattr(row.figures, name)) for name, _, say in FIGURES))
        for row in compared.rows
    ]
    print(table(("run", "strategy", *heads), rows))
    first, *others = compared.rows
    changes = [
        (
            row.name,
            row.strategy,
            *(format_change(row.differences[name], points=name in SHARES) or None for name, _, _ in FIGURES),
        )
        for row in others
    ]
    print(f"\nbeside {printable(first.name)}\n{table(('run', 'strategy', *heads), changes)}")
    if compared.equal_cost.targets:
        print(f"\n{_at_equal_cost(compared)}\n\n{_to_reach(compared)}")
    if first.asked:
        lines = [(key, *(_shown(row.asked[key]) for row in compared.rows)) for key in first.asked]
        print(f"\n{table(('asked', *(row.name for row in compared.rows)), lines)}")


def _at_equal_cost(compared: "Comparison") -> str:
    """Return how good each run was when the cheapest one ended, by every cost."""
    from edgefl.cli.tables import table
    from edgefl.simulation.run_cost import COSTS
    from edgefl.values.formatting import format_percent

    found = compared.equal_cost
    head = ("run", "strategy", *(COSTS[name].text(budget) for name, budget in found.budgets.items()))
    rows = [
        (row.name, row.strategy, *(format_percent(accuracy) for accuracy in run.accuracy.values()))
        for row, run in zip(compared.rows, found.runs, strict=True)
    ]
    return f"accuracy at equal cost: when each had spent what the cheapest spent in all\n{table(head, rows)}"


def _to_reach(compared: "Comparison") -> str:
    """Return what each run took to come near the best accuracy."""
    from edgefl.cli.tables import table
    from edgefl.simulation.run_cost import COSTS
    from edgefl.values.formatting import format_fraction, format_percent

    found = compared.equal_cost
    rows = [
        (
            format_percent(target.accuracy),
            format_fraction(target.share),
            row.name,
            row.strategy,
            *(COSTS[name].format(amount) for name, amount in run.costs[place].items()),
        )
        for place, target in enumerate(found.targets)
        for row, run in zip(compared.rows, found.runs, strict=True)
    ]
    head = ("to reach", "of the best", "run", "strategy", *(kind.title.lower() for kind in COSTS.values()))
    return table(head, rows)


def _shown(value: object) -> str:
    return "none" if value is None else str(value)

"""`edgefl report`: write a self-contained HTML page about a run."""

import argparse
from pathlib import Path

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl report runs/hermes
  edgefl report runs/hermes --out hermes.html

A run is a folder written by `edgefl simulate`; a run that is still in progress is shown up to its latest round. The
page is self-contained and loads nothing from other hosts. Needs the extra 'report'.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "report",
        help="write a self-contained HTML page about a simulated run",
        description="Write one HTML page about a run: figures and curves, a table of its devices, and heatmaps of\n"
        "their data and masks. Prints the path of the page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="RUN", help="the run's folder")
    parser.add_argument("--out", metavar="FILE", help="output file (default: RUN/report.html)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the run and write the page."""
    from edgefl.artifacts.artifact_store import write_atomically
    from edgefl.report import run_page
    from edgefl.simulation.run_folder import read_run

    folder = Path(args.folder)
    out = folder / "report.html" if args.out is None else Path(args.out)
    write_atomically(out, run_page(read_run(folder)).encode())
    print(out)
    return 0

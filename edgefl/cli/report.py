"""`edgefl report`: one page about a run, in a file that needs nothing else."""

import argparse
from pathlib import Path

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl report runs/hermes
  edgefl report runs/hermes --out hermes.html

A run is a folder that `edgefl simulate` wrote; one that is still under way is shown as far as it has come. The page
has everything in it, and asks no other host for anything. Needs the extra 'report'.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "report",
        help="make one self-contained HTML page about a simulated run",
        description="Make one HTML page about a run: its figures and curves, a table of its devices, and pictures of\n"
        "their data and masks. Prints the page's path.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="RUN", help="the run's folder")
    parser.add_argument("--out", metavar="FILE", help="where the page goes (default: RUN/report.html)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the run, write the page."""
    from edgefl.artifacts.artifact_store import write_atomically
    from edgefl.report import run_page
    from edgefl.simulation.run_folder import read_run

    folder = Path(args.folder)
    out = folder / "report.html" if args.out is None else Path(args.out)
    write_atomically(out, run_page(read_run(folder)).encode())
    print(out)
    return 0

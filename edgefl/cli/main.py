"""`edgefl`: the entry point, its exit codes, and failures of its streams.

Exit codes: 0 success, 1 an error that EdgeFL explains, 2 wrong usage, 130 interrupted. A traceback is shown only if
EDGEFL_DEBUG=1 is set.
"""

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from edgefl import __version__
from edgefl.cli import (
    backup,
    certificate,
    compare,
    completion,
    conformance,
    data,
    export,
    inspect,
    join,
    plan,
    predict,
    profile,
    report,
    serve,
    simulate,
)
from edgefl.cli import compile as compile_programs
from edgefl.cli.bench import parser as bench
from edgefl.cli.fed import parser as fed
from edgefl.errors import EdgeFLError

__all__ = ["main", "make_parser"]

_DESCRIPTION = """\
EdgeFL: federated training for phones and Raspberry Pis.
Every device trains the part of the model it can afford.
"""
_EPILOG = """\
Set EDGEFL_DEBUG=1 to see tracebacks. Every command has its own --help.
"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="edgefl",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"edgefl {__version__}")
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    for verb in (
        profile,
        plan,
        export,
        compile_programs,
        simulate,
        report,
        compare,
        serve,
        backup,
        certificate,
        fed,
        join,
        predict,
        bench,
        data,
        inspect,
        conformance,
        completion,
    ):
        verb.add_parser(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _mend_streams()
    try:
        args = make_parser().parse_args(argv)
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader (head, less) has closed the pipe
        _drop_output()
        return 0
    except KeyboardInterrupt:
        return _fail("interrupted", "", 130)
    except EdgeFLError as error:
        return _fail(error.problem, error.fix, 1)
    except OSError as error:
        problem = error.strerror or str(error)
        if error.filename is not None:
            return _fail(f"{problem}: {error.filename}", "Check the path and its permissions.", 1)
        _drop_output()
        return _fail(problem, "Check the input and the output.", 1)
    except Exception as error:
        fix = "This is a bug in EdgeFL: run the command again with EDGEFL_DEBUG=1, and report the output."
        return _fail(f"{type(error).__name__}: {error}", fix, 1)


def _mend_streams() -> None:
    """Replace closed streams (`>&-`), and escape characters that the terminal cannot show."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 (open until the end)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _drop_output() -> None:
    """Discard unwritten output: Python would try again at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(problem: str, fix: str, code: int) -> int:
    from edgefl.values.formatting import printable

    if os.environ.get("EDGEFL_DEBUG") == "1":
        traceback.print_exc()
    print(f"edgefl: error: {printable(problem)}", file=sys.stderr)
    if fix:
        print(f"  {printable(fix)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

"""`edgefl completion`: print a completion script for a shell."""

import argparse
from collections.abc import Mapping

from edgefl.errors import MissingDependencyError

__all__ = ["add_parser"]

_SHELLS = ("bash", "zsh", "fish", "tcsh")
_EPILOG = """\
examples:
  edgefl completion bash > ~/.local/share/bash-completion/completions/edgefl
  edgefl completion zsh > ~/.zfunc/_edgefl
  edgefl completion fish > ~/.config/fish/completions/edgefl.fish
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "completion",
        help="print a completion script for your shell",
        description="Print a completion script for your shell. Needs the extra 'completion'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell that will read the script")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise MissingDependencyError("shtab", action="Shell completion", extra="completion") from None
    from edgefl.cli.main import make_parser

    parser = make_parser()
    _complete_paths(parser, {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY})
    print(shtab.complete(parser, args.shell))
    return 0


def _complete_paths(parser: argparse.ArgumentParser, kinds: Mapping[str, object]) -> None:
    """Mark the arguments that are paths, by their metavar."""
    for action in parser._actions:
        if isinstance(action.metavar, str) and action.metavar in kinds:
            action.complete = kinds[action.metavar]  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete_paths(inner, kinds)

"""`edgefl backup`: copy the state of a coordinator while it runs, and check such a copy."""

import argparse
from pathlib import Path

from edgefl.cli.optional_dependencies import requires_extra

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl backup /mnt/backup/edgefl
  edgefl backup /mnt/backup/edgefl --state /var/lib/edgefl-coordinator
  edgefl backup --check /mnt/backup/edgefl

The copy contains the database, everything that the coordinator needs to go on, and the operators' tokens; keep it as
safe as the original. It has the layout of a state folder: to restore it, stop the coordinator, copy the folder to the
place of the state folder, and start the coordinator. A second backup to the same folder copies only what is new.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "backup",
        help="back up a coordinator",
        description="Copy the state folder of a coordinator, even while it runs. Needs the extra 'coordinator'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="DIR", help="folder of the backup")
    parser.add_argument(
        "--state",
        metavar="DIR",
        default="~/.edgefl/coordinator",
        help="state folder of the coordinator (default: ~/.edgefl/coordinator)",
    )
    parser.add_argument("--check", action="store_true", help="read a whole backup, and copy nothing")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Back up, or check a backup."""
    with requires_extra("coordinator", action="Backing up a coordinator"):
        from coordinator.storage.backup import back_up, check_backup
    from edgefl.cli.tables import print_json
    from edgefl.values.formatting import format_bytes

    folder = Path(args.folder).expanduser()
    found = check_backup(folder) if args.check else back_up(Path(args.state).expanduser(), folder)
    if args.json:
        print_json({"folder": str(folder), "bodies": found.bodies, "bytes": found.copied_bytes})
    elif args.check:
        print(f"{folder} is complete: {found.bodies} bodies, {format_bytes(found.copied_bytes)}")
    else:
        print(f"{folder} has what the coordinator needs; {format_bytes(found.copied_bytes)} were copied")
    return 0

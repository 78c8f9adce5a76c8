"""`edgefl fed audit`: show, export and verify the audit log."""

import argparse
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import Api, connect, path_of
from edgefl.cli.fed.lifetimes import moment
from edgefl.cli.tables import print_json, print_table
from edgefl.errors import EdgeFLError

__all__ = ["add_parser"]

_PAGE = 1000
_HEAD = ("number", "time", "who", "from", "action", "target", "outcome", "detail")
_MORE = """ An entry says who did what and when: operators, devices that
join, the coordinator itself, and attempts that were refused, of which several may be one entry with a count.
Nobody can change an entry; each contains the hash of the one before it, and --verify checks that. Keep the
last hash in another place: it shows later whether the log was cut off or replaced."""


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = add_action(actions, "audit", run, help="show who did what and when", more=_MORE, about=False)
    parser.add_argument(
        "--since", metavar="TIME", help="a date such as 2026-01-31, or a time before now, such as '7 days'"
    )
    parser.add_argument("--until", metavar="TIME", help="the same, for the end")
    parser.add_argument("--verify", action="store_true", help="check that no entry was changed or removed")


def run(args: argparse.Namespace) -> int:
    """Print the log."""
    if args.verify and (args.since or args.until):
        raise EdgeFLError("--verify checks the whole log", fix="Leave out --since and --until.")
    query: dict[str, str | int] = {}
    for option in ("since", "until"):
        if getattr(args, option) is not None:
            query[option] = repr(max(0.0, moment(getattr(args, option), f"--{option}")))
    with connect(args) as api:
        entries = _entries(api, query)
        if args.verify:
            return _verify(args, entries)
        if args.json:
            print_json({"entries": list(entries)})
            return 0
        print_table(_HEAD, [_row(entry) for entry in entries], "no entry")
    return 0


def _entries(api: Api, query: dict[str, str | int]) -> Iterator[dict[str, Any]]:
    """Give all entries, page by page."""
    after = 0
    while True:
        page = api.get(path_of("audit"), after=after, limit=_PAGE, **query)["entries"]
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1]["number"]


def _verify(args: argparse.Namespace, entries: Iterator[dict[str, Any]]) -> int:
    from coordinator.storage.audit_chain import first_break

    known = list(entries)
    broken = first_break(known)
    if broken is not None:
        raise EdgeFLError(
            f"entry {broken} of the audit log does not follow from those before it: it was changed, or one is missing",
            fix="Compare it with an earlier export, and find out who can write to the database.",
        )
    last = known[-1]["hash"] if known else None
    if args.json:
        print_json({"entries": len(known), "hash": last})
    else:
        print(f"{len(known)} entries, all in order; the last hash is {last}")
    return 0


def _row(entry: dict[str, Any]) -> tuple[object, ...]:
    when = datetime.fromtimestamp(entry["at"]).astimezone().isoformat(" ", "seconds")
    who = " ".join(word for word in (entry["kind"], entry["actor"]) if word)
    outcome = entry["outcome"] if entry["count"] == 1 else f"{entry['outcome']} {entry['count']} times"
    detail = ", ".join(f"{name}={value}" for name, value in json.loads(entry["detail"]).items())
    return entry["number"], when, who, entry["address"], entry["action"], entry["target"], outcome, detail

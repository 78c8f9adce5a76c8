"""The hash chain of the audit log: every entry has a hash over itself and over the hash before it.

Somebody who can write to the database can rewrite the whole chain, but not one that ends in a hash which somebody else
has kept. `edgefl fed audit --verify` checks an exported log with `first_break`. Plain Python: it needs no database.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["FIELDS", "first_break", "hash_of_entry"]

FIELDS = ("number", "at", "kind", "actor", "address", "action", "target", "outcome", "count", "detail")
"""What an entry says, in the order in which it is hashed."""


def hash_of_entry(previous: str, entry: Mapping[str, Any]) -> str:
    """Return the hash of an entry after another one, whose hash is `previous` ('' for the first entry)."""
    text = json.dumps([previous, *(entry[name] for name in FIELDS)], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def first_break(entries: Iterable[Mapping[str, Any]], previous: tuple[int, str] = (0, "")) -> int | None:
    """Return the number of the first entry that does not follow from those before it, or None if all do.

    `previous` is the number and the hash of the entry before the first one.
    """
    number, hashed = previous
    for entry in entries:
        number += 1
        if entry["number"] != number or entry["hash"] != hash_of_entry(hashed, entry):
            return number
        hashed = entry["hash"]
    return None

"""The audit log: who did what, and when. Entries are added and read; triggers of the database refuse anything else.

The other stores call `record` in the transaction that does what is recorded, as its last statement: an action that is
rolled back leaves no entry, and one that is committed always leaves one.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from coordinator.redaction import without_secrets
from coordinator.storage.audit_chain import FIELDS, hash_of_entry
from coordinator.storage.database import Database, lock_audit_log
from coordinator.storage.records import Actor, AuditEntry, AuditEvent, AuditOutcome
from coordinator.storage.row_mapping import columns_of, first_record, records
from coordinator.storage.tables import audit
from edgefl.values import printable

__all__ = ["AuditLog", "record"]

_LONGEST_TEXT = 256
_LONGEST_DETAIL = 4000
_ALL = select(*columns_of(audit, AuditEntry))
_LAST = _ALL.order_by(audit.c.number.desc()).limit(1)
_PAGE = (
    _ALL.where(audit.c.number > bindparam("after"), audit.c.at >= bindparam("since"), audit.c.at < bindparam("until"))
    .order_by(audit.c.number)
    .limit(bindparam("most"))
)


class AuditLog:
    """The audit log of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, *events: AuditEvent) -> None:
        """Add entries about what no other transaction records."""
        if events:
            self._database.write(lambda connection: _append(connection, events))

    def page(
        self, after: int = 0, *, most: int = 1000, since: float = float("-inf"), until: float = float("inf")
    ) -> list[AuditEntry]:
        """Return entries with a higher number than `after`, oldest first, of a time span."""
        return records(AuditEntry, self._database.read(_PAGE, after=after, most=most, since=since, until=until))

    def last(self) -> AuditEntry | None:
        """Return the newest entry. Its hash stands for the whole log."""
        return first_record(AuditEntry, self._database.read(_LAST))


def record(connection: Connection, at: float, by: Actor, action: str, target: str, **detail: object) -> None:
    """Add an entry about what this transaction does. Call it last: it waits for other writers of the log."""
    _append(connection, [AuditEvent(at=at, by=by, action=action, target=target, detail=detail)])


def _append(connection: Connection, events: Sequence[AuditEvent]) -> None:
    lock_audit_log(connection)
    last = connection.execute(_LAST).first()
    number, hashed = (0, "") if last is None else (last.number, last.hash)
    rows: list[dict[str, Any]] = []
    for event in events:
        number += 1
        row = _row(number, event)
        hashed = row["hash"] = hash_of_entry(hashed, row)
        rows.append(row)
    connection.execute(insert(audit), rows)


def _row(number: int, event: AuditEvent) -> dict[str, Any]:
    values: tuple[object, ...] = (
        number,
        round(event.at, 3),
        event.by.kind,
        _text(event.by.name),
        _text(event.by.address),
        event.action,
        _text(event.target),
        AuditOutcome(event.outcome).value,
        event.count,
        _detail(event.detail),
    )
    return dict(zip(FIELDS, values, strict=True))


def _text(text: str) -> str:
    """Return what a caller may have written as one line without secrets, which any database can hold."""
    return without_secrets(printable(text))[:_LONGEST_TEXT]


def _detail(detail: Mapping[str, object]) -> str:
    known = {name: _text(value) if isinstance(value, str) else value for name, value in detail.items()}
    text = json.dumps({name: value for name, value in known.items() if value is not None}, ensure_ascii=True)
    return text if len(text) <= _LONGEST_DETAIL else json.dumps({"too long": len(text)})

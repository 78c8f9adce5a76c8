"""The operators' tokens in the database.

A token is replaced by revoking its row and adding one with the same name, so a hash that was ever valid stays known: a
token that was revoked or replaced cannot come back because a file or a variable still contains it.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from sqlalchemy import Connection, bindparam, insert, or_, select, update

from coordinator.storage.audit_log import record
from coordinator.storage.database import Database
from coordinator.storage.records import COORDINATOR, Actor, OperatorRole, OperatorToken
from coordinator.storage.row_mapping import columns_of, fields_of, first_record, records
from coordinator.storage.tables import tokens

__all__ = ["Revocation", "TokenStore"]

_USED_SECONDS = 60.0
_ALL = select(*columns_of(tokens, OperatorToken))
_BY_HASH = _ALL.where(tokens.c.hash == bindparam("hash"))
_LISTED = _ALL.order_by(tokens.c.name, tokens.c.created_at, tokens.c.id)
_NAMED = _ALL.where(tokens.c.name == bindparam("name"), tokens.c.revoked_at.is_(None))
_FROM_START = _ALL.where(tokens.c.from_start, tokens.c.role == bindparam("role")).order_by(
    tokens.c.revoked_at.is_(None).desc(), tokens.c.created_at.desc()
)
_ADMINS = _ALL.where(tokens.c.role == OperatorRole.ADMIN, tokens.c.revoked_at.is_(None)).order_by(tokens.c.id)


class Revocation(StrEnum):
    """What became of a revocation."""

    DONE = "done"
    UNKNOWN = "unknown"
    LAST_ADMIN = "last admin"
    """Nobody could administer the coordinator afterwards, so nothing was changed."""


class TokenStore:
    """The operators' tokens of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_hash(self, token_hash: str) -> OperatorToken | None:
        """Return the token with this hash, whether or not it is still valid."""
        return first_record(OperatorToken, self._database.read(_BY_HASH, hash=token_hash))

    def all(self) -> list[OperatorToken]:
        """Return all tokens by name, revoked ones included."""
        return records(OperatorToken, self._database.read(_LISTED))

    def add(self, token: OperatorToken, *, by: Actor) -> bool:
        """Add a token; return False if another one that is not revoked has its name."""

        def work(connection: Connection) -> bool:
            if connection.execute(_NAMED, {"name": token.name}).first() is not None:
                return False
            _insert(connection, token)
            about = {"role": token.role.value, "expires_at": token.expires_at}
            record(connection, token.created_at, by, "token.create", token.name, **about)
            return True

        return self._database.write(work)

    def adopt(self, token: OperatorToken, *, replaces: bool) -> OperatorToken:
        """Return the token of a role that coordinators are started with.

        A token with a known hash stays as it is, revoked or not. An unknown one is added if there is none yet, or if it
        `replaces` the one that there is; otherwise, that one is returned.
        """

        def work(connection: Connection) -> OperatorToken:
            known = first_record(OperatorToken, connection.execute(_BY_HASH, {"hash": token.hash}).all())
            if known is not None:
                return known
            others = records(OperatorToken, connection.execute(_FROM_START, {"role": token.role}).all())
            if others and not replaces:
                return others[0]
            for other in others:
                _revoke(connection, [other], token.created_at)
            _insert(connection, token)
            about = {"role": token.role.value, "from_start": True, "replaces": bool(others)}
            record(connection, token.created_at, COORDINATOR, "token.create", token.name, **about)
            return token

        return self._database.write(work)

    def rotate(self, token: OperatorToken, *, by: Actor) -> bool:
        """Replace the token of the same name; return False if there is none. Its role stays what it was."""

        def work(connection: Connection) -> bool:
            found = connection.execute(_NAMED.with_for_update(), {"name": token.name}).all()
            if not found:
                return False
            (old,) = records(OperatorToken, found)
            _revoke(connection, [old], token.created_at)
            _insert(connection, replace(token, role=old.role, from_start=old.from_start))
            record(connection, token.created_at, by, "token.rotate", token.name, expires_at=token.expires_at)
            return True

        return self._database.write(work)

    def revoke(self, name: str, at: float, *, by: Actor) -> Revocation:
        """Revoke a token, unless it is the last one of an admin that is valid."""

        def work(connection: Connection) -> Revocation:
            # Locked together: of two admins who revoke each other at the same time, one stays.
            admins = records(OperatorToken, connection.execute(_ADMINS.with_for_update()).all())
            found = records(OperatorToken, connection.execute(_NAMED.with_for_update(), {"name": name}).all())
            if not found:
                return Revocation.UNKNOWN
            is_admin = found[0].is_valid(at) and found[0].role is OperatorRole.ADMIN
            if is_admin and not any(admin.is_valid(at) for admin in admins if admin.name != name):
                return Revocation.LAST_ADMIN
            _revoke(connection, found, at)
            record(connection, at, by, "token.revoke", name, role=found[0].role.value)
            return Revocation.DONE

        return self._database.write(work)

    def mark_used(self, token: OperatorToken, at: float) -> None:
        """Note that a token is used, unless that was noted in the last minute."""
        if token.used_at is not None and at < token.used_at + _USED_SECONDS:
            return
        earlier = or_(tokens.c.used_at.is_(None), tokens.c.used_at < at)
        note = update(tokens).where(tokens.c.id == token.id, earlier).values(used_at=at)
        self._database.write(lambda connection: connection.execute(note) and None)


def _insert(connection: Connection, token: OperatorToken) -> None:
    connection.execute(insert(tokens), fields_of(token))


def _revoke(connection: Connection, known: Sequence[OperatorToken], at: float) -> None:
    ids = [token.id for token in known if token.revoked_at is None]
    if ids:
        connection.execute(update(tokens).where(tokens.c.id.in_(ids)).values(revoked_at=at))

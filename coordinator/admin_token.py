"""The operator's token: told, or in a file of the state folder, or made new; the database keeps its hash.

Several workers on one database accept the same token: the first one makes it, the others find its hash.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.server_settings import ServerSettings
from coordinator.storage.store import Store
from coordinator.tokens import hash_of, new_token
from edgefl.errors import EdgeFLError

__all__ = ["AdminToken", "admin_token"]

_SECRET = "admin-token"


@dataclass(frozen=True, slots=True)
class AdminToken:
    """What is known of the operator's token here."""

    hash: str
    path: Path | None
    """The file that it is in; None if it was told, or if another worker made it."""
    text: str | None = field(default=None, repr=False)
    """None if another worker made it."""


def admin_token(settings: ServerSettings, store: Store) -> AdminToken:
    """Return the operator's token. What this process was told comes before what the database remembers."""
    if settings.admin_token is not None:
        store.secret(_SECRET, hash_of(settings.admin_token))
        return AdminToken(hash_of(settings.admin_token), None, settings.admin_token)
    path = settings.state / _SECRET
    if path.exists():
        known = _read(path)
        store.secret(_SECRET, hash_of(known))
        return AdminToken(hash_of(known), path, known)
    token = new_token("admin")
    _write(path, token)  # first: a kill in between must not leave a hash whose token nobody has
    stored = store.secret(_SECRET, hash_of(token))
    if stored != hash_of(token):
        path.unlink()
        return AdminToken(stored, None)
    return AdminToken(stored, path, token)


def _read(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if len(text) < 32:
        raise EdgeFLError(f"there is no admin token in {path}", fix="Write one of 32 letters and digits or more there.")
    return text


def _write(path: Path, token: str) -> None:
    """Write it so that only its owner can read it at any time, and all of it or nothing is there after a crash."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}-{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)

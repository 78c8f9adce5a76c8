"""The tokens of people: the admin's, which may do everything, and the viewer's, which may only look.

Each is told, or in a file of the state folder, or made new; the database keeps its hash. Several workers on one
database accept the same tokens: the first one makes them, the others find their hashes.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.federations.tokens import OperatorRole, hash_of, new_token
from coordinator.http.server_settings import ServerSettings
from coordinator.storage.store import Store
from edgefl.errors import EdgeFLError

__all__ = ["OperatorToken", "operator_tokens"]


@dataclass(frozen=True, slots=True)
class OperatorToken:
    """What is known of a token here."""

    hash: str
    path: Path | None
    """The file that it is in; None if it was told, or if another worker made it."""
    text: str | None = field(default=None, repr=False)
    """None if another worker made it."""


def operator_tokens(settings: ServerSettings, store: Store) -> Mapping[OperatorRole, OperatorToken]:
    """Return the token of every role."""
    told = {OperatorRole.ADMIN: settings.admin_token, OperatorRole.VIEWER: settings.viewer_token}
    tokens = {role: _token(role, told[role], settings.state, store) for role in OperatorRole}
    if len({token.hash for token in tokens.values()}) < len(tokens):
        raise EdgeFLError("admin and viewer have the same token", fix="Give the viewer another one.")
    return tokens


def _token(role: OperatorRole, told: str | None, state: Path, store: Store) -> OperatorToken:
    """Return a token. What this process was told comes before what the database remembers."""
    name = f"{role}-token"
    if told is not None:
        store.workers.secret(name, hash_of(told))
        return OperatorToken(hash_of(told), None, told)
    path = state / name
    if path.exists():
        known = _read(path)
        store.workers.secret(name, hash_of(known))
        return OperatorToken(hash_of(known), path, known)
    token = new_token(role)
    _write(path, token)  # first: a kill in between must not leave a hash whose token nobody has
    stored = store.workers.secret(name, hash_of(token))
    if stored != hash_of(token):
        path.unlink()
        return OperatorToken(stored, None)
    return OperatorToken(stored, path, token)


def _read(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if len(text) < 32:
        raise EdgeFLError(f"there is no token in {path}", fix="Write one of 32 letters and digits or more there.")
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

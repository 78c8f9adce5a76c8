"""The operators' tokens: the admin's, which may do everything, and the viewer's, which may only read.

Each is configured, or in a file of the state folder, or created; the database stores its hash. Several workers on one
database accept the same tokens: the first one creates them, the others find their hashes.
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
    """What this process knows about a token."""

    hash: str
    path: Path | None
    """The file that contains it; None if it was configured, or if another worker created it."""
    text: str | None = field(default=None, repr=False)
    """None if another worker created it."""


def operator_tokens(settings: ServerSettings, store: Store) -> Mapping[OperatorRole, OperatorToken]:
    """Return the token of every role."""
    configured = {OperatorRole.ADMIN: settings.admin_token, OperatorRole.VIEWER: settings.viewer_token}
    tokens = {role: _token(role, configured[role], settings.state, store) for role in OperatorRole}
    if len({token.hash for token in tokens.values()}) < len(tokens):
        raise EdgeFLError("admin and viewer have the same token", fix="Give the viewer another token.")
    return tokens


def _token(role: OperatorRole, configured: str | None, state: Path, store: Store) -> OperatorToken:
    """Return a token. A configured one takes precedence over the one in the database."""
    name = f"{role}-token"
    if configured is not None:
        store.workers.secret(name, hash_of(configured))
        return OperatorToken(hash_of(configured), None, configured)
    path = state / name
    if path.exists():
        known = _read(path)
        store.workers.secret(name, hash_of(known))
        return OperatorToken(hash_of(known), path, known)
    token = new_token(role)
    _write(path, token)  # first: a crash in between must not leave a hash whose token is lost
    stored = store.workers.secret(name, hash_of(token))
    if stored != hash_of(token):
        path.unlink()
        return OperatorToken(stored, None)
    return OperatorToken(stored, path, token)


def _read(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if len(text) < 32:
        raise EdgeFLError(
            f"{path} contains no valid token", fix="Write a token of at least 32 letters and digits into it."
        )
    return text


def _write(path: Path, token: str) -> None:
    """Write a token so that only its owner can ever read it, and the file is complete or missing after a crash."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}-{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)

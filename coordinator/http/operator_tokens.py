"""The tokens that a coordinator is started with: the admin's, for everything, and the viewer's, for reading.

Each is configured, or in a file of the state folder, or created; the database stores its hash, under the name of its
role, beside the named tokens that admins make. Several workers on one database accept the same tokens: the first one
creates them, the others find their hashes. Another token in the file or the configuration replaces the one before; one
that was revoked stays revoked, wherever it is written.
"""

import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.federations.tokens import OperatorRole, hash_of, new_token
from coordinator.http.server_settings import ServerSettings
from coordinator.storage.records import OperatorToken
from coordinator.storage.store import Store
from edgefl.artifacts.artifact_store import PRIVATE, write_atomically
from edgefl.errors import EdgeFLError

__all__ = ["StartToken", "operator_tokens", "rewrite_file"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartToken:
    """What this process knows about a token that it was started with."""

    hash: str
    path: Path | None
    """The file that contains it; None if it was configured, or if another worker created it."""
    text: str | None = field(default=None, repr=False)
    """None if another worker created it."""
    is_valid: bool = True
    """Whether it was not revoked."""


def operator_tokens(settings: ServerSettings, store: Store) -> Mapping[OperatorRole, StartToken]:
    """Return the token of every role."""
    configured = {OperatorRole.ADMIN: settings.admin_token, OperatorRole.VIEWER: settings.viewer_token}
    return {role: _token(role, configured[role], settings.state, store) for role in OperatorRole}


def rewrite_file(state: Path, role: OperatorRole, old_hash: str, token: str) -> None:
    """Write a token to the file of its role if that file contains the old one, which is about to be replaced."""
    path = _path(state, role)
    if path.exists() and hash_of(_read(path)) == old_hash:
        _write(path, token)


def _token(role: OperatorRole, configured: str | None, state: Path, store: Store) -> StartToken:
    """Return a token. A configured one takes precedence over the one in the file, and both over the database's."""
    path = _path(state, role)
    if configured is None and not path.exists():
        return _new_token(role, path, store)
    text = _read(path) if configured is None else configured
    known = store.tokens.adopt(_record(role, text), replaces=True)
    if known.role is not role:
        raise EdgeFLError(
            f"admin and viewer have the same token: the {role}'s is known as {known.name!r}",
            fix="Give the viewer another token.",
        )
    if known.revoked_at is not None:
        _LOG.warning("the %s token that this coordinator was started with was revoked, and opens nothing", role)
    return StartToken(known.hash, path if configured is None else None, text, known.revoked_at is None)


def _new_token(role: OperatorRole, path: Path, store: Store) -> StartToken:
    token = new_token(role)
    _write(path, token)  # first: a crash in between must not leave a hash whose token is lost
    known = store.tokens.adopt(_record(role, token), replaces=False)
    if known.hash != hash_of(token):
        path.unlink()
        return StartToken(known.hash, None, None, known.revoked_at is None)
    return StartToken(known.hash, path, token)


def _record(role: OperatorRole, text: str) -> OperatorToken:
    return OperatorToken(
        id=secrets.token_hex(6), name=role.value, role=role, hash=hash_of(text), created_at=time.time(), from_start=True
    )


def _path(state: Path, role: OperatorRole) -> Path:
    return state / f"{role}-token"


def _read(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if len(text) < 32:
        raise EdgeFLError(
            f"{path} contains no valid token", fix="Write a token of at least 32 letters and digits into it."
        )
    return text


def _write(path: Path, token: str) -> None:
    """Write a token so that only its owner can ever read it, and the file is complete or missing after a crash."""
    write_atomically(path, f"{token}\n".encode(), mode=PRIVATE)

"""Secrets that callers show: how they are made, and how they are kept.

A join key, a device's token and the admin token are 256 random bits each. The database keeps their SHA-256 alone. A
plain hash is right here, where it would be wrong for a password: nobody can try 2^256 values, so there is nothing that
salt or a slow hash could make harder, and a hash without salt can be looked up by an index.

The prefix says what a secret is to who finds one, and lets logs leave it out (`coordinator.observability.logs`).
"""

import hashlib
import hmac
import re
import secrets
from enum import StrEnum
from typing import Literal

__all__ = ["TOKEN", "OperatorRole", "hash_of", "new_token", "same"]

TOKEN = re.compile(r"edgefl-(?:key|device|admin|viewer)-[A-Za-z0-9_-]+")


class OperatorRole(StrEnum):
    """What a person's token lets them do."""

    ADMIN = "admin"
    VIEWER = "viewer"
    """Look, and change nothing."""


def new_token(kind: Literal["key", "device"] | OperatorRole) -> str:
    """Return a new secret, such as 'edgefl-key-' and 43 characters."""
    return f"edgefl-{kind}-{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """Return what is kept of a secret: the SHA-256 of its text, in hexadecimal digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two hashes are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(one, other)

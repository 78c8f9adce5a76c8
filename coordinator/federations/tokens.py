"""Join keys and tokens: how they are created and hashed.

A join key, a device's token and the admin token are 256 random bits each. The database stores only their SHA-256. A
plain hash is right here, though wrong for a password: nobody can try 2^256 values, so salt or a slow hash would make
nothing harder, and a hash without salt can be looked up by an index.

The prefix tells anyone who finds a secret what it is, and lets logs remove it (`coordinator.redaction`).
"""

import hashlib
import hmac
import secrets
from typing import Literal

from coordinator.storage.records import OperatorRole

__all__ = ["OperatorRole", "hash_of", "new_token", "same"]


def new_token(kind: Literal["key", "device"] | OperatorRole) -> str:
    """Return a new secret, such as 'edgefl-key-' and 43 characters."""
    return f"edgefl-{kind}-{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """Return the SHA-256 of a secret in hexadecimal digits, which is what is stored of it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str, other: str) -> bool:
    """Return whether two hashes are equal, in constant time."""
    return hmac.compare_digest(one, other)

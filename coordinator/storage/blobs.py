"""The Protocol of the blob store: bodies by the digest of their content.

A put is durable when it returns. `open` gives a body as a buffer, without copying where possible.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from edgefl.errors import EdgeFLError

__all__ = ["Blobs", "Spooled", "missing"]


@dataclass(frozen=True, slots=True)
class Spooled:
    """An uploaded body in a spool file, and the digest of its content, computed when it was checked."""

    path: Path
    digest: str


class Blobs(Protocol):
    """Content-addressed bodies."""

    def put(self, data: bytes) -> str:
        """Store data and return its digest ("sha256:" and 64 hex digits)."""
        ...

    def put_all(self, bodies: Sequence[bytes | Spooled]) -> list[str]:
        """Store several bodies for about one wait for the disk. Spooled files are gone afterwards (moved where
        possible)."""
        ...

    def spool(self) -> Path:
        """Return a new path for an incoming body, on the same file system where possible. Nobody else uses it."""
        ...

    def size(self, digest: str) -> int | None:
        """Return how many bytes a body has, or None if it does not exist."""
        ...

    def get(self, digest: str) -> bytes:
        """Return the whole body. Raise `EdgeFLError` if it is missing or damaged (does not match its digest)."""
        ...

    def open(self, digest: str) -> AbstractContextManager[memoryview]:
        """Give the whole body as a read-only buffer, memory-mapped where possible, without checking its digest."""
        ...

    def read(self, digest: str, start: int, end: int) -> Iterator[bytes]:
        """Return the bytes from `start` up to `end`, in pieces of at most 256 KiB."""
        ...

    def drop(self, digest: str) -> None:
        """Delete a body; it may be missing."""
        ...

    def drop_all(self, digests: Collection[str]) -> None:
        """Delete several bodies at once."""
        ...

    def check_writable(self) -> None:
        """Try to store something. Raise an error, whose type depends on the kind of store, if that fails."""
        ...

    def close(self) -> None:
        """Stop the threads and remove temporary files."""
        ...


def missing(digest: str, *, damaged: bool = False) -> EdgeFLError:
    """Return the error about a missing or damaged body."""
    state = "is damaged" if damaged else "is missing"
    return EdgeFLError(
        f"the body {digest} {state}", fix="Restore it from a backup of the blob store, or make it again."
    )

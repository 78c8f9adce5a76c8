"""The Protocol of the blob store: bodies by the digest of what they hold.

A put is durable when it returns. A body is read through `open`, which gives a buffer without copying where it can.
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
    """A body on its way in: a file in `spool`, and the digest of what it holds, as whoever checked it computed it."""

    path: Path
    digest: str


class Blobs(Protocol):
    """Content-addressed bodies."""

    def put(self, data: bytes) -> str:
        """Keep data, and return its digest ("sha256:" and 64 hex digits)."""
        ...

    def put_all(self, bodies: Sequence[bytes | Spooled]) -> list[str]:
        """Keep several at once, for the price of about one wait for the disk. Spooled files are gone afterwards (moved
        where possible)."""
        ...

    def spool(self) -> Path:
        """Return a new path for a body on its way in, on the same file system where possible. Nobody else sees it."""
        ...

    def size(self, digest: str) -> int | None:
        """How many bytes it has, or None if there is no such body."""
        ...

    def get(self, digest: str) -> bytes:
        """The whole body. Raises `EdgeFLError` if it is missing or damaged (does not match its digest)."""
        ...

    def open(self, digest: str) -> AbstractContextManager[memoryview]:
        """The whole body as a read-only buffer, memory-mapped where possible, not checked against its digest again."""
        ...

    def read(self, digest: str, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` up to `end`, in pieces of at most 256 KiB."""
        ...

    def drop(self, digest: str) -> None:
        """Forget a body; a missing one is fine."""
        ...

    def drop_all(self, digests: Collection[str]) -> None:
        """Forget several at once."""
        ...

    def close(self) -> None:
        """Let go of threads and temporary files."""
        ...


def missing(digest: str, *, damaged: bool = False) -> EdgeFLError:
    """Return the error of a body that is not there, or not what it was."""
    state = "is damaged" if damaged else "is not there"
    return EdgeFLError(
        f"the body {digest} {state}", fix="Restore it from a backup of the blob store, or make it again."
    )

"""The blob store at a URL that fsspec knows, such as `s3://bucket/prefix`.

The objects are named `content/ab/abcdef...`. Such a store keeps an object completely or not at all, and has made it
durable when it confirms a write. Incoming bodies are spooled in a local folder.

Options of the connection come from the environment (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, ...) or from the query of the
URL: `s3://bucket/prefix?endpoint_url=https://minio.example&region=eu-1`.
"""

import contextlib
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import fsspec

from coordinator.storage.blobs import Spooled, missing
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.values import check_digest, digest_of

__all__ = ["RemoteBlobs"]

_PIECE = 256 * 1024
_FETCH = 8 * 2**20
_SMALL = 2**20
_THREADS = 8
_NOTE = b"Bodies of an EdgeFL coordinator, each named by the SHA-256 digest of what it holds.\n"


class RemoteBlobs:
    """Content-addressed objects."""

    def __init__(self, url: str) -> None:
        place, _, query = url.partition("?")
        self._files, self._root = _connected(place, dict(parse_qsl(query)))
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="blobs")
        self._spool = Path(tempfile.mkdtemp(prefix="edgefl-spool-"))
        self._remove_spool = weakref.finalize(self, shutil.rmtree, self._spool, ignore_errors=True)
        try:
            # A missing bucket, or a key that may not write, should fail now and not at the first upload.
            self._files.pipe_file(f"{self._root}/README", _NOTE)
        except Exception as error:  # the type depends on the kind of store
            self.close()
            raise EdgeFLError(
                f"the blob store {place} cannot be written to: {error or type(error).__name__}",
                fix="Check that the bucket exists, and check the address and the credentials.",
            ) from error

    def put(self, data: bytes) -> str:
        """Store data and return its digest."""
        return self._store(data)

    def put_all(self, bodies: Sequence[bytes | Spooled]) -> list[str]:
        """Store several bodies over several connections."""
        return list(self._threads.map(self._store, bodies))

    def spool(self) -> Path:
        """Return a new path for an incoming body."""
        return self._spool / uuid.uuid4().hex

    def size(self, digest: str) -> int | None:
        """Return how many bytes a body has, or None."""
        try:
            return int(self._files.size(self._path(digest)))
        except FileNotFoundError:
            return None

    def get(self, digest: str) -> bytes:
        """Return the whole body. A damaged one is removed, so that it can be stored again."""
        data = self._fetch(digest)
        if digest_of(data) != digest:
            self.drop(digest)
            raise missing(digest, damaged=True)
        return data

    @contextlib.contextmanager
    def open(self, digest: str) -> Iterator[memoryview]:
        """Give the whole body, in memory."""
        yield memoryview(self._fetch(digest))

    def read(self, digest: str, start: int, end: int) -> Iterator[bytes]:
        """Return the bytes from `start` up to `end`, in pieces; fetched in larger ones, as each is a request."""
        for begin in range(start, end, _FETCH):
            stop = min(end, begin + _FETCH)
            fetched = self._fetch(digest, begin, stop)
            for offset in range(0, len(fetched), _PIECE):
                yield fetched[offset : offset + _PIECE]
            if len(fetched) < stop - begin:  # the body ends here, and asking for more is an error
                return

    def drop_all(self, digests: Collection[str]) -> None:
        """Delete several bodies."""
        for digest in digests:
            self.drop(digest)

    def drop(self, digest: str) -> None:
        """Delete a body."""
        with contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._path(digest))

    def check_writable(self) -> None:
        """Write the note again that a new store gets."""
        self._files.pipe_file(f"{self._root}/README", _NOTE)

    def close(self) -> None:
        """Stop the threads and remove the spool."""
        self._threads.shutdown()
        self._remove_spool()

    def _path(self, digest: str) -> str:
        name = check_digest(digest).removeprefix("sha256:")
        return f"{self._root}/content/{name[:2]}/{name}"

    def _fetch(self, digest: str, start: int | None = None, end: int | None = None) -> bytes:
        try:
            return bytes(self._files.cat_file(self._path(digest), start=start, end=end))
        except FileNotFoundError:
            raise missing(digest) from None

    def _store(self, body: bytes | Spooled) -> str:
        if isinstance(body, Spooled):
            self._send(body.digest, body.path.read_bytes())
            body.path.unlink()
            return body.digest
        digest = digest_of(body)
        self._send(digest, body)
        return digest

    def _send(self, digest: str, data: bytes) -> None:
        # Asking for a small one takes as long as sending it; sending it again changes nothing.
        if len(data) < _SMALL or self.size(digest) != len(data):
            self._files.pipe_file(self._path(digest), data)


def _connected(place: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path in it."""
    scheme = place.partition("://")[0]
    if "region" in options:
        options["client_kwargs"] = {"region_name": options.pop("region")}
    try:
        # fsspec's cache of listings would hide what another worker has stored since.
        files, root = fsspec.url_to_fs(place, use_listings_cache=False, **options)
    except ImportError as error:
        if scheme in ("s3", "s3a"):
            raise MissingDependencyError("s3fs", action="a blob store on S3", extra="s3") from None
        raise EdgeFLError(
            f"the blob store {place} needs a package that is not installed: {error}", fix=_KINDS
        ) from None
    except ValueError as error:
        raise EdgeFLError(f"the blob store {place} is of an unknown kind: {error}", fix=_KINDS) from None
    return files, root.rstrip("/")


_KINDS = "Name a folder, s3://bucket/prefix, or install what fsspec needs for this kind of URL."

"""Downloads of artifacts by digest: graphs, weights and masks that the plans of a device's federation name.

The content of a digest never changes, so an artifact may be cached for ever, a download may resume at any byte, and
`ETag` is the digest. On request, graphs and masks are compressed with gzip, and weights are also byte-shuffled
(`edgefl.wire.byte_shuffle`); ranges of them are not.
"""

import gzip
import logging
import re
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coordinator.http.authentication import Caller
from coordinator.http.error_handlers import HttpError
from coordinator.http.routes.openapi_schemas import DIGEST
from coordinator.http.routes.registration import add, device_of, media, parameter
from coordinator.http.routes.responses import Pieces, from_thread, has_tag, taken_codings
from coordinator.http.services import Services, services_of
from coordinator.storage.records import Artifact, Device
from edgefl.federation.cache import LruCache
from edgefl.wire import byte_shuffle

__all__ = ["ARTIFACT_ANSWERS", "add_routes", "artifact_response", "wanted_by"]

_KIND = "application/octet-stream"
_PIECE = 256 * 1024
_LEAST_PACKED = 1024
_MOST_PACKED = 2 * 2**20
_FLOATS = frozenset({"weights", "extras"})
_PACKED_FRACTION = 0.9
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_packed: LruCache[tuple[str, bool], bytes] = LruCache(16 * 2**20, lambda packed: 1024 + len(packed))
"""Compressed artifacts by digest, up to this many bytes together; empty if compression does not save enough."""
_log = logging.getLogger("coordinator.artifacts")
_TEXT = {"type": "string"}


_BINARY = {"type": "string", "format": "binary"}
ARTIFACT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: media(_BINARY, kind=_KIND, about="The whole artifact."),
    206: media(_BINARY, kind=_KIND, about="The requested range."),
    304: {"description": "The caller has it."},
}


def add_routes(app: FastAPI) -> None:
    """Add the routes of this file."""
    add(
        app,
        "GET",
        "/v1/artifacts/{digest}",
        get_artifact,
        caller=Caller.DEVICE,
        tag="artifacts",
        answers=ARTIFACT_ANSWERS,
        busy=[
            parameter("digest", "path", {"type": "string", "pattern": DIGEST}, "The digest, from a plan."),
            parameter("Range", "header", _TEXT, "One range of bytes, such as 'bytes=1000-'."),
            parameter("If-Range", "header", _TEXT, "The tag of what the caller has a part of."),
            parameter("If-None-Match", "header", _TEXT, "Tags of what the caller has."),
            parameter(
                "Accept-Encoding",
                "header",
                _TEXT,
                f"'gzip', or '{byte_shuffle.CODINGS}', to get it compressed where that is worth it.",
            ),
        ],
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The headers of a request that say which bytes it wants."""

    span: str | None
    if_range: str | None
    if_none_match: str | None
    codings: frozenset[str]
    """The encodings that the caller accepts."""


async def get_artifact(request: Request, device: Annotated[Device, Depends(device_of)]) -> Response:
    """Download an artifact, or a range of it."""
    services, digest = services_of(request), request.path_params["digest"]
    return await services.threads.run(artifact_response, services, device.federation, digest, wanted_by(request))


def wanted_by(request: Request) -> _Wanted:
    """Return which bytes a request wants, and how."""
    headers = request.headers
    codings = taken_codings(headers.get("accept-encoding"))
    return _Wanted(headers.get("range"), headers.get("if-range"), headers.get("if-none-match"), codings)


def artifact_response(services: Services, federation: str, digest: str, wanted: _Wanted) -> Response:
    """Build the response in one call on a thread, including the bytes of a small artifact."""
    artifact = services.context.store.artifacts.get(federation, digest)
    if artifact is not None and services.context.blobs.size(digest) is None:
        _log.error("an artifact is missing in the blob store", extra={"federation": federation, "digest": digest})
        artifact = None
    if artifact is None:
        raise HttpError(
            404, f"there is no artifact {digest[:80]!r}", fix="Ask for the next task: its plan names other artifacts."
        )
    tag = f'"{digest}"'
    headers = {
        "ETag": tag,
        "Cache-Control": "private, max-age=31536000, immutable",
        "Accept-Ranges": "bytes",
        "Vary": "Accept-Encoding",
    }
    if has_tag(wanted.if_none_match, (tag, f'"{digest}-gzip"', f'"{digest}-planes"')):
        return Response(status_code=304, headers=headers)
    ranged = wanted.span is not None and wanted.if_range in (None, tag)
    span = _span(wanted.span or "", artifact.size) if ranged else None
    if span is None and not ranged and (packed := _packed_for(wanted.codings, services, artifact)):
        by_planes = artifact.kind in _FLOATS
        headers["ETag"] = f'"{digest}-{"planes" if by_planes else "gzip"}"'
        headers["Content-Encoding"] = byte_shuffle.CODINGS if by_planes else "gzip"
        return Response(packed, 200, headers, _KIND)
    start, end = span or (0, artifact.size)
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{artifact.size}"
    pieces = services.context.blobs.read(digest, start, end)
    status = 200 if span is None else 206
    if end - start <= _PIECE:
        return Response(b"".join(pieces), status, headers, _KIND)
    headers["Content-Length"] = str(end - start)
    return Pieces(from_thread(services.threads, iter(pieces)), status, headers, _KIND)


def _span(text: str, size: int) -> tuple[int, int] | None:
    """Return the start and end of a Range header; None if it is not supported here."""
    found = _RANGE.fullmatch(text.strip())
    if found is None or not (found[1] or found[2]):
        return None
    start = int(found[1]) if found[1] else max(0, size - int(found[2]))
    end = min(size, int(found[2]) + 1) if found[1] and found[2] else size
    if found[1] and found[2] and int(found[2]) < int(found[1]):
        return None  # such a header is invalid, and ignored
    if start >= size:
        raise HttpError(
            416,
            f"the range begins at byte {start:,}, but there are only {size:,}",
            fix="Ask from the beginning.",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end


def _packed_for(codings: frozenset[str], services: Services, artifact: Artifact) -> bytes:
    """Return a compressed artifact; empty if the caller does not accept it, or if it is not worth it."""
    floats = artifact.kind in _FLOATS
    if not codings >= (set(byte_shuffle.codings_in(byte_shuffle.CODINGS)) if floats else {"gzip"}):
        return b""
    if not _LEAST_PACKED <= artifact.size <= (byte_shuffle.MOST_BYTES if floats else _MOST_PACKED):
        return b""

    def pack() -> bytes:
        data = services.context.blobs.get(artifact.digest)
        packed = byte_shuffle.pack(data) if floats else gzip.compress(data, 6, mtime=0)
        return packed if len(packed) < _PACKED_FRACTION * artifact.size else b""

    return _packed.get((artifact.digest, floats), pack)

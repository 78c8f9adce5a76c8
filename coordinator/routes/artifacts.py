"""Artifacts by digest: graphs, weights and masks that the plans of a device's federation name.

What a digest names never changes, so an artifact may be kept for ever, a download may go on at any byte, and `ETag` is
the digest. Graphs are packed with gzip for who asks; weights are not worth it.
"""

import gzip
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coordinator.callers import Caller
from coordinator.edge import Edge, edge_of
from coordinator.library import Recent
from coordinator.problems import ProblemError
from coordinator.routes.adding import add, device_of, media, parameter
from coordinator.routes.answers import Pieces, from_thread
from coordinator.routes.schemas import DIGEST
from coordinator.storage.records import Artifact, Device

__all__ = ["add_routes"]

_KIND = "application/octet-stream"
_PIECE = 256 * 1024
_WORTH_PACKING = range(1024, 2 * 2**20)
_NOT_PACKED = frozenset({"weights", "extras"})
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_packed = Recent(32)
_log = logging.getLogger("coordinator.artifacts")
_TEXT = {"type": "string"}


def add_routes(app: FastAPI) -> None:
    """Add the routes of this file."""
    binary = {"type": "string", "format": "binary"}
    add(
        app,
        "GET",
        "/v1/artifacts/{digest}",
        get_artifact,
        caller=Caller.DEVICE,
        tag="artifacts",
        answers={
            200: media(binary, kind=_KIND, about="All of it."),
            206: media(binary, kind=_KIND, about="The range that was asked for."),
            304: {"description": "The caller has it."},
        },
        busy=[
            parameter("digest", "path", {"type": "string", "pattern": DIGEST}, "What a plan calls it."),
            parameter("Range", "header", _TEXT, "One range of bytes, such as 'bytes=1000-'."),
            parameter("If-Range", "header", _TEXT, "The tag of what the caller has a part of."),
            parameter("If-None-Match", "header", _TEXT, "Tags of what the caller has."),
            parameter("Accept-Encoding", "header", _TEXT, "'gzip', to get it packed where that is worth it."),
        ],
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a request says about which bytes it wants."""

    span: str | None
    if_range: str | None
    if_none_match: str | None
    gzip: bool


async def get_artifact(request: Request, device: Annotated[Device, Depends(device_of)]) -> Response:
    """Download an artifact, or a range of it."""
    edge, said = edge_of(request), request.headers
    wanted = _Wanted(
        said.get("range"), said.get("if-range"), said.get("if-none-match"), _takes_gzip(said.get("accept-encoding"))
    )
    return await edge.threads.run(_artifact, edge, device.federation, request.path_params["digest"], wanted)


def _artifact(edge: Edge, federation: str, digest: str, wanted: _Wanted) -> Response:
    """Find everything out in one go on a thread, the bytes of a small artifact included."""
    artifact = edge.context.store.artifact(federation, digest)
    if artifact is not None and edge.context.blobs.size(digest) is None:
        _log.error("an artifact is not in the blob store", extra={"federation": federation, "digest": digest})
        artifact = None
    if artifact is None:
        raise ProblemError(
            404, f"there is no artifact {digest[:80]!r}", fix="Ask for the next task: its plan names others."
        )
    tag = f'"{digest}"'
    headers = {
        "ETag": tag,
        "Cache-Control": "private, max-age=31536000, immutable",
        "Accept-Ranges": "bytes",
        "Vary": "Accept-Encoding",
    }
    if _has(wanted.if_none_match, (tag, f'"{digest}-gzip"')):
        return Response(status_code=304, headers=headers)
    ranged = wanted.span is not None and wanted.if_range in (None, tag)
    span = _span(wanted.span or "", artifact.size) if ranged else None
    if span is None and wanted.gzip and not ranged and (packed := _gzipped(edge, artifact)):
        return Response(packed, 200, headers | {"ETag": f'"{digest}-gzip"', "Content-Encoding": "gzip"}, _KIND)
    start, end = span or (0, artifact.size)
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{artifact.size}"
    pieces = edge.context.blobs.read(digest, start, end)
    status = 200 if span is None else 206
    if end - start <= _PIECE:
        return Response(b"".join(pieces), status, headers, _KIND)
    headers["Content-Length"] = str(end - start)
    return Pieces(from_thread(edge.threads, iter(pieces)), status, headers, _KIND)


def _span(text: str, size: int) -> tuple[int, int] | None:
    """Return the bytes that a Range header asks for, from and up to; None where it asks for what is not done here."""
    found = _RANGE.fullmatch(text.strip())
    if found is None or not (found[1] or found[2]):
        return None
    start = int(found[1]) if found[1] else max(0, size - int(found[2]))
    end = min(size, int(found[2]) + 1) if found[1] and found[2] else size
    if found[1] and found[2] and int(found[2]) < int(found[1]):
        return None  # such a header means nothing, and counts as none
    if start >= size:
        raise ProblemError(
            416,
            f"the range begins at byte {start:,}, and there are {size:,}",
            fix="Ask from the beginning.",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end


def _gzipped(edge: Edge, artifact: Artifact) -> bytes | None:
    """Return an artifact packed, or None where that is not worth it."""
    if artifact.kind in _NOT_PACKED or artifact.size not in _WORTH_PACKING:
        return None

    def pack() -> bytes | None:
        packed = gzip.compress(edge.context.blobs.get(artifact.digest), 6, mtime=0)
        return packed if len(packed) < 0.9 * artifact.size else None

    return _packed.get(artifact.digest, pack)


def _has(header: str | None, tags: Iterable[str]) -> bool:
    if header is None:
        return False
    named = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return "*" in named or not named.isdisjoint(tags)


def _takes_gzip(header: str | None) -> bool:
    for part in (header or "").lower().split(","):
        name, _, quality = part.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False

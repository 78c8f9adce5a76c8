"""Bodies on their way in: documents, an operator's JSON, and uploads that may be larger than the memory.

How much may come, how slowly, and how it may be packed is decided before (`coordinator.http.request_limits`).
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from coordinator.http.error_handlers import HttpError
from coordinator.http.request_limits import GROUPED, MOST_BYTES
from coordinator.http.services import services_of
from edgefl.values import loads
from edgefl.wire import byte_shuffle

__all__ = ["arrived", "is_grouped", "is_large", "read_document", "read_model", "upload"]

_PACKED_TIMES = 4
"""How much larger a body is that was packed, at most as a rule; one that is larger still waits for more room."""

Value = TypeVar("Value")
Model = TypeVar("Model", bound=BaseModel)


async def read_document(request: Request, cls: type[Value]) -> Value:
    """Return a value of `edgefl.values`; strict, with errors that name the field."""
    return loads(cls, await request.body())


async def read_model(request: Request, cls: type[Model]) -> Model:
    """Return what an operator sent."""
    try:
        return cls.model_validate_json(await request.body() or b"{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise HttpError(400, f"the body is no JSON: {first['msg']}", fix="Send a JSON object.") from None
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise HttpError(
            422, f"{where} is wrong: {first['msg']}", fix="Correct it; /openapi.json describes every field."
        ) from None


@contextlib.asynccontextmanager
async def upload(request: Request) -> AsyncIterator[bytes | Path]:
    """Give a body: a small one as bytes, a large one as a file in the blob store's spool, removed at the end."""
    services = services_of(request)
    kept, expected = services.limits.kept_bytes, _expected(request)
    async with contextlib.AsyncExitStack() as room:
        reserved = min(expected, kept)
        await room.enter_async_context(services.memory.reserved(reserved))
        pieces: list[bytes] = []
        size = 0
        stream = request.stream()
        async for piece in stream:
            pieces.append(piece)
            size += len(piece)
            if size > kept:
                break
            if size > reserved:  # a packed one that is larger than was thought
                await room.enter_async_context(services.memory.reserved(kept - reserved))
                reserved = kept
        else:
            yield b"".join(pieces)
            return
        async with services.spool.reserved(_declared(request)):
            path = await services.threads.run(services.context.blobs.spool)
            try:
                await _write(request, path, pieces, stream)
                yield path
            finally:
                path.unlink(missing_ok=True)


async def _write(request: Request, path: Path, pieces: list[bytes], stream: AsyncIterator[bytes]) -> None:
    services = services_of(request)
    with await services.threads.run(path.open, "wb") as file:
        await services.threads.run(file.writelines, pieces)
        pieces.clear()
        size = 0
        async for piece in stream:
            pieces.append(piece)
            size += len(piece)
            if size >= services.limits.kept_bytes:
                await services.threads.run(file.writelines, pieces)
                pieces.clear()
                size = 0
        await services.threads.run(file.writelines, pieces)


def arrived(request: Request, body: bytes | Path) -> int:
    """Return how many bytes came for a body, packed as it was, with its headers."""
    length = request.headers.get("content-length", "")
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    line = len(request.method) + len(request.scope["raw_path"]) + len("  HTTP/1.1\r\n\r\n")
    headers = sum(len(name) + len(value) + len(": \r\n") for name, value in request.headers.raw)
    return line + headers + (int(length) if length.isdigit() else size)


def is_large(request: Request) -> bool:
    """Whether a body will not be kept in memory, or does not say how large it is."""
    return _expected(request) > services_of(request).limits.kept_bytes


def is_grouped(request: Request) -> bool:
    """Whether a body that came is still grouped by planes."""
    return bool(request.scope.get(GROUPED, False))


def _expected(request: Request) -> int:
    """Return how large a body is likely to be; what was packed, a few times as large as what comes."""
    length = request.headers.get("content-length", "")
    declared = _declared(request)
    return min(declared, _PACKED_TIMES * int(length)) if length.isdigit() else declared


def _declared(request: Request) -> int:
    """Return how large a body will be; as large as allowed where its headers do not tell."""
    most: int = request.scope["route"].openapi_extra[MOST_BYTES]
    if is_grouped(request):
        most = min(most, byte_shuffle.MOST_BYTES)
    length = request.headers.get("content-length", "")
    packed = request.headers.get("content-encoding", "identity") not in ("identity", "")
    return min(most, int(length)) if length.isdigit() and not packed else most

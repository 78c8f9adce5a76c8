"""Reads request bodies: documents, an operator's JSON, and uploads that may be larger than the memory.

`coordinator.http.request_limits` has limited their size, speed and encoding before.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
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

_QUICKLY_PARSED = 4 * 1024
"""Bytes of JSON that are parsed on the event loop; hostile JSON of that size takes less than a millisecond."""
_PACKED_TIMES = 4
"""How much larger a decompressed body usually is, at most; a larger one waits for more memory."""

Value = TypeVar("Value")
Model = TypeVar("Model", bound=BaseModel)


async def read_document(request: Request, cls: type[Value]) -> Value:
    """Return a value of `edgefl.values`; errors name the field."""
    return await _parsed(request, lambda body: loads(cls, body))


async def read_model(request: Request, cls: type[Model]) -> Model:
    """Return the Pydantic model that an operator sent."""
    return await _parsed(request, lambda body: _model(cls, body))


async def _parsed(request: Request, parse: Callable[[bytes], Value]) -> Value:
    body = await request.body()
    if len(body) <= _QUICKLY_PARSED:
        return parse(body)
    return await services_of(request).threads.parse(parse, body)


def _model(cls: type[Model], body: bytes) -> Model:
    try:
        return cls.model_validate_json(body or b"{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise HttpError(400, f"the body is not valid JSON: {first['msg']}", fix="Send a JSON object.") from None
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise HttpError(
            422, f"{where} is invalid: {first['msg']}", fix="Correct it; /openapi.json describes every field."
        ) from None


@contextlib.asynccontextmanager
async def upload(request: Request) -> AsyncIterator[bytes | Path]:
    """Give a body: a small one as bytes, a large one as a spool file that is removed afterwards."""
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
            if size > reserved:  # a compressed one that is larger than expected
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
    """Return how many bytes a body took on the network, compressed as it was, with its headers."""
    length = request.headers.get("content-length", "")
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    line = len(request.method) + len(request.scope["raw_path"]) + len("  HTTP/1.1\r\n\r\n")
    headers = sum(len(name) + len(value) + len(": \r\n") for name, value in request.headers.raw)
    return line + headers + (int(length) if length.isdigit() else size)


def is_large(request: Request) -> bool:
    """Return whether a body will not stay in memory, or does not declare its size."""
    return _expected(request) > services_of(request).limits.kept_bytes


def is_grouped(request: Request) -> bool:
    """Return whether a body is still byte-shuffled."""
    return bool(request.scope.get(GROUPED, False))


def _expected(request: Request) -> int:
    """Return how large a body is likely to be; a compressed one, a few times its size on the network."""
    length = request.headers.get("content-length", "")
    declared = _declared(request)
    return min(declared, _PACKED_TIMES * int(length)) if length.isdigit() else declared


def _declared(request: Request) -> int:
    """Return how large a body will be; the limit if its headers do not say."""
    most: int = request.scope["route"].openapi_extra[MOST_BYTES]
    if is_grouped(request):
        most = min(most, byte_shuffle.MOST_BYTES)
    length = request.headers.get("content-length", "")
    packed = request.headers.get("content-encoding", "identity") not in ("identity", "")
    return min(most, int(length)) if length.isdigit() and not packed else most

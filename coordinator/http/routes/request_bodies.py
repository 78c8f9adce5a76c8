"""Reads request bodies: documents, an operator's JSON, and uploads that may be larger than the memory.

`coordinator.http.request_limits` has limited their size, speed and encoding before.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from coordinator.http.byte_budgets import Reservation
from coordinator.http.error_handlers import HttpError
from coordinator.http.request_limits import GROUPED, MOST_BYTES, most_bytes
from coordinator.http.services import Services, services_of
from edgefl.values import loads

__all__ = ["arrived", "is_grouped", "read_document", "read_model", "upload"]

_QUICKLY_PARSED = 4 * 1024
"""Bytes of JSON that are parsed on the event loop; hostile JSON of that size takes less than a millisecond."""
_PACKED_TIMES = 4
"""How much larger a decompressed body usually is, at most."""
_STEP = 64 * 1024
"""Bytes that an upload reserves at once; most updates need no more."""

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
async def upload(request: Request, holder: str, most: int | None = None) -> AsyncIterator[bytes | Path]:
    """Give a body of at most `most` bytes, or as many as its route takes: a small one as bytes, a large one as a spool
    file that is removed afterwards. It also becomes a file if there is not enough memory for it."""
    services = services_of(request)
    if most is not None:
        request.scope[MOST_BYTES] = most
    async with contextlib.AsyncExitStack() as stack:
        memory = await stack.enter_async_context(services.memory.reserved(_first_bytes(request), holder))
        body: bytes | Path
        async with memory.receiving():
            stream = request.stream()
            pieces, whole = await _in_memory(stream, memory, services.limits.kept_bytes)
            if whole:
                body = b"".join(pieces)
            else:
                disk = await stack.enter_async_context(services.spool.reserved(0, holder))
                body = await services.threads.run(services.context.blobs.spool)
                stack.callback(body.unlink, missing_ok=True)
                await _write(services, body, pieces, stream, memory, disk)
        del pieces
        yield body


async def _in_memory(stream: AsyncIterator[bytes], memory: Reservation, most: int) -> tuple[list[bytes], bool]:
    """Return the pieces of a body as far as there is memory for them, and whether that is the whole body."""
    pieces: list[bytes] = []
    async for piece in stream:
        pieces.append(piece)
        memory.arrived += len(piece)
        lacking = memory.arrived - memory.size
        if memory.arrived > most or (lacking > 0 and not memory.grow(max(lacking, _STEP))):
            return pieces, False
    return pieces, True


async def _write(
    services: Services,
    path: Path,
    pieces: list[bytes],
    stream: AsyncIterator[bytes],
    memory: Reservation,
    disk: Reservation,
) -> None:
    """Write the pieces of a body to a file, and then what follows them, a few at a time."""
    size = sum(map(len, pieces))
    while True:
        await disk.wait_to_grow(size)
        await services.threads.run(_append, path, pieces)
        pieces.clear()
        memory.shrink(_STEP)
        size = 0
        async for piece in stream:
            pieces.append(piece)
            memory.arrived += len(piece)
            size += len(piece)
            if size >= _STEP:
                break
        else:
            break
    await disk.wait_to_grow(size)
    await services.threads.run(_append, path, pieces)


def _append(path: Path, pieces: list[bytes]) -> None:
    with path.open("ab") as file:
        file.writelines(pieces)


def arrived(request: Request, body: bytes | Path) -> int:
    """Return how many bytes a body took on the network, compressed as it was, with its headers."""
    length = request.headers.get("content-length", "")
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    line = len(request.method) + len(request.scope["raw_path"]) + len("  HTTP/1.1\r\n\r\n")
    headers = sum(len(name) + len(value) + len(": \r\n") for name, value in request.headers.raw)
    return line + headers + (int(length) if length.isdigit() else size)


def is_grouped(request: Request) -> bool:
    """Return whether a body is still byte-shuffled."""
    return bool(request.scope.get(GROUPED, False))


def _first_bytes(request: Request) -> int:
    """Return how much memory a body needs at first; a compressed one, a few times its size on the network."""
    length = request.headers.get("content-length", "")
    packed = request.headers.get("content-encoding", "identity") not in ("identity", "")
    size = int(length) * (_PACKED_TIMES if packed else 1) if length.isdigit() else _STEP
    return min(size, _STEP, most_bytes(request.scope))

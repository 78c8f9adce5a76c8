"""The envelope of a body: one safetensors file with one metadata entry and a digest.

    8 bytes   length of the header, little-endian
    header    {"__metadata__":{"edgefl":"<sha256> <text>"},"<part>":{dtype, shape, data_offsets},...} and spaces
    data      the parts

Any safetensors reader opens it. The header begins with exactly these characters, without spaces between them.
`<text>` is the JSON that `body.py` writes and reads; `<sha256>` is 64 lower-case hexadecimal digits: SHA-256 over the
UTF-8 bytes of `<text>` and a zero byte, then for every part, in ascending order of the UTF-8 bytes of its name: name,
a zero byte, dtype, a zero byte, the sizes in decimal joined by commas, a zero byte, and the part's data. So a flipped
bit or two exchanged parts are detected.

This module handles bytes and parts, not their meaning. There is one metadata entry because safetensors writes several
in an order that differs from run to run, and equal bodies must be equal bytes. The library checks the header but does
not return the metadata, so that entry is read here. Writing is done here too, to the same bytes: the library copies
everything twice, and a device may not have enough memory for that.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize

from edgefl.errors import SchemaError, WireFormatError
from edgefl.values.strict_json import parse
from edgefl.wire.body_parts import Array, BodyParts

__all__ = ["DTYPES", "MAX_HEADER_BYTES", "MAX_PARTS", "header_bytes", "parse_json", "seal", "unseal", "unseal_known"]

MAX_HEADER_BYTES = 2**20
MAX_PARTS = 2**13
"""A header only describes tensors: a thousand need about 150 kilobytes. Reading one takes about two kilobytes of memory
per part, so these bound the cost of a small hostile body."""

DTYPES: dict[str, np.dtype[Any]] = {
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "F16": np.dtype("<f2"),
    "U8": np.dtype("u1"),
}
"""By name in a header, in the order in which safetensors writes them: large ones first, so all are aligned."""
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_KEY = "edgefl"
_BEGIN = '{"__metadata__":{"edgefl":'
_DAMAGED = "Ask the sender for the body again."


def seal(text: str, parts: Mapping[str, Array]) -> bytes:
    """Return the body that holds `text` and `parts`."""
    ready = {name: np.asarray(part, part.dtype.newbyteorder("<"), order="C") for name, part in parts.items()}
    for name, part in ready.items():
        if part.dtype not in _NAMES:
            raise WireFormatError(
                f"tensor {name!r} has dtype {part.dtype}",
                fix=f"Convert it to one of {', '.join(map(str, _NAMES))}.",
            )
    ranks = {dtype: rank for rank, dtype in enumerate(DTYPES.values())}
    names = sorted(ready, key=lambda name: (ranks[ready[name].dtype], name))
    header: dict[str, Any] = {"__metadata__": {_KEY: f"{_digest(text, ready)} {text}"}}
    end = 0
    for name in names:
        part = ready[name]
        begin, end = end, end + part.nbytes
        header[name] = {"dtype": _NAMES[part.dtype], "shape": part.shape, "data_offsets": [begin, end]}
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return b"".join([len(head).to_bytes(8, "little"), head, *(_raw(ready[name]) for name in names)])


def unseal(body: bytes, *, intact: bool = False) -> tuple[str, BodyParts]:
    """Return the text and the read-only parts of a body after checking its digest, unless it is known to be intact."""
    _check_length(body)
    try:
        found = deserialize(body)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise WireFormatError(f"the body is not a valid safetensors file ({error})", fix=_DAMAGED) from None
    if len(found) > MAX_PARTS:
        raise WireFormatError(f"the body has {len(found)} parts", fix=f"Send at most {MAX_PARTS} in one body.")
    parts = BodyParts({name: _part(name, part) for name, part in found})
    digest, _, text = _metadata(body).partition(" ")
    if not intact and digest != _digest(text, parts):
        raise WireFormatError("the body does not match its own digest", fix=_DAMAGED)
    return text, parts


def unseal_known(body: memoryview) -> tuple[str, BodyParts]:
    """Return the text and the parts of a body that `unseal` has read before, as views and without checks."""
    start = header_bytes(body)
    header = json.loads(bytes(body[8:start]))
    text: str = header.pop("__metadata__")[_KEY].partition(" ")[2]
    parts = BodyParts()
    for name, part in header.items():
        begin, end = part["data_offsets"]
        flat: Array = np.frombuffer(body[start + begin : start + end], DTYPES[part["dtype"]])
        flat.flags.writeable = False
        parts[name] = flat.reshape(part["shape"])
    return text, parts


def header_bytes(body: bytes | memoryview) -> int:
    """Return the number of bytes of a body before its data."""
    return 8 + int.from_bytes(body[:8], "little")


def parse_json(text: str, what: str) -> Any:
    """Parse untrusted JSON strictly."""
    try:
        return parse(text)
    except SchemaError as error:
        raise WireFormatError(f"the {what} is not valid ({error.problem})", fix=_DAMAGED) from None


def _check_length(body: bytes) -> None:
    if len(body) < 8:
        raise WireFormatError(f"the body has only {len(body)} bytes, less than its length field", fix=_DAMAGED)
    length = header_bytes(body) - 8
    if length > MAX_HEADER_BYTES or length > len(body) - 8:
        raise WireFormatError(
            f"the header claims {length} bytes in a body of {len(body)}; at most {MAX_HEADER_BYTES} are allowed",
            fix="Check that this is a complete EdgeFL body.",
        )


def _metadata(body: bytes) -> str:
    """Return our metadata entry; the library has already checked that the header is valid JSON."""
    header = body[8 : header_bytes(body)].decode()
    if header.startswith(_BEGIN):
        entry, end = json.JSONDecoder().raw_decode(header, len(_BEGIN))
        if isinstance(entry, str) and header[end : end + 2] in ("},", "}}"):
            return entry
    raise WireFormatError(
        "the file has no EdgeFL metadata, or other metadata as well",
        fix="Only bodies written by EdgeFL can be read; plain safetensors weights need their own loader.",
    )


def _part(name: str, part: dict[str, Any]) -> Array:
    dtype = DTYPES.get(part["dtype"])
    if dtype is None:
        raise WireFormatError(f"part {name[:80]!r} has dtype {part['dtype']}", fix=f"Use one of {', '.join(DTYPES)}.")
    flat: Array = np.frombuffer(part["data"], dtype)
    flat.flags.writeable = False
    try:
        return flat.reshape(part["shape"])
    except (ValueError, OverflowError):
        shape = str(part["shape"])[:80]
        raise WireFormatError(f"part {name[:80]!r} claims the shape {shape}", fix=_DAMAGED) from None


def _digest(text: str, parts: Mapping[str, Array]) -> str:
    hasher = hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0")
    for name in sorted(parts, key=lambda name: name.encode("utf-8", "surrogatepass")):
        part = parts[name]
        label = f"{name}\0{_NAMES[part.dtype]}\0{','.join(map(str, part.shape))}\0"
        hasher.update(label.encode("utf-8", "surrogatepass"))
        hasher.update(_raw(part))
    return hasher.hexdigest()


def _raw(part: Array) -> memoryview:
    return part.reshape(-1).view(np.uint8).data

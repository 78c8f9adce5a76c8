"""Arrays, payloads and cases as JSON, and back: the notation of the golden files (README.md)."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.wire import Bits, Counts, Dense, Payload, Slice, Sparse

__all__ = [
    "FOLDER",
    "array_of",
    "cases_in",
    "cases_text",
    "flags_of",
    "flags_text",
    "from_base64",
    "json_of",
    "payload_json",
    "payload_of",
    "to_base64",
]

FOLDER = Path(__file__).parent
Array = npt.NDArray[Any]


def to_base64(data: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(data).decode()


def from_base64(text: str) -> bytes:
    """Return the bytes of a base64 text."""
    return base64.b64decode(text, validate=True)


def json_of(array: Array) -> dict[str, Any]:
    """Return an array as dtype, shape and base64 of its little-endian bytes in row-major order."""
    data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": to_base64(data)}


def array_of(entry: Mapping[str, Any]) -> Array:
    """Return the array of its JSON form."""
    dtype = np.dtype(entry["dtype"]).newbyteorder("<")
    return np.frombuffer(from_base64(entry["data"]), dtype).reshape(entry["shape"]).astype(entry["dtype"])


def flags_text(flags: Array) -> str:
    """Return booleans as a text of 0 and 1, the last axis fastest."""
    return "".join("1" if flag else "0" for flag in flags.reshape(-1))


def flags_of(text: str, shape: Iterable[int]) -> npt.NDArray[np.bool_]:
    """Return the booleans of a text of 0 and 1."""
    return np.array([letter == "1" for letter in text], np.bool_).reshape(tuple(shape))


def payload_json(payload: Payload) -> dict[str, Any]:
    """Return what a tensor of a body means, whichever its codec."""
    entry: dict[str, Any] = {"codec": payload.codec}
    match payload:
        case Dense():
            return entry | json_of(payload.array)
        case Bits():
            return entry | {"shape": list(payload.shape), "bits": flags_text(payload.to_bool())}
        case Counts():
            numbers = payload.to_array().reshape(-1).tolist()
            return entry | {"shape": list(payload.shape), "limit": payload.limit, "numbers": numbers}
        case Sparse():
            sparse = {"shape": list(payload.shape), "form": payload.form, "indices": payload.indices().tolist()}
            return entry | sparse | {"values": json_of(payload.values)}
        case Slice():
            kept = [
                None if axis is None else at.tolist() for axis, at in zip(payload.axes, payload.kept(), strict=True)
            ]
            return entry | {"shape": list(payload.shape), "kept": kept, "values": json_of(payload.values)}


def payload_of(entry: Mapping[str, Any]) -> Payload:
    """Return the tensor of its JSON form."""
    shape = tuple(entry["shape"])
    match entry["codec"]:
        case "dense":
            return Dense(array_of(entry))
        case "bits":
            return Bits.of(flags_of(entry["bits"], shape))
        case "counts":
            return Counts.of(np.array(entry["numbers"], np.int64).reshape(shape), entry["limit"])
        case "sparse":
            return Sparse.at(shape, np.array(entry["indices"], np.int64), array_of(entry["values"]))
    axes = tuple(None if kept is None else _marks(kept, size) for kept, size in zip(entry["kept"], shape, strict=True))
    return Slice(shape, axes, array_of(entry["values"]))


def _marks(kept: Sequence[int], size: int) -> npt.NDArray[np.uint8]:
    return np.packbits(np.isin(np.arange(size), kept), bitorder="little")


def cases_text(cases: Iterable[Mapping[str, Any]], **more: Any) -> str:
    """Return the text of a golden file: what holds for all cases, and the cases, a line each."""
    lines = [f" {json.dumps(name)}:{_compact(value)},\n" for name, value in more.items()]
    return "{\n" + "".join(lines) + ' "cases":[\n  ' + ",\n  ".join(_compact(case) for case in cases) + "\n ]\n}\n"


def cases_in(file: str) -> list[dict[str, Any]]:
    """Read the cases of a golden file."""
    cases: list[dict[str, Any]] = json.loads((FOLDER / file).read_text(encoding="utf-8"))["cases"]
    return cases


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)

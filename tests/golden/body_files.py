"""codecs.json: tensors in, bytes out; bad_bodies.json: what must be refused; packed.json: compressed bodies."""

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.values import digest_of
from edgefl.wire import Bits, Body, BodyKind, Counts, Dense, Payload, Slice, Sparse, encode
from edgefl.wire.byte_shuffle import MOST_BYTES, group, pack
from edgefl.wire.envelope import seal
from tests.golden.encoding import FOLDER, cases_text, payload_json, to_base64

__all__ = ["bad_bodies", "codecs", "packed"]

Floats = npt.NDArray[np.float32]


def ramp(*shape: int) -> Floats:
    """Return i / 8 - 1, which is exact in float32."""
    return (np.arange(int(np.prod(shape)), dtype=np.float32) / np.float32(8) - np.float32(1)).reshape(shape)


def codecs() -> str:
    """Return the text of codecs.json."""
    return cases_text(_codec_case(name, body) for name, body in _bodies().items())


def _codec_case(name: str, body: Body) -> dict[str, Any]:
    data = encode(body)
    return {
        "name": name,
        "kind": body.kind.value,
        "seed": None if body.seed is None else str(body.seed),
        "about": dict(body.about),
        "tensors": [{"name": tensor, **payload_json(payload)} for tensor, payload in body.tensors.items()],
        "header": data[8 : 8 + int.from_bytes(data[:8], "little")].decode(),
        "body": to_base64(data),
        "digest": digest_of(data),
    }


def _bodies() -> dict[str, Body]:
    weights, update = BodyKind.WEIGHTS, BodyKind.UPDATE
    third = np.arange(60).reshape(3, 20) % 3 == 0
    rows, columns = (np.packbits(flags, bitorder="little") for flags in ([1, 0, 1, 1], [0, 1, 1]))
    scalars: dict[str, Payload] = {
        "f64": Dense(np.array(0.1, np.float64)),
        "f32": Dense(np.array([-0.0, 1e-45, 3.4e38, 0.1], np.float32)),
        "f16": Dense(np.array([[0.5, -65504]], np.float16)),
        "i64": Dense(np.array(-(2**63), np.int64)),
        "i32": Dense(np.array([2**31 - 1], np.int32)),
        "u8": Dense(np.array([0, 255, 7], np.uint8)),
    }
    names = [
        "z",
        "a",
        "A",
        "a.b",
        "a/b",
        'quote"',
        "back\\slash",
        "é",
        "ﬀ",
        "🐝",
        "__proto__",
        "constructor",
        "toString",
    ]
    gaps = np.array([0, 127, 256, 16_640, 2_113_792, 270_549_248, 2_147_483_646])
    return {
        "nothing": Body(weights, {}),
        "dtypes: parts are ordered by dtype, then by name": Body(weights, scalars),
        "names: sorted by UTF-8, escaped as JSON, objects without a prototype": Body(
            weights, {name: Dense(ramp(1) + i) for i, name in enumerate(names)}
        ),
        "about: texts in ASCII escapes; a seed beyond 2^63": Body(
            update,
            {},
            seed=2**64 - 1,
            about={"note": 'größer "🐝" \\ / \n\t\x7f', "b": "", "__proto__": "x", "ﬀ": "y", "🐝": "z"},
        ),
        "seed 0": Body(update, {"w": Dense(ramp(2))}, seed=0),
        "empty axes": Body(
            weights, {"none": Dense(np.zeros((2, 0, 3), np.float32)), "bits": Bits.of(np.zeros((0,), bool))}
        ),
        "bits": Body(
            update, {"w": Bits.of(third), "eight": Bits.of(np.ones(8, bool)), "one": Bits.of(np.ones((), bool))}
        ),
        "bits and dense": Body(update, {"w": Bits.of(third), "b": Dense(ramp(3))}, seed=12345678901234567890),
        "sparse bitmap": Body(update, {"w": Sparse.where(ramp(3, 20), third)}),
        "sparse deltas, gaps of one to five bytes": Body(update, {"w": Sparse.at((2**31 - 1,), gaps, ramp(7))}),
        "sparse: equal size is a bitmap": Body(update, {"w": Sparse.at((16,), np.array([3, 9]), ramp(2))}),
        "sparse: one byte less is deltas": Body(update, {"w": Sparse.at((17,), np.array([3, 9]), ramp(2))}),
        "sparse: nothing held": Body(update, {"w": Sparse.at((9,), np.zeros(0, np.int64), ramp(0))}),
        "slice, shared axes": Body(
            update, {"w": Slice((4, 3, 2), (rows, columns, None), ramp(3, 2, 2)), "b": Slice((4,), (rows,), ramp(3))}
        ),
        "counts": Body(update, {"w": Counts.of((np.arange(21) % 6).reshape(3, 7), 5)}),
        "counts to 65535": Body(update, {"w": Counts.of(np.array([0, 1, 256, 65_535]), 65_535)}),
    }


def bad_bodies() -> str:
    """Return the text of bad_bodies.json."""
    return cases_text({"name": name, "reason": reason, "body": to_base64(body)} for name, reason, body in _bad())


def _bad() -> list[tuple[str, str, bytes]]:
    good = encode(Body(BodyKind.WEIGHTS, {"a": Dense(ramp(2)), "b": Dense(ramp(2) + 1)}))
    flipped = bytearray(good)
    flipped[-1] ^= 1
    length = int.from_bytes(good[:8], "little")
    header = good[8 : 8 + length]
    swapped = (
        good[:8] + header.replace(b'"a"', b'"?"').replace(b'"b"', b'"a"').replace(b'"?"', b'"b"') + good[8 + length :]
    )
    spaced = header.rstrip().replace(b'{"__metadata__"', b'{ "__metadata__"')
    return [
        ("no bytes", "length", b""),
        ("seven bytes", "length", b"1234567"),
        ("header longer than the body", "length", (10**6).to_bytes(8, "little") + b"{}"),
        ("header of 2^63 bytes", "length", (2**63).to_bytes(8, "little") + b"{}"),
        ("cut off", "safetensors", good[:-1]),
        ("a byte too many", "safetensors", good + b"\0"),
        ("header that is not JSON", "safetensors", _file(b"{nonsense")),
        (
            "plain safetensors without our entry",
            "metadata",
            _file(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"\0\0\0\0"),
        ),
        ("a space before the entry", "metadata", _file(spaced, good[8 + length :])),
        ("a flipped bit", "digest", bytes(flipped)),
        ("two tensors exchanged", "digest", swapped),
        *((name, "text", seal(text, {})) for name, text in _bad_texts().items()),
        *((name, reason, _sealed(entry, parts)) for name, reason, entry, parts in _bad_entries()),
        ("dtype BF16", "dtype", _bf16()),
        (
            "a tensor that is not finite",
            "not finite",
            seal('{"kind":"weights","wire":1}', {"a": np.array([np.nan], np.float32)}),
        ),
        (
            "an infinite tensor",
            "not finite",
            seal('{"kind":"weights","wire":1}', {"a": np.array([1, -np.inf], np.float32)}),
        ),
    ]


def _bad_texts() -> dict[str, str]:
    return {
        "wire version 2": '{"kind":"weights","wire":2}',
        "no wire version": '{"kind":"weights"}',
        "wire version as text": '{"kind":"weights","wire":"1"}',
        "unknown kind": '{"kind":"gradient","wire":1}',
        "unknown field": '{"kind":"weights","wire":1,"more":1}',
        "a key twice": '{"kind":"weights","kind":"weights","wire":1}',
        "seed as a number": '{"kind":"update","seed":5,"wire":1}',
        "seed with a leading zero": '{"kind":"update","seed":"05","wire":1}',
        "seed of 2^64": '{"kind":"update","seed":"18446744073709551616","wire":1}',
        "about with a number": '{"about":{"a":1},"kind":"update","wire":1}',
        "not an object": "[]",
    }


def _bad_entries() -> list[tuple[str, str, list[Any], dict[str, Any]]]:
    packed = np.array([7, 1], np.uint8)
    at = np.array([3], np.uint8)
    value = ramp(1)
    return [
        ("unknown codec", "codec", ["zip", [9]], {"w": packed}),
        ("bits without their part", "codec", ["bits", [9]], {}),
        ("bits of another length", "codec", ["bits", [17]], {"w": packed}),
        ("bits after the last", "codec", ["bits", [9]], {"w": np.array([7, 3], np.uint8)}),
        ("bits of another dtype", "codec", ["bits", [9]], {"w": packed.astype(np.int32)}),
        ("a size below zero", "codec", ["bits", [-9]], {"w": packed}),
        ("a size that is no whole number", "codec", ["bits", [9.0]], {"w": packed}),
        ("too many entries", "codec", ["deltas", [2**31]], {"w": value, "w#at": at}),
        ("17 axes", "codec", ["bits", [1] * 17], {"w": packed[:1]}),
        ("positions missing", "codec", ["deltas", [99]], {"w": value}),
        ("more positions than values", "codec", ["deltas", [99]], {"w": value, "w#at": np.array([3, 4], np.uint8)}),
        ("a position beyond the end", "codec", ["deltas", [3]], {"w": value, "w#at": at}),
        ("a gap cut off", "codec", ["deltas", [999]], {"w": value, "w#at": np.array([0x83], np.uint8)}),
        (
            "a gap in more bytes than needed",
            "codec",
            ["deltas", [999]],
            {"w": value, "w#at": np.array([0x83, 0], np.uint8)},
        ),
        ("a bitmap of another count", "codec", ["bitmap", [8]], {"w": value, "w#at": np.array([3], np.uint8)}),
        ("a count above its limit", "codec", ["counts", [2], 5], {"w": np.array([2, 3, 2], np.uint8)}),
        ("a limit of 0", "codec", ["counts", [2], 0], {"w": np.array([2], np.uint8)}),
        ("an axis that is missing", "codec", ["slice", [4], [0]], {"w": ramp(3)}),
        (
            "an axis that keeps another number",
            "codec",
            ["slice", [4], [0]],
            {"w": ramp(3), "#0": np.array([3], np.uint8)},
        ),
    ]


def _sealed(entry: list[Any], parts: Mapping[str, npt.NDArray[Any]]) -> bytes:
    text = {"codecs": {"w": entry}, "kind": "update", "wire": 1}
    return seal(json.dumps(text, sort_keys=True, separators=(",", ":")), parts)


def _file(header: bytes, data: bytes = b"") -> bytes:
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data


def _bf16() -> bytes:
    header = (
        b'{"__metadata__":{"edgefl":"' + b"0" * 64 + b' {}"},"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    )
    return _file(header, b"\0\0")


def packed() -> str:
    """Return the text of packed.json."""
    floats = (np.arange(300, dtype=np.float32) - np.float32(150)) * np.float32(0.001)
    bodies = {
        "floats": encode(Body(BodyKind.WEIGHTS, {"w": Dense(floats)})),
        "no data": encode(Body(BodyKind.WEIGHTS, {})),
        "three bytes more than whole words": encode(Body(BodyKind.UPDATE, {"w": Bits.of(np.arange(88) % 2 == 0)})),
    }
    known = _known()
    cases = [_packed_case(name, body, known.get(name, {})) for name, body in bodies.items()]
    return cases_text(cases, bad=_badly_packed(bodies["floats"]))


def _packed_case(name: str, body: bytes, known: Mapping[str, str]) -> dict[str, Any]:
    """Return a case. Compressors differ between versions of zlib, so compressed bytes that still hold are kept."""
    grouped = group(body)
    return {
        "name": name,
        "body": to_base64(body),
        "grouped": to_base64(grouped),
        "stored": to_base64(_stored(grouped)),
        "edgefl-planes, gzip": _kept(known.get("edgefl-planes, gzip"), grouped, pack(body)),
        "gzip": _kept(known.get("gzip"), body, zlib.compress(body, 9, wbits=31)),
    }


def _kept(text: str | None, content: bytes, anew: bytes) -> str:
    if text is not None and zlib.decompress(base64.b64decode(text), wbits=31) == content:
        return text
    return to_base64(anew)


def _known() -> dict[str, dict[str, str]]:
    path = FOLDER / "packed.json"
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"] if path.exists() else []
    return {case["name"]: case for case in cases}


def _stored(content: bytes) -> bytes:
    """Return gzip without compression, which is the same bytes in every language."""
    block = struct.pack("<BHH", 1, len(content), len(content) ^ 0xFFFF) + content
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block + struct.pack("<II", zlib.crc32(content), len(content))


def _badly_packed(body: bytes) -> list[dict[str, str]]:
    good = _stored(group(body))
    wrong_sum = bytearray(good)
    wrong_sum[-5] ^= 1
    return [
        {"name": "cut off", "packed": to_base64(good[:-1])},
        {"name": "more after the end", "packed": to_base64(good + b"\0")},
        {"name": "wrong checksum", "packed": to_base64(bytes(wrong_sum))},
        {"name": "not gzip", "packed": to_base64(body[:100])},
        {"name": f"more than {MOST_BYTES} bytes", "packed": _bomb()},
    ]


def _bomb() -> str:
    known = {case["name"]: case["packed"] for case in _known_bad()}
    name = f"more than {MOST_BYTES} bytes"
    return _kept(known.get(name), bytes(MOST_BYTES + 1), zlib.compress(bytes(MOST_BYTES + 1), 9, wbits=31))


def _known_bad() -> list[dict[str, str]]:
    path = FOLDER / "packed.json"
    found: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))["bad"] if path.exists() else []
    return found

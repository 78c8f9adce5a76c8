"""This EdgeFL reads and writes the bodies of the golden files, and refuses those that are wrong."""

import gzip
import hashlib
import json
from typing import Any

import numpy as np
import pytest

from edgefl.errors import WireFormatError
from edgefl.wire import Body, BodyKind, byte_shuffle, decode, encode
from tests.golden.encoding import FOLDER, array_of, cases_in, from_base64, payload_json, payload_of

CODECS = cases_in("codecs.json")
BAD = cases_in("bad_bodies.json")
PACKED = json.loads((FOLDER / "packed.json").read_text(encoding="utf-8"))
SAID = {
    "length": "bytes",
    "safetensors": "not a valid safetensors file",
    "metadata": "no EdgeFL metadata",
    "digest": "does not match its own digest",
    "text": "body|description|seed",
    "codec": "tensor 'w'",
    "dtype": "dtype BF16",
    "not finite": "not finite",
}


def named(case: dict[str, Any]) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", CODECS, ids=named)
def test_tensors_become_exactly_these_bytes(case: dict[str, Any]) -> None:
    tensors = {entry["name"]: payload_of(entry) for entry in reversed(case["tensors"])}
    seed = None if case["seed"] is None else int(case["seed"])
    about = dict(reversed(case["about"].items()))
    data = encode(Body(BodyKind(case["kind"]), tensors, seed=seed, about=about))
    assert data == from_base64(case["body"])
    assert case["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
    assert data[8 : 8 + int.from_bytes(data[:8], "little")].decode() == case["header"]


@pytest.mark.parametrize("case", CODECS, ids=named)
def test_bytes_become_these_tensors(case: dict[str, Any]) -> None:
    body = decode(from_base64(case["body"]))
    expected = {entry["name"]: {key: entry[key] for key in entry if key != "name"} for entry in case["tensors"]}
    assert {name: payload_json(payload) for name, payload in body.tensors.items()} == expected
    assert (body.kind, dict(body.about)) == (case["kind"], case["about"])
    assert (None if body.seed is None else str(body.seed)) == case["seed"]


@pytest.mark.parametrize("case", BAD, ids=named)
def test_a_bad_body_is_refused_for_its_reason(case: dict[str, Any]) -> None:
    with pytest.raises(WireFormatError, match=SAID[case["reason"]]):
        decode(from_base64(case["body"]))


@pytest.mark.parametrize("case", PACKED["cases"], ids=named)
def test_packed_bodies_are_grouped_and_unpacked(case: dict[str, Any]) -> None:
    body, grouped = from_base64(case["body"]), from_base64(case["grouped"])
    assert byte_shuffle.group(body) == grouped
    for field in ("stored", "edgefl-planes, gzip"):
        assert byte_shuffle.unpack(from_base64(case[field])) == body
    assert gzip.decompress(from_base64(case["gzip"])) == body


@pytest.mark.parametrize("case", PACKED["bad"], ids=named)
def test_what_is_badly_packed_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(WireFormatError):
        byte_shuffle.unpack(from_base64(case["packed"]))


def case_named(begin: str) -> dict[str, Any]:
    return next(case for case in CODECS if case["name"].startswith(begin))


def test_values_computed_by_hand() -> None:
    (deltas,) = case_named("sparse: one byte less")["tensors"]
    assert deltas["indices"] == [3, 9]
    body = from_base64(case_named("sparse: one byte less")["body"])
    assert body.endswith(bytes([3, 5]))  # 3 entries skipped, then 4 to 8
    assert np.array_equal(array_of(deltas["values"]), np.array([-1, -0.875], np.float32))
    # 0, 1, 2, 3, 4, 5, 0, ...: the lowest bits of the first eight are 0 1 0 1 0 1 0 1, from the lowest bit up.
    assert from_base64(case_named("counts")["body"])[-9] == 0b10101010
    # A gap of 126 is one byte, of 128 two: 0x80 0x01.
    gaps = from_base64(case_named("sparse deltas")["body"])
    at = gaps.index(bytes([0, 126, 0x80, 0x01]))
    assert gaps[at:] == bytes.fromhex("00 7e 8001 ff7f ffff7f ffffff7f fdfdfefe06".replace(" ", ""))
    header = case_named("nothing")["header"]
    text = '{"kind":"weights","wire":1}'
    assert (
        header
        == '{"__metadata__":{"edgefl":'
        + json.dumps(hashlib.sha256(text.encode() + b"\0").hexdigest() + " " + text)
        + "}}"
    )


def test_words_grouped_by_hand() -> None:
    (case,) = (case for case in PACKED["cases"] if case["name"].startswith("three"))
    body, grouped = from_base64(case["body"]), from_base64(case["grouped"])
    start = 8 + int.from_bytes(body[:8], "little")
    data = body[start:]
    assert len(data) == 11
    order = [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10]
    assert grouped == body[:start] + bytes(data[at] for at in order)

"""Bodies grouped by planes: what goes in comes out, and what was not packed soundly is refused."""

import contextlib
import gzip
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgefl.errors import WireFormatError
from edgefl.wire import Body, BodyKind, Dense, encode
from edgefl.wire.byte_shuffle import MOST_BYTES, group, pack, ungroup, unpack
from tests.wire.bodies import bodies

WEIGHTS = np.random.default_rng(0).normal(0, 0.05, 100_000).astype(np.float32)


def body_of(array: np.ndarray[Any, Any]) -> bytes:
    return encode(Body(BodyKind.WEIGHTS, {"w": Dense(array)}))


@given(st.binary(max_size=300))
@example(b"")
@example(bytes(7))
@example(bytes(8))
@example(b"\xff" * 30)
@example((5).to_bytes(8, "little") + bytes(range(5)))
def test_any_bytes_come_back(data: bytes) -> None:
    assert ungroup(group(data)) == data
    assert unpack(pack(data)) == data


@given(st.binary(max_size=40), st.binary(max_size=200))
def test_any_header_and_any_data_come_back(header: bytes, data: bytes) -> None:
    body = len(header).to_bytes(8, "little") + header + data
    assert group(body)[: 8 + len(header)] == body[: 8 + len(header)]
    assert ungroup(group(body)) == body
    assert unpack(pack(body)) == body


@settings(deadline=None)
@given(bodies())
def test_bodies_of_every_codec_come_back(body: Body) -> None:
    data = encode(body)
    assert unpack(pack(data)) == data


def test_the_bytes_of_words_are_grouped_and_a_rest_stays_behind() -> None:
    header = (2).to_bytes(8, "little") + b"{}"
    assert group(header + b"abcdABCD01234567xy") == header + b"aA04" + b"bB15" + b"cC26" + b"dD37" + b"xy"


def test_a_header_that_claims_more_than_there_is_leaves_no_words() -> None:
    data = (100).to_bytes(8, "little") + b"abcdefgh"
    assert group(data) == data


@pytest.mark.parametrize("count", [1, 2410, 100_000])
def test_any_reader_of_gzip_finds_the_grouped_bytes(count: int) -> None:
    body = body_of(WEIGHTS[:count])
    assert gzip.decompress(pack(body)) == group(body)
    assert unpack(gzip.compress(group(body))) == body
    assert pack(body) == pack(body)


@pytest.mark.parametrize("count", [2410, 100_000])
def test_floats_lose_a_sixth(count: int) -> None:
    body = body_of(WEIGHTS[:count])
    assert len(pack(body)) < 0.85 * len(body)
    assert len(pack(body)) < 0.93 * len(gzip.compress(body))


def test_noise_grows_by_less_than_a_thousandth() -> None:
    body = body_of(np.frombuffer(np.random.default_rng(1).bytes(400_000), np.uint8))
    assert len(pack(body)) < 1.001 * len(body)


def test_a_plane_whose_sample_looks_like_noise_comes_back() -> None:
    data = np.random.default_rng(2).integers(0, 256, (100_000, 4), np.uint8)
    data[::3] = 0
    body = body_of(data.reshape(-1))
    assert unpack(pack(body)) == body


@given(st.data())
def test_what_is_cut_short_is_refused(data: st.DataObject) -> None:
    packed = pack(body_of(WEIGHTS[:50]))
    with pytest.raises(WireFormatError):
        unpack(packed[: data.draw(st.integers(0, len(packed) - 1))])


@given(st.data())
def test_a_flipped_bit_is_refused_or_means_nothing(data: st.DataObject) -> None:
    body = body_of(WEIGHTS[:50])
    packed = bytearray(pack(body))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(WireFormatError):
        assert unpack(bytes(packed)) == body  # gzip's head has bits that nobody reads


@pytest.mark.parametrize("more", [b"more", pack(b"another")])
def test_what_follows_the_end_is_refused(more: bytes) -> None:
    with pytest.raises(WireFormatError, match="followed"):
        unpack(pack(b"one") + more)


def test_what_expands_beyond_the_limit_is_refused() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    with pytest.raises(WireFormatError, match=f"{MOST_BYTES:,}"):
        unpack(bomb)
    body = body_of(WEIGHTS[:100])
    assert unpack(pack(body), len(body)) == body
    with pytest.raises(WireFormatError, match="more than"):
        unpack(pack(body), len(body) - 1)

"""What the agent's bodies look like on their way, and how it unpacks what it gets."""

import gzip
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runtime.agent.compression import accepts_byte_shuffle, compressed, decompressed
from edgefl.errors import WireFormatError
from edgefl.wire import encode_weights
from edgefl.wire.byte_shuffle import CODINGS as PLANES
from edgefl.wire.byte_shuffle import MOST_BYTES, pack, unpack

BITS = np.packbits(np.random.default_rng(0).random(80_000) < 0.2).tobytes()
FLOATS = encode_weights({"w": np.random.default_rng(0).normal(0, 0.1, 3000).astype(np.float32)}, {})
LARGE_FLOATS = encode_weights({"w": np.random.default_rng(0).normal(0, 0.1, 300_000).astype(np.float32)}, {})


@pytest.mark.parametrize("byte_shuffled", [False, True])
def test_a_body_that_packs_well_is_packed_always_the_same_way(byte_shuffled: bool) -> None:
    body, coding = compressed(BITS, byte_shuffled=byte_shuffled)
    assert (body, coding) == compressed(BITS, byte_shuffled=byte_shuffled)
    assert len(body) < 0.8 * len(BITS)
    assert coding == "gzip"
    assert gzip.decompress(body) == BITS


@pytest.mark.parametrize("body", [b"", b"short", np.random.default_rng(0).bytes(10_000), bytes(MOST_BYTES + 1)])
@pytest.mark.parametrize("byte_shuffled", [False, True])
def test_a_body_that_does_not_or_is_large_goes_as_it_is(body: bytes, byte_shuffled: bool) -> None:
    assert compressed(body, byte_shuffled=byte_shuffled) == (body, "")


@pytest.mark.parametrize("floats", [FLOATS, LARGE_FLOATS])
def test_floats_are_packed_by_planes_where_these_are_taken(floats: bytes) -> None:
    body, coding = compressed(floats, byte_shuffled=True)
    assert coding == PLANES
    assert len(body) < 0.86 * len(floats)
    assert unpack(body) == floats
    assert compressed(floats)[1] != PLANES


def test_planes_are_taken_with_gzip_alone() -> None:
    assert accepts_byte_shuffle(PLANES)
    assert accepts_byte_shuffle("identity, GZIP , edgefl-planes")
    for other in (None, "", "gzip", "edgefl-planes", "edgefl-planesgzip"):
        assert not accepts_byte_shuffle(other)


@given(
    st.binary(min_size=1, max_size=300), st.integers(1, 50), st.sampled_from(["", "identity", "gzip", "x-gzip", PLANES])
)
def test_a_reply_is_unpacked_whatever_its_pieces(data: bytes, step: int, coding: str) -> None:
    sent = pack(data) if coding == PLANES else gzip.compress(data) if "gzip" in coding else data
    pieces = [sent[start : start + step] for start in range(0, len(sent), step)]
    assert b"".join(decompressed(pieces, coding)) == data


def test_a_large_reply_comes_in_pieces_and_none_is_left_out() -> None:
    data = np.random.default_rng(0).integers(0, 3, MOST_BYTES, np.uint8).tobytes()
    for content in (data, bytes(MOST_BYTES)):
        pieces = list(decompressed([gzip.compress(content)], "gzip"))
        assert b"".join(pieces) == content
        assert max(map(len, pieces)) <= 2**18


@pytest.mark.parametrize("coding", ["gzip", PLANES])
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"no gzip at all",
        pack(FLOATS)[:-1],
        pack(FLOATS) + b"x",
        zlib.compress(FLOATS),
        gzip.compress(bytes(10**8)),
    ],
    ids=["empty", "text", "cut short", "longer", "zlib", "bomb"],
)
def test_a_reply_that_cannot_be_unpacked_is_refused(sent: bytes, coding: str) -> None:
    with pytest.raises(WireFormatError):
        list(decompressed([sent[:100], sent[100:]], coding))


def test_a_packed_reply_that_does_not_end_is_refused() -> None:
    with pytest.raises(WireFormatError, match="more than"):
        list(decompressed((bytes(2**20) for _ in iter(int, 1)), PLANES))


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "gzip, edgefl-planes", "edgefl-planes"])
def test_a_reply_packed_as_nobody_asked_is_refused(coding: str) -> None:
    with pytest.raises(WireFormatError, match="compressed with"):
        list(decompressed([b"abc"], coding))

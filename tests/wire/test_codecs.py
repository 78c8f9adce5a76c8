"""Every codec: what goes in comes out, and what breaks its rules is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgefl.errors import WireFormatError
from edgefl.masks import gather, random_channels
from edgefl.wire import Bits, Body, BodyKind, Counts, Dense, Slice, Sparse, decode, encode, measure
from edgefl.wire.envelope import seal
from examples.networks import cnn4
from tests.random_models import numbered
from tests.wire.bodies import NAMES, PAYLOADS, bodies, everything


@pytest.mark.parametrize("codec", PAYLOADS)
def test_encode_then_decode_is_the_identity(codec: str) -> None:
    @settings(deadline=None)
    @given(bodies(PAYLOADS[codec]))
    def check(body: Body) -> None:
        assert everything(decode(encode(body))) == everything(body)

    check()


@settings(deadline=None)
@given(bodies())
def test_mixed_bodies_come_back_and_encode_to_the_same_bytes(body: Body) -> None:
    data = encode(body)
    again = decode(data)
    assert everything(again) == everything(body)
    assert encode(again) == data


@given(arrays.arrays(np.bool_, arrays.array_shapes(max_side=12)))
def test_bits_hold_booleans(flags: Any) -> None:
    assert np.array_equal(Bits.of(flags).to_bool(), flags)
    assert Bits.of(flags).ones() == flags.sum()


@given(st.integers(1, 300).flatmap(lambda n: arrays.arrays(np.int64, n, elements=st.integers(0, 5))))
def test_counts_hold_numbers_up_to_their_limit(numbers: Any) -> None:
    for limit in (5, 6, 7, 300):
        assert np.array_equal(Counts.of(numbers, limit).to_array(), numbers)


@given(st.sets(st.integers(0, 2**31 - 2), max_size=200))
def test_positions_of_a_huge_tensor_come_back(chosen: set[int]) -> None:
    indices = np.array(sorted(chosen | {0}), np.int64)
    payload = Sparse.at((2**31 - 1,), indices, np.ones(indices.size, np.float32))
    assert payload.form == "deltas"
    assert np.array_equal(payload.indices(), indices)
    assert everything(decode(encode(Body(BodyKind.UPDATE, {"x": payload})))) == everything(
        Body(BodyKind.UPDATE, {"x": payload})
    )


def test_deltas_by_hand() -> None:
    indices = np.array([3, 4, 4 + 128, 4 + 128 + 129, 4 + 128 + 129 + 1 + 2**14])
    payload = Sparse.at((100_000,), indices, np.arange(5, dtype=np.float32))
    # Skipped: 3, then 0, 127, 128 (two bytes: 0 with the top bit, then 1), 2^14 (three bytes).
    assert payload.packed.tolist() == [3, 0, 127, 0x80, 0x01, 0x80, 0x80, 0x01]


def test_long_positions_are_read_in_pieces_exactly() -> None:
    generator = np.random.default_rng(0)
    for density in (0.0001, 0.003, 0.1):
        indices = np.flatnonzero(generator.random(1_000_000) < density)
        payload = Sparse.at((1_000_000,), indices, np.ones(indices.size, np.float32))
        assert payload.form == "deltas"
        assert np.array_equal(payload.indices(), indices)
        assert decode(encode(Body(BodyKind.UPDATE, {"x": payload}))).tensors["x"].shape == (1_000_000,)


def test_positions_take_the_smaller_form() -> None:
    generator = np.random.default_rng(0)
    for density, form in ((0.01, "deltas"), (0.1, "deltas"), (0.2, "bitmap"), (0.9, "bitmap")):
        flags = generator.random(100_000) < density
        payload = Sparse.where(flags.astype(np.float32), flags)
        assert payload.form == form
        assert payload.packed.size <= 12_500
        assert np.array_equal(payload.to_dense(), flags)


def test_a_slice_of_a_mask_carries_its_places() -> None:
    mask = random_channels(cnn4(), 0.5, np.random.default_rng(0))
    weights = numbered(mask.graph)
    part = gather(mask, weights)
    body = Body(BodyKind.UPDATE, {name: Slice.of(mask, name, array) for name, array in part.items()})
    data = encode(body)
    for name, payload in decode(data).tensors.items():
        assert isinstance(payload, Slice)
        expected = np.zeros_like(weights[name])
        expected[mask.index(name)] = part[name]
        assert np.array_equal(payload.to_dense(), expected)
    # Thirteen tensors share the bitmaps of four groups, of 32, 64, 128 and 256 channels.
    assert measure(data).tensor_bytes["#"] == (32 + 64 + 128 + 256) // 8


def test_values_that_are_not_finite_are_refused_on_both_sides() -> None:
    for bad in (np.nan, np.inf, -np.inf):
        array = np.ones(3000, np.float32)
        array[2999] = bad
        for payload in (Dense(array), Sparse.where(array), Slice((3000,), (None,), array)):
            with pytest.raises(WireFormatError, match=r"not finite.*learning rate"):
                encode(Body(BodyKind.UPDATE, {"x": payload}))
        with pytest.raises(WireFormatError, match="not finite"):
            decode(seal('{"kind":"update","wire":1}', {"x": array}))


def test_numbers_above_their_limit_are_refused() -> None:
    with pytest.raises(WireFormatError, match="from 0 to 3"):
        Counts.of(np.array([4]), 3)
    with pytest.raises(WireFormatError, match="from 0 to 3"):
        Counts.of(np.array([-1]), 3)
    with pytest.raises(WireFormatError, match="limit of counts is 65536"):
        Counts.of(np.array([1]), 65536)
    packed = Counts.of(np.array([6, 1, 0]), 7).packed
    with pytest.raises(WireFormatError, match="above its limit 5"):
        decode(seal('{"codecs":{"x":["counts",[3],5]},"kind":"update","wire":1}', {"x": packed}))


@pytest.mark.parametrize(
    ("codecs", "parts", "message"),
    [
        ('{"x":["bits",[9]]}', {"x": [1]}, "1 bytes do not hold 9 bits"),
        ('{"x":["bits",[7]]}', {"x": [0x80]}, "after the last one are not zero"),
        ('{"x":["bits"]}', {"x": [1]}, "codec, shape"),
        ('{"x":["bits",[8,"8"]]}', {"x": [1]}, "size that is not from 0"),
        ('{"x":["bits",[true]]}', {"x": [1]}, "size that is not from 0"),
        ('{"x":["bits",[-8]]}', {"x": [1]}, "size that is not from 0"),
        ('{"x":["bits",[8.0]]}', {"x": [1]}, "size that is not from 0"),
        ('{"x":["bits",[2147483648]]}', {"x": [1]}, "size that is not from 0"),
        ('{"x":["bits",[65536,65536]]}', {"x": [1]}, "more than 2147483647 entries"),
        ('{"x":["bits",[0,2147483647,2147483647]]}', {"x": []}, "more than 2147483647 entries"),
        ('{"x":["bits",[18446744073709551616]]}', {"x": [1]}, "size that is not from 0"),
        ('{"x":["bits",[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]]}', {"x": [1]}, "at most 16"),
        ('{"x":["bits",[8]]}', {}, "part 'x' is missing"),
        ('{"x":["zip",[8]]}', {"x": [1]}, "unknown codec 'zip'"),
        ('{"x":[["bits"],[8]]}', {"x": [1]}, "unknown codec"),
        ('{"x":"bits"}', {"x": [1]}, "unknown codec"),
        ('{"x":["counts",[8],0]}', {"x": [1]}, "limit up to"),
        ('{"x":["counts",[8],70000]}', {"x": [1]}, "limit up to"),
        ('{"x":["counts",[8],3]}', {"x": [1]}, "1 bytes do not hold 2 planes"),
        ('{"x":["counts",[7],3]}', {"x": [1, 0x80]}, "after the last one"),
        ('{"x":["deltas",[8]]}', {"x": [1]}, "part 'x#at' is missing"),
        ('{"x":["deltas",[8]]}', {"x": [7], "x#at": [8]}, "beyond its 8 entries"),
        ('{"x":["deltas",[300]]}', {"x": [7], "x#at": [0x80]}, "is cut off"),
        ('{"x":["deltas",[300]]}', {"x": [7], "x#at": [0x81, 0]}, "not in its shortest form"),
        ('{"x":["deltas",[300]]}', {"x": [7], "x#at": [255, 255, 255, 255, 255, 1]}, "not in its shortest form"),
        ('{"x":["deltas",[300]]}', {"x": [7], "x#at": [255] * 900 + [1]}, "not in its shortest form"),
        ('{"x":["deltas",[300]]}', {"x": [7, 7], "x#at": [1]}, "1 positions for 2 values"),
        ('{"x":["deltas",[300],1]}', {"x": [7], "x#at": [1]}, "form, shape"),
        ('{"x":["bitmap",[8]]}', {"x": [7], "x#at": [3]}, "2 positions for 1 values"),
        ('{"x":["bitmap",[9]]}', {"x": [7], "x#at": [3]}, "1 bytes do not hold 9 bits"),
        ('{"x":["slice",[8],[0]]}', {"x": [7]}, "axis 0 is missing"),
        ('{"x":["slice",[8],["0"]]}', {"x": [7], "#0": [1]}, "axis 0 is missing"),
        ('{"x":["slice",[8],[0]]}', {"x": [7], "#0": [3]}, "values for 1 indices, but keeps another number"),
        ('{"x":["slice",[8],[]]}', {"x": [7]}, "0 axes, and values with 1"),
        ('{"x":["slice",[8]]}', {"x": [7]}, "codec, shape, axes"),
        ('{"x":["slice",[9],[null]]}', {"x": [7]}, "values for 1 indices, but keeps another number"),
        ('{"x":["slice",[1],[null]]}', {"x": [7], "#0": [3]}, "is not a valid tensor name"),
        ("{}", {"x#at": [7]}, "'x#at' is not a valid tensor name"),
        ('{"x#y":["bits",[8]]}', {"x#y": [7]}, "'x#y' is not a valid tensor name"),
        ("[]", {}, "'codecs' of the body"),
    ],
)
def test_what_breaks_a_codecs_rules_is_refused(codecs: str, parts: dict[str, list[int]], message: str) -> None:
    packed = {name: np.array(part, np.uint8) for name, part in parts.items()}
    with pytest.raises(WireFormatError, match=message):
        decode(seal(f'{{"codecs":{codecs},"kind":"update","wire":1}}', packed))


def test_indices_that_do_not_ascend_are_refused() -> None:
    for indices in ([2, 1], [1, 1], [-1, 2], [1, 10]):
        with pytest.raises(WireFormatError, match="are not ascending"):
            Sparse.at((10,), np.array(indices), np.ones(2))
    with pytest.raises(WireFormatError, match="one flat index"):
        Sparse.at((10,), np.array([1]), np.ones(2))


def test_payloads_do_not_change_with_the_callers_arrays() -> None:
    array = np.ones(4, np.float32)
    payload = Dense(array)
    array[:] = 2
    assert payload.array.tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        payload.array[0] = 3


@given(NAMES)
def test_any_printable_name_travels(name: str) -> None:
    body = Body(BodyKind.WEIGHTS, {name: Dense(np.zeros(2, np.float32))})
    assert list(decode(encode(body)).tensors) == [name]


def test_big_endian_arrays_travel_as_little_endian_ones() -> None:
    array = np.arange(3, dtype=">f4")
    payload = decode(encode(Body(BodyKind.WEIGHTS, {"w": Dense(array)}))).tensors["w"]
    assert isinstance(payload, Dense)
    assert payload.array.dtype.str == "<f4"
    assert payload.array.tolist() == [0, 1, 2]


def test_unsigned_indices_that_descend_are_refused_too() -> None:
    with pytest.raises(WireFormatError, match="are not ascending"):
        Sparse.at((1000,), np.array([5, 3], np.uint64), np.ones(2))


def test_arrays_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(WireFormatError, match="bits need booleans, got an array of float64"):
        Bits.of(np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(WireFormatError, match="counts need whole numbers, got an array of float64"):
        Counts.of(np.ones(3), 3)  # type: ignore[arg-type]
    with pytest.raises(WireFormatError, match="booleans of the tensor's shape"):
        Sparse.where(np.ones(3), np.ones(4, np.bool_))


def test_a_read_only_view_of_a_writable_array_is_copied() -> None:
    array = np.zeros(3, np.float32)
    view = array.view()
    view.flags.writeable = False
    payload = Dense(view)
    array[0] = 9
    assert payload.array.tolist() == [0, 0, 0]


def test_a_slice_of_another_mask_is_told_apart() -> None:
    one, two = (random_channels(cnn4(), 0.5, np.random.default_rng(seed)) for seed in (1, 2))
    part = gather(one, numbered(one.graph))
    payload = Slice.of(one, "conv2.weight", part["conv2.weight"])
    payload.check_mask(one, "conv2.weight")
    with pytest.raises(WireFormatError, match="cut by another mask"):
        payload.check_mask(two, "conv2.weight")
    with pytest.raises(WireFormatError, match="cut by another mask"):
        payload.check_mask(one, "conv3.weight")

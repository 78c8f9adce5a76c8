"""The envelope: versions, digests, limits, expectations."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import WireFormatError
from edgefl.masks import full_mask
from edgefl.wire import Bits, Body, BodyKind, Dense, Expected, Sparse, decode, decode_mask, encode, encode_mask, measure
from edgefl.wire import body_parts as wire_parts
from edgefl.wire.envelope import DTYPES, MAX_HEADER_BYTES, MAX_PARTS, header_bytes, seal
from examples.networks import cnn4

BODY = Body(
    BodyKind.UPDATE,
    {"w": Dense(np.arange(4, dtype=np.float32)), "m": Bits.of(np.array([[True, False, True]]))},
    seed=5,
    about={"task": "t1"},
)


def with_header(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """The body with its header replaced by `change(header)`."""
    length = int.from_bytes(data[:8], "little")
    changed = change(json.loads(data[8 : 8 + length]))
    header = json.dumps(changed, separators=(",", ":")).encode()
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def test_any_safetensors_reader_reads_the_dense_tensors() -> None:
    tensors = safetensors.numpy.load(encode(BODY))
    assert tensors["w"].tolist() == [0, 1, 2, 3]
    assert tensors["m"].dtype == np.uint8


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name != "__metadata__"),
        st.tuples(st.sampled_from(sorted(DTYPES)), st.lists(st.integers(0, 3), max_size=3)),
        max_size=6,
    ),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_a_body_is_written_as_the_safetensors_library_writes_it(
    kinds: dict[str, tuple[str, list[int]]], text: str
) -> None:
    generator = np.random.default_rng(0)
    parts = {name: generator.integers(0, 99, shape).astype(DTYPES[dtype]) for name, (dtype, shape) in kinds.items()}
    ours = seal(text, parts)
    metadata = json.loads(ours[8 : header_bytes(ours)])["__metadata__"]
    assert ours == safetensors.numpy.save(parts, metadata)


def test_bytes_are_counted_as_sent() -> None:
    data = encode(BODY)
    size = measure(data)
    assert size.total_bytes == len(data)
    assert size.tensor_bytes == {"w": 16, "m": 1}
    assert size.header_bytes == len(data) - 17
    assert size.bits_per_parameter(7) == 8 * len(data) / 7


@given(st.permutations(["a", "b", "c"]), st.permutations(["x", "y"]))
def test_the_bytes_do_not_depend_on_dict_order(names: list[str], keys: list[str]) -> None:
    def body(names: list[str], keys: list[str]) -> Body:
        tensors = {name: Dense(np.full(3, ord(name), np.float32)) for name in names}
        return Body(BodyKind.UPDATE, tensors, about={key: key for key in keys})

    assert encode(body(names, keys)) == encode(body(["a", "b", "c"], ["x", "y"]))


def test_a_known_body_is_read_without_a_copy_and_says_the_same() -> None:
    data = encode(BODY)
    first, again = decode(data), decode(memoryview(data), known=True)
    assert (again.kind, again.seed, again.about) == (first.kind, first.seed, first.about)
    whole, bits = again.tensors["w"], again.tensors["m"]
    assert isinstance(whole, Dense)
    assert isinstance(bits, Bits)
    assert whole.array.tolist() == [0, 1, 2, 3]
    assert not whole.array.flags.owndata
    assert bits.to_bool().tolist() == [[True, False, True]]


def test_a_body_that_is_not_what_was_expected_is_refused() -> None:
    data = encode(BODY)
    plan = {"w": Expected((4,), "dense", "float32"), "m": Expected((1, 3), "bits")}
    assert decode(data, kind=BodyKind.UPDATE, expected=plan).seed == 5
    with pytest.raises(WireFormatError, match=r"'w' has shape \(4,\), and the plan says \(5,\)"):
        decode(data, expected=plan | {"w": Expected((5,))})
    with pytest.raises(WireFormatError, match="'m' has codec bits, and the plan says dense"):
        decode(data, expected=plan | {"m": Expected((1, 3), "dense")})
    with pytest.raises(WireFormatError, match="'w' has dtype float32, and the plan says float16"):
        decode(data, expected=plan | {"w": Expected((4,), dtype="float16")})
    with pytest.raises(WireFormatError, match="'more' is missing"):
        decode(data, expected=plan | {"more": Expected((5,))})
    with pytest.raises(WireFormatError, match="'m' is not expected"):
        decode(data, expected={"w": Expected((4,))})
    with pytest.raises(WireFormatError, match="kind 'update'"):
        decode(data, kind=BodyKind.MASK)


def test_a_body_above_the_limit_is_refused_before_it_is_read() -> None:
    data = encode(BODY)
    assert decode(data, limit=len(data)).seed == 5
    with pytest.raises(WireFormatError, match=f"{len(data)} bytes, but only {len(data) - 1} are allowed"):
        decode(data, limit=len(data) - 1)


def test_a_huge_claimed_tensor_costs_nothing_and_is_refused_by_its_shape() -> None:
    huge = Sparse.at((2**31 - 1,), np.array([5]), np.ones(1, np.float32))
    data = encode(Body(BodyKind.UPDATE, {"w": huge}))
    assert len(data) < 500
    with pytest.raises(WireFormatError, match="the plan says"):
        decode(data, expected={"w": Expected((10,))})


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, 50, -1])
def test_a_truncated_body_is_refused(cut: int) -> None:
    with pytest.raises(WireFormatError):
        decode(encode(BODY)[:cut])


def test_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(WireFormatError, match="safetensors"):
        decode(encode(BODY) + b"\0")


def test_a_flipped_bit_is_noticed_by_the_digest() -> None:
    data = bytearray(encode(BODY))
    data[-3] ^= 1
    with pytest.raises(WireFormatError, match="digest"):
        decode(bytes(data))


def test_of_an_intact_body_all_but_the_digest_is_checked() -> None:
    data = bytearray(encode(BODY))
    data[-5:-1] = np.float32(7).tobytes()
    assert decode(bytes(data), intact=True).arrays["w"].tolist() == [0, 1, 2, 7]
    data[-5:-1] = np.float32(np.nan).tobytes()
    with pytest.raises(WireFormatError, match="'w' contains a number that is not finite"):
        decode(bytes(data), intact=True)
    with pytest.raises(WireFormatError, match="safetensors"):
        decode(bytes(data[:-1]), intact=True)
    with pytest.raises(WireFormatError, match="'m' is not expected"):
        decode(encode(BODY), intact=True, expected={"w": Expected((4,))})


def test_exchanged_parts_are_noticed_by_the_digest() -> None:
    body = Body(BodyKind.UPDATE, {name: Dense(np.full(2, i, np.float32)) for i, name in enumerate("ab")})

    def exchange(header: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
        header["a"]["data_offsets"], header["b"]["data_offsets"] = (
            header["b"]["data_offsets"],
            header["a"]["data_offsets"],
        )
        return header

    with pytest.raises(WireFormatError, match="digest"):
        decode(with_header(encode(body), exchange))


def test_a_reshaped_tensor_is_noticed_by_the_digest() -> None:
    def reshape(header: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
        header["w"]["shape"] = [2, 2]
        return header

    with pytest.raises(WireFormatError, match="digest"):
        decode(with_header(encode(BODY), reshape))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind":"update","wire":2}', "wire version 2"),
        ('{"kind":"update","wire":true}', "no wire format version"),
        ('{"kind":"update"}', "no wire format version"),
        ('{"kind":"gossip","wire":1}', "unknown kind 'gossip'"),
        ('{"kind":["update"],"wire":1}', "unknown kind"),
        ('{"kind":"update","wire":1,"more":1}', "unknown field 'more'"),
        ('{"kind":"update","wire":1,"about":{"a":1}}', "'about' of the body contains '1'"),
        ('{"kind":"update","wire":1,"about":[]}', "an object of a few texts"),
        ('{"kind":"update","wire":1,"seed":5}', "seed is '5'"),
        ('{"kind":"update","wire":1,"seed":"05"}', "seed is '05'"),
        ('{"kind":"update","wire":1,"seed":"-5"}', "seed is '-5'"),
        ('{"kind":"update","wire":1,"seed":"18446744073709551616"}', "seed is '18446744073709551616'"),
        ('{"kind":"update","wire":1,"seed":"٣"}', "seed is"),
        ('{"kind":"update","wire":1,"wire":1}', "more than once"),
        ('{"kind":"update","wire":1e999}', "no wire format version"),
        ('{"kind":"update","wire":NaN}', "no wire format version"),
        ('{"kind":"update","wire":1,"about":{"a":"\\ud800"}}', "'about' of the body contains"),
        ("[" * 100_000, "nested"),
        ("1" * 5000, "integer of 5000"),
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        ("[]", "no wire format version"),
    ],
)
def test_a_description_that_is_not_ours_is_refused(text: str, message: str) -> None:
    with pytest.raises(WireFormatError, match=message):
        decode(seal(text, {}))


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 8,
        b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"{}",
        (MAX_HEADER_BYTES + 1).to_bytes(8, "little") + b"{" * (MAX_HEADER_BYTES + 1),
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{}",
        (24).to_bytes(8, "little") + b'{"__metadata__":"edgefl"}',
        (60).to_bytes(8, "little") + b'{"w":{"dtype":"F32","shape":[18446744073709551615,4],"data_',
    ],
)
def test_headers_that_lie_are_refused(data: bytes) -> None:
    with pytest.raises(WireFormatError):
        decode(data)


@pytest.mark.parametrize("shape", [[2**62, 4], [2**64, 0], [-1, -4], [2**63, 2], [1e9, 4], ["4"], [4, 2**63]])
def test_overflowing_sizes_in_the_header_are_refused(shape: list[object]) -> None:
    def lie(header: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
        header["w"]["shape"] = shape
        return header

    with pytest.raises(WireFormatError):
        decode(with_header(encode(BODY), lie))


def test_plain_safetensors_files_are_told_apart() -> None:
    with pytest.raises(WireFormatError, match="no EdgeFL metadata"):
        decode(safetensors.numpy.save({"w": np.zeros(3, np.float32)}))
    with pytest.raises(WireFormatError, match="no EdgeFL metadata"):
        decode(safetensors.numpy.save({"w": np.zeros(3, np.float32)}, {"edgefl": "x", "more": "y"}))


def test_dtypes_that_numpy_or_java_lack_are_refused() -> None:
    with pytest.raises(WireFormatError, match="complex64"):
        encode(Body(BodyKind.WEIGHTS, {"w": Dense(np.zeros(3, np.complex64))}))
    with pytest.raises(WireFormatError, match="dtype U16"):
        decode(safetensors.numpy.save({"w": np.zeros(3, np.uint16)}, {"edgefl": "x"}))


@pytest.mark.parametrize("name", ["", "a#b", "a\nb", "x" * 257, "__metadata__", "\ud800"])
def test_names_that_cannot_travel_are_refused(name: str) -> None:
    with pytest.raises(WireFormatError, match="is not a valid tensor name"):
        encode(Body(BodyKind.WEIGHTS, {name: Dense(np.zeros(1, np.float32))}))


def test_a_seed_beyond_64_bits_is_refused() -> None:
    for seed in (2**64, -1, True, 5.0):
        with pytest.raises(WireFormatError, match="seed"):
            Body(BodyKind.WEIGHTS, {}, seed=seed)  # type: ignore[arg-type]
    assert decode(encode(Body(BodyKind.WEIGHTS, {}, seed=2**64 - 1))).seed == 2**64 - 1


@pytest.mark.parametrize(
    "about", [{"a": 1}, {"a": "\ud800"}, {"a": "x" * (2**18 + 1)}, {str(i): "" for i in range(65)}, ["a"]]
)
def test_what_could_not_be_read_again_is_never_written(about: Any) -> None:
    with pytest.raises(WireFormatError, match="'about' of the body"):
        Body(BodyKind.WEIGHTS, {}, about=about)


def test_bodies_beyond_the_bounds_are_never_written() -> None:
    with pytest.raises(WireFormatError, match="unknown kind 'gossip'"):
        Body("gossip", {})  # type: ignore[arg-type]
    with pytest.raises(WireFormatError, match="at most 16"):
        encode(Body(BodyKind.WEIGHTS, {"w": Dense(np.zeros((1,) * 17, np.float32))}))
    many = {f"{i}": Dense(np.zeros(0, np.float32)) for i in range(MAX_PARTS + 1)}
    with pytest.raises(WireFormatError, match="8193 parts"):
        encode(Body(BodyKind.WEIGHTS, many))
    with pytest.raises(WireFormatError, match="8193 parts"):
        decode(seal('{"kind":"update","wire":1}', {name: payload.array for name, payload in many.items()}))


def test_a_header_above_its_limit_is_neither_written_nor_read() -> None:
    names = [f"{i:04}" + "x" * 250 for i in range(4000)]
    with pytest.raises(WireFormatError, match="header of"):
        encode(Body(BodyKind.WEIGHTS, {name: Dense(np.zeros(0, np.float32)) for name in names}))
    data = seal('{"kind":"update","wire":1}', {name: np.zeros(0, np.float32) for name in names})
    with pytest.raises(WireFormatError, match="header claims"):
        decode(data)


def test_metadata_is_read_at_the_start_of_the_header_alone() -> None:
    def later(header: dict[str, object]) -> dict[str, object]:
        return {"w": header.pop("w"), **header}

    with pytest.raises(WireFormatError, match="no EdgeFL metadata"):
        decode(with_header(encode(BODY), later))


def test_an_axis_that_many_slices_share_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def count(packed: Any) -> int:
        counted.append(packed.size)
        return 0

    monkeypatch.setattr(wire_parts, "count_ones", count)
    codecs = {f"{i}": ["slice", [800], [0]] for i in range(50)}
    empty = {f"{i}": np.zeros(0, np.uint8) for i in range(50)}
    text = json.dumps({"kind": "update", "wire": 1, "codecs": codecs})
    decode(seal(text, {**empty, "#0": np.zeros(100, np.uint8)}))
    assert counted == [100]


def test_a_mask_comes_back_from_its_body() -> None:
    from edgefl.masks import Mask

    held = {"head.weight": np.arange(2560).reshape(10, 256) % 7 > 0}
    mask = Mask.of(cnn4(), trained=["conv1", "head"], kept={"conv2": [1, 5, 60]}, held=held)
    again = decode_mask(encode_mask(mask), cnn4())
    assert again.digest == mask.digest
    assert again.trained == mask.trained
    assert decode_mask(encode_mask(full_mask(cnn4())), cnn4()).digest == full_mask(cnn4()).digest


def test_masks_that_do_not_fit_are_refused() -> None:
    mask = full_mask(cnn4())
    with pytest.raises(WireFormatError, match="Request a mask of this model"):
        decode_mask(encode_mask(mask), cnn4(classes=11))
    about = {"model": mask.graph.digest, "mask": mask.digest, "trained": "conv1"}
    cases: list[tuple[dict[str, Bits | Dense], str]] = [
        ({}, "does not match its digest"),
        ({"kept/conv1": Bits.of(np.zeros(32, np.bool_))}, "keeps no channel"),
        ({"kept/conv1": Bits.of(np.ones(31, np.bool_))}, r"'kept/conv1' of shape \(31,\), which does not belong to"),
        ({"kept/conv9": Bits.of(np.ones(32, np.bool_))}, "'kept/conv9'"),
        ({"held/conv9": Bits.of(np.ones(32, np.bool_))}, "'held/conv9'"),
        ({"held/conv1.weight": Bits.of(np.ones(289, np.bool_))}, "'held/conv1.weight'"),
        ({"held/conv1.weight": Bits.of(np.ones(288, np.bool_))}, "is not valid"),
        ({"kept/conv1": Dense(np.ones(32, np.float32))}, "which does not belong to"),
        ({"other": Bits.of(np.ones(32, np.bool_))}, "which does not belong to"),
    ]
    for tensors, message in cases:
        with pytest.raises(WireFormatError, match=message):
            decode_mask(encode(Body(BodyKind.MASK, tensors, about=about)), cnn4())

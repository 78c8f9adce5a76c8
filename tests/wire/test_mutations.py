"""Ten thousand damaged bodies: each ends in `WireFormatError` or in an exact decode, in little memory.

Half of them are damaged as a network or a disk would do it, so the digest is there to notice. The other half are
damaged by somebody who then computes the right digest, so that every later check has to stand alone.
"""

import json
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgefl.errors import WireFormatError
from edgefl.wire import Bits, Body, BodyKind, Counts, Dense, Slice, Sparse, decode, encode
from edgefl.wire.envelope import seal, unseal
from tests.wire.bodies import everything

CASES = 10_000
OBJECTS = 48 * 1024
"""What the interpreter needs for messages and objects, whatever the size of the body."""
EACH = 2 * 1024
"""What it needs for each tensor: names, shapes, array objects."""

STRANGE: list[Any] = [
    0, 1, -1, 7, 2**31 - 1, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, 1.5, 1e308, True, None, "", "x", "bits", "deltas",
    "bitmap", "slice", "counts", "dense", "F32", "U8", "BF16", "#0", [], [0], [1, 2], [-1], [[8]], {}, {"a": 1},
]  # fmt: skip


def originals() -> list[Body]:
    generator = np.random.default_rng(0)
    flags = generator.random(40_000) < 0.1
    numbers = generator.standard_normal(40_000).astype(np.float32)
    axis = np.packbits(generator.random(200) < 0.5, bitorder="little")
    kept = int(np.bitwise_count(axis).sum())
    one_each: list[Any] = [
        Dense(numbers.reshape(200, 200)),
        Sparse.where(numbers, flags),
        Sparse.where(numbers, ~flags),
        Bits.of((numbers > 0).reshape(40, 1000)),
        Counts.of(generator.integers(0, 6, 40_001), 5),
        Slice((200, 200), (axis, axis), numbers[: kept * kept].reshape(kept, kept)),
        Slice((200, 200), (None, axis), numbers[: 200 * kept].reshape(200, kept)),
    ]
    bodies = [
        Body(BodyKind.UPDATE, {"tensor": payload}, seed=i, about={"task": "7"}) for i, payload in enumerate(one_each)
    ]
    return [
        *bodies,
        Body(BodyKind.UPDATE, {f"tensor{i}": payload for i, payload in enumerate(one_each)}, seed=2**64 - 1),
    ]


def flip_bits(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 8, 64])):
        # Headers are small: without a preference for them, most flips would only meet the digest.
        place = chance.randrange(min(len(data), 700) if chance.random() < 0.6 else len(data))
        damaged[place] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))] if chance.random() < 0.8 else data + bytes(chance.randrange(1, 99))


def edit_length(data: bytes, chance: random.Random) -> bytes:
    lengths = [0, 1, len(data), len(data) - 8, 2**31, 2**32, 2**63, 2**64 - 1, chance.randrange(len(data))]
    return chance.choice(lengths).to_bytes(8, "little") + data[8:]


def edit_header(data: bytes, chance: random.Random) -> bytes:
    length = int.from_bytes(data[:8], "little")
    header = json.dumps(strange(json.loads(data[8 : 8 + length]), chance), separators=(",", ":")).encode()
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def edit_text_and_seal(data: bytes, chance: random.Random) -> bytes:
    text, parts = unseal(data)
    return seal(json.dumps(strange(json.loads(text), chance)), parts)


def edit_parts_and_seal(data: bytes, chance: random.Random) -> bytes:
    text, parts = unseal(data)
    name = chance.choice(sorted(parts))
    part = np.array(parts[name])
    match chance.randrange(5):
        case 0 if part.size:
            part.reshape(-1)[chance.randrange(part.size)] = chance.choice([0, 1, 127])
        case 1 if part.nbytes:
            part.view(np.uint8).reshape(-1)[chance.randrange(part.nbytes)] = 0xFF
        case 2:
            part = part.reshape(-1)[: chance.randrange(part.size + 1)]
        case 3:
            part = part.astype(chance.choice([np.float64, np.uint8, np.int32]))
        case _:
            part = part.reshape((1, *part.shape))
    parts[name] = part
    if chance.random() < 0.2:
        del parts[name]
    return seal(text, parts)


def strange(value: Any, chance: random.Random) -> Any:
    """The JSON value with one thing in it replaced, removed, doubled or renamed."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        action = chance.random()
        if action < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if action < 0.2:
            return {**value, chance.choice(["x", "#0", "wire", "kind", ""]): value[key]}
        return {**value, key: strange(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [*value[:place], strange(value[place], chance), *value[place + 1 :]]
    if type(value) is int and chance.random() < 0.5:
        return value + chance.choice([-1, 1, 8, 2**31, 2**62])
    return chance.choice(STRANGE)


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bit flips": flip_bits,
    "truncation": truncate,
    "another length": edit_length,
    "edited header": edit_header,
    "edited text, right digest": edit_text_and_seal,
    "edited parts, right digest": edit_parts_and_seal,
}
SEALED = {"edited text, right digest", "edited parts, right digest"}
SHARE = {"bit flips": 0.2, "truncation": 0.1, "another length": 0.05, "edited header": 0.15} | dict.fromkeys(
    SEALED, 0.25
)


def decode_in_little_memory(data: bytes, tensors: int) -> Body | None:
    """Decode; None if it was refused. Fails on any other exception and on any greed for memory."""
    allowed = 2 * len(data) + OBJECTS + EACH * tensors
    for _ in range(3):  # what other threads of the process take meanwhile counts too, but not thrice
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        try:
            body: Body | None = decode(data)
        except WireFormatError:
            body = None
        used = tracemalloc.get_traced_memory()[1] - before
        if used <= allowed:
            return body
    raise AssertionError(f"{used} bytes for a body of {len(data)} with {tensors} tensors")


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_bodies_are_refused_or_exact(damage: str) -> None:
    chance = random.Random(damage)
    sound = [(encode(body), everything(body), len(body.tensors)) for body in originals()]
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(round(CASES * SHARE[damage])):
            data, expected, tensors = chance.choice(sound)
            damaged = DAMAGE[damage](data, chance)
            body = decode_in_little_memory(damaged, tensors + 1)
            if body is None:
                refused += 1
            elif damage in SEALED:
                # Another sound body: it must stand for exactly what it says.
                again = encode(body)
                assert encode(decode(again)) == again
            else:
                assert everything(body) == expected
    finally:
        tracemalloc.stop()
    assert refused > 0.5 * CASES * SHARE[damage]


def test_the_cases_add_up_to_ten_thousand() -> None:
    assert sum(round(CASES * share) for share in SHARE.values()) == CASES
    assert set(SHARE) == set(DAMAGE)


def test_sound_bodies_decode_in_little_memory() -> None:
    tracemalloc.start()
    try:
        many = {f"layer{i}.weight": Bits.of(np.ones(2000, np.bool_)) for i in range(1000)}
        few = {f"layer{i}.weight": Dense(np.ones(9, np.float32)) for i in range(1000)}
        for body in [*originals(), Body(BodyKind.UPDATE, many), Body(BodyKind.UPDATE, few)]:
            assert decode_in_little_memory(encode(body), len(body.tensors)) is not None
    finally:
        tracemalloc.stop()

"""Golden bodies: what this version writes is what every later version, and the phone app, must read.

`python -m tests.wire.test_golden` writes the files anew. Do that only when the wire version changes.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from edgefl.masks import Mask
from edgefl.wire import Bits, Body, BodyKind, Counts, Dense, Slice, Sparse, decode, decode_mask, encode, encode_mask
from examples.networks import cnn4
from tests.wire.bodies import everything

GOLDEN = Path(__file__).parents[1] / "golden"


def ramp(*shape: int) -> "np.typing.NDArray[np.float32]":
    """Numbers that any language can make: i / 8 - 1, exact in float32."""
    size = int(np.prod(shape))
    return (np.arange(size, dtype=np.float32) / np.float32(8) - np.float32(1)).reshape(shape)


def golden_update() -> Body:
    every_third = np.arange(60) % 3 == 0
    rows = np.packbits([True, False, True, True], bitorder="little")
    columns = np.packbits([False, True, True], bitorder="little")
    return Body(
        BodyKind.UPDATE,
        {
            "dense": Dense(ramp(2, 3)),
            "dense.half": Dense(ramp(4).astype(np.float16)),
            "dense.steps": Dense(np.array(7, np.int64)),
            "slice": Slice((4, 3, 2), (rows, columns, None), ramp(3, 2, 2)),
            "slice.bias": Slice((4,), (rows,), ramp(3)),
            "sparse.bitmap": Sparse.where(ramp(3, 20), every_third.reshape(3, 20)),
            "sparse.deltas": Sparse.at((100, 200), np.array([0, 1, 129, 258, 19_999]), ramp(5)),
            "bits": Bits.of(every_third.reshape(3, 20)),
            "counts": Counts.of((np.arange(21) % 6).reshape(3, 7), 5),
        },
        seed=2**64 - 1,
        about={"task": "task-1", "note": "größer"},
    )


def golden_mask() -> Mask:
    held = {"head.weight": np.arange(2560).reshape(10, 256) % 5 != 0}
    return Mask.of(cnn4(), trained=["conv4", "head"], kept={"conv1": range(0, 32, 2)}, held=held)


def golden_bodies() -> dict[str, bytes]:
    return {"update_v1.safetensors": encode(golden_update()), "mask_v1.safetensors": encode_mask(golden_mask())}


@pytest.mark.parametrize("name", golden_bodies())
def test_golden_bodies_are_written_bit_for_bit(name: str) -> None:
    assert golden_bodies()[name] == (GOLDEN / name).read_bytes()


def test_golden_bodies_are_read() -> None:
    update = decode((GOLDEN / "update_v1.safetensors").read_bytes())
    assert everything(update) == everything(golden_update())
    mask = decode_mask((GOLDEN / "mask_v1.safetensors").read_bytes(), cnn4())
    assert mask.digest == golden_mask().digest
    assert mask.trained == {"conv4", "head"}
    assert mask.kept["conv1"].tolist() == list(range(0, 32, 2))


def test_the_golden_digest_follows_its_written_specification() -> None:
    data = (GOLDEN / "update_v1.safetensors").read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    digest, text = header.pop("__metadata__")["edgefl"].split(" ", 1)
    hasher = hashlib.sha256(text.encode() + b"\0")
    for name in sorted(header, key=str.encode):
        part = header[name]
        first, last = part["data_offsets"]
        hasher.update(f"{name}\0{part['dtype']}\0{','.join(map(str, part['shape']))}\0".encode())
        hasher.update(data[end + first : end + last])
    assert digest == hasher.hexdigest()


if __name__ == "__main__":
    for name, data in golden_bodies().items():
        (GOLDEN / name).write_bytes(data)

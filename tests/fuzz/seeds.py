"""Writes the first inputs of every target to corpus/: python -m tests.fuzz.seeds"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from edgefl.artifacts.bundle import MANIFEST, pack_bundle
from edgefl.wire import Bits, Body, BodyKind, Counts, Dense, Payload, Slice, Sparse, encode
from tests.artifacts.hostile_graphs import HOSTILE, plain_model
from tests.artifacts.test_bundle import bundle
from tests.fuzz.targets import CORPUS, MOST_BYTES

_VALUES = Path(__file__).parents[1] / "values" / "golden"


def bodies() -> Iterator[tuple[str, bytes]]:
    """A body of every codec."""
    numbers = np.linspace(-1, 1, 40, dtype=np.float32)
    axis = np.packbits(np.arange(8) % 2 == 0, bitorder="little")
    payloads: dict[str, Payload] = {
        "dense": Dense(numbers.reshape(5, 8)),
        "sparse": Sparse.where(numbers, numbers > 0.5),
        "bits": Bits.of(numbers > 0),
        "counts": Counts.of(np.arange(40) % 6, 5),
        "slice": Slice((8, 4), (axis, None), numbers[:16].reshape(4, 4)),
    }
    for name, payload in payloads.items():
        yield name, encode(Body(BodyKind.UPDATE, {"tensor": payload}, seed=7, about={"task": "7"}))
    yield "all", encode(Body(BodyKind.UPDATE, payloads, seed=2**64 - 1))


def bundles() -> Iterator[tuple[str, bytes]]:
    """A small bundle, and pieces of one."""
    small = bundle()
    packed = pack_bundle(small)
    yield "small", packed
    yield "cut", packed[:-30]
    yield "end", packed[-22:]
    yield "without_files", pack_bundle(replace(small, files={MANIFEST: b"{}"}))


def graphs() -> Iterator[tuple[str, bytes]]:
    """A plain graph and every hostile one."""
    yield "plain", plain_model().SerializeToString()
    for how, build in HOSTILE.items():
        yield how.replace(" ", "_"), build().SerializeToString()


def documents() -> Iterator[tuple[str, bytes]]:
    """A document of every kind."""
    for path in sorted(_VALUES.glob("*.json")):
        yield path.stem, path.read_bytes()


SEEDS: Mapping[str, Iterator[tuple[str, bytes]]] = {
    "wire": bodies(),
    "json_values": documents(),
    "bundle": bundles(),
    "graph": graphs(),
}

if __name__ == "__main__":
    for target, seeds in SEEDS.items():
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds:
            if len(data) <= MOST_BYTES:
                (CORPUS / target / name).write_bytes(data)

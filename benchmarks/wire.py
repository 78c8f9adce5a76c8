"""Bits on the wire: every codec on FedMRN's CNN4 (390,880 parameters), headers included, and its speed."""

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.timing import medians
from edgefl.masks import gather, random_channels
from edgefl.model_graph import Role
from edgefl.wire import Bits, Body, Counts, Dense, Kind, Payload, Slice, Sparse, decode, encode, measure
from examples.networks import cnn4

_GRAPH = cnn4()
_MASKED = [tensor.name for tensor in _GRAPH.tensors if tensor.role in (Role.WEIGHT, Role.HEAD)]


def bodies() -> dict[str, tuple[Body, int]]:
    """Return a body for every codec, with the number of parameters it speaks for."""
    generator = np.random.default_rng(0)
    weights = {t.name: generator.standard_normal(t.shape, dtype=np.float32) for t in _GRAPH.tensors}
    sizes = {tensor.name: tensor.size for tensor in _GRAPH.tensors}
    mask = random_channels(_GRAPH, 0.5, generator)
    part = gather(mask, weights)

    def body(make: Callable[[str], Payload], names: list[str], seed: int | None = None) -> tuple[Body, int]:
        payloads = {name: make(name) for name in names}
        return Body(Kind.UPDATE, payloads, seed=seed), sum(sizes[name] for name in names)

    def sparse(density: float) -> Callable[[str], Payload]:
        return lambda name: Sparse.where(weights[name], generator.random(weights[name].shape) < density)

    def bit(name: str) -> Payload:
        return Bits.of(generator.random(weights[name].shape) < 0.5)

    everything = list(weights)
    return {
        "dense, float32": body(lambda n: Dense(weights[n]), everything),
        "slice, half of the channels": body(lambda n: Slice.of(mask, n, part[n]), everything),
        "sparse, density 0.5": body(sparse(0.5), everything),
        "sparse, density 0.1": body(sparse(0.1), everything),
        "sparse, density 0.01": body(sparse(0.01), everything),
        "counts from 0 to 5": body(lambda n: Counts.of(generator.integers(0, 6, weights[n].shape), 5), everything),
        "bits of the masked weights": body(bit, _MASKED, seed=2**64 - 1),
        "the same, norms in float32": body(lambda n: bit(n) if n in _MASKED else Dense(weights[n]), everything, 1),
    }


def main() -> None:
    """Print the table."""
    print(f"{_GRAPH.name}: {_GRAPH.parameters:,} parameters; times are medians of 15 rounds in turns")
    print(
        f"{'body':<28} {'parameters':>10} {'bytes':>10} {'header':>7} {'bits each':>10}"
        f" {'encode':>9} {'decode':>9} {'known':>9}"
    )
    for name, (body, parameters) in bodies().items():
        data = encode(body)
        size = measure(data)
        again = partial(decode, data, known=True)
        times = medians({"encode": partial(encode, body), "decode": partial(decode, data), "again": again}, rounds=15)
        print(
            f"{name:<28} {parameters:>10,} {size.total_bytes:>10,} {size.header_bytes:>7,} "
            f"{size.bits_per_parameter(parameters):>10.4f} "
            f"{times['encode'] * 1e3:>6.2f} ms {times['decode'] * 1e3:>6.2f} ms {times['again'] * 1e3:>6.2f} ms"
        )


if __name__ == "__main__":
    main()

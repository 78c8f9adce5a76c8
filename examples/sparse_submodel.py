"""One model, five unequal devices: their submodels, what they cost, and how their updates are aggregated.

Run it with `make demo`. Nothing is trained: every number is counted or measured on real masks and bytes.
"""

import math
import time
from pathlib import Path

import numpy as np

from edgefl.data import load, partition, text_picture
from edgefl.masks import (
    Array,
    Mask,
    Weights,
    freeze,
    full_mask,
    gather,
    holders,
    leading_channels,
    random_channels,
    scatter,
)
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.noise import derive, symmetric
from edgefl.values import dumps, format_bytes
from edgefl.wire import Bits, Body, BodyKind, Dense, Payload, Sparse, encode, encode_mask
from examples.networks import cnn4

RUN = Path("runs/demo")
SEED = 7
BATCH = 32


def main() -> None:
    """Tell the story in four steps."""
    graph = cnn4()
    generator = np.random.default_rng(SEED)
    weights = {t.name: generator.standard_normal(t.shape, dtype=np.float32) * 0.01 for t in graph.tensors}
    masks = fleet(graph, generator)
    RUN.mkdir(parents=True, exist_ok=True)
    show_data(len(masks))
    show_parts(graph, masks)
    show_bytes(masks, weights)
    show_average(graph, masks, weights)
    (RUN / "model.json").write_text(dumps(graph, indent=2))
    print(f"\nThe model, the masks and the bodies are in {RUN}/. Look at one:")
    print(f"  .venv/bin/edgefl inspect {RUN}/model.json")
    print(f"  .venv/bin/edgefl inspect {RUN}/laptop.update.safetensors")


def fleet(graph: ModelGraph, generator: np.random.Generator) -> dict[str, Mask]:
    """Return five devices and their parts: whole, frozen, narrow, both, and single weights."""
    narrow = leading_channels(graph, 0.5)
    flags = {name: generator.random(shape) < 0.5 for name, shape in narrow.shapes.items() if len(shape) > 1}
    return {
        "laptop": full_mask(graph),
        "pi-5": freeze(full_mask(graph), ["conv1", "norm1", "conv2", "norm2"]),
        "pi-4": narrow,
        "phone": freeze(random_channels(graph, 0.5, generator), ["conv1", "norm1", "conv2", "norm2"]),
        "old-phone": Mask.of(graph, kept=narrow.kept, held=flags),
    }


def show_data(clients: int) -> None:
    """Divide real data among the devices."""
    digits = load("digits")
    division = partition(digits.train, "dirichlet:0.3", clients=clients, seed=SEED)
    print(f"1. Data: {len(digits.train):,} handwritten digits among {clients} devices, Dirichlet 0.3\n")
    print(text_picture(division.label_counts(digits.train.labels, digits.classes)))


def show_parts(graph: ModelGraph, masks: dict[str, Mask]) -> None:
    """Say what every device gets and what it costs."""
    print(f"\n2. Parts of {graph.name}, {graph.parameters:,} parameters (compute a sample, memory at batch {BATCH})\n")
    print(f"  {'device':<10} {'holds':>9} {'trains':>9} {'forward':>9} {'backward':>9} {'activations':>12}  special")
    special = ("everything", "first two blocks frozen", "half the channels", "frozen and half", "half of half")
    for (name, mask), words in zip(masks.items(), special, strict=True):
        cost = mask.cost
        print(
            f"  {name:<10} {cost.parameters:>9,} {cost.trained_parameters:>9,} "
            f"{cost.forward_multiply_adds / 1e6:>7.2f} M {cost.backward_multiply_adds / 1e6:>7.2f} M "
            f"{format_bytes(cost.activation_bytes(BATCH)):>12}  {words}"
        )


def show_bytes(masks: dict[str, Mask], weights: Weights) -> None:
    """Cut every part, and count its bytes down and up as they would be sent."""
    print("\n3. Bytes: the part on its way down, and an update of one bit a weight (norms in float32) on its way up\n")
    print(f"  {'device':<10} {'cut in':>9} {'down':>12} {'up':>12} {'up, bits a trained parameter':>30}")
    for name, mask in masks.items():
        start = time.perf_counter()
        part = gather(mask, weights)
        milliseconds = 1e3 * (time.perf_counter() - start)
        down = encode(Body(BodyKind.WEIGHTS, {key: sent(mask, key, array) for key, array in part.items()}))
        up = encode(one_bit_update(name, mask))
        (RUN / f"{name}.mask.safetensors").write_bytes(encode_mask(mask))
        (RUN / f"{name}.update.safetensors").write_bytes(up)
        bits = 8 * len(up) / mask.cost.trained_parameters
        print(f"  {name:<10} {milliseconds:>6.2f} ms {len(down):>12,} {len(up):>12,} {bits:>30.3f}")


def sent(mask: Mask, name: str, array: Array) -> Payload:
    """Return a tensor as it is sent: whole, or its held weights alone."""
    return Sparse.where(array, mask.held[name]) if name in mask.held else Dense(array)


def one_bit_update(device: str, mask: Mask) -> Body:
    """Return an update as FedMRN sends it: the sign of noise that the receiver makes again from the seed."""
    seed = derive(SEED, device)
    tensors: dict[str, Payload] = {}
    for name in mask.trained_tensors:
        shape = mask.shapes[name]
        noise = symmetric(derive(seed, name), 0, math.prod(shape), 0.01).reshape(shape)
        if mask.graph.tensor[name].role in (TensorRole.WEIGHT, TensorRole.HEAD):
            tensors[name] = Bits.of((noise > 0)[mask.held.get(name, ...)])
        else:
            tensors[name] = Dense(noise)
    return Body(BodyKind.UPDATE, tensors, seed=seed, about={"mask": mask.digest, "model": mask.graph.digest})


def show_average(graph: ModelGraph, masks: dict[str, Mask], weights: Weights) -> None:
    """Average by holders: every device adds its own number to what it trains."""
    zeros = {name: np.zeros_like(array) for name, array in weights.items()}
    sums = dict(zeros)
    for number, mask in enumerate(masks.values(), start=1):
        part = gather(mask, weights, mask.trained_tensors)
        moved = scatter(mask, {name: np.full_like(array, number) for name, array in part.items()}, zeros)
        sums = {name: sums[name] + moved[name] for name in sums}
    counts = holders(list(masks.values()), trained_only=True)
    print(
        f"\n4. Who trains what: the share of each tensor's weights by how many of the {len(masks)} devices train them\n"
    )
    print(
        f"  {'tensor':<14} "
        + " ".join(f"{n:>6}" for n in range(1, len(masks) + 1))
        + "   average of the device numbers"
    )
    for tensor in graph.tensors:
        if tensor.role is not TensorRole.NORM:
            count = counts[tensor.name]
            shares = [float(np.mean(count == n)) for n in range(1, len(masks) + 1)]
            average = sums[tensor.name] / np.maximum(count, 1)
            cells = " ".join(f"{share:>6.1%}" if share else f"{'.':>6}" for share in shares)
            print(f"  {tensor.name:<14} {cells}   from {average.min():.2f} to {average.max():.2f}")


if __name__ == "__main__":
    main()

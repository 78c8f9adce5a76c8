"""The networks of the study: exported once each, with initial weights for every seed. The only file that needs torch.

Small ones are for images of 8x8. `cnn3_batch` is FedMRN's CNN4 without its last block, at half its widths. `cnn3_group`
has a norm that keeps no statistics, as submodels of any width want it: HeteroFL's static norms, FedSpa's appendix B.2.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import torch  # noqa: TID251  exports the models
from torch import nn  # noqa: TID251

from edgefl.artifacts.artifact_store import write_atomically
from edgefl.artifacts.bundle import Bundle, read_bundle, write_bundle
from edgefl.wire import encode_weights
from export.bundle import make_bundle, stored_weights
from export.zoo import block_of, build
from export.zoo.cnn import INITIAL_DEVIATION
from export.zoo.seeding import seeded
from export.zoo.spec import stack

__all__ = ["prepare"]

CLASSES = 10


def prepare(name: str, seeds: list[int], folder: Path) -> None:
    """Put a model's bundle and its initial weights into a folder, unless they are there."""
    make, shape = _MODELS[name]
    path = folder / f"{name}.zip"
    if not path.exists():
        with seeded(0):
            model = make()
        write_bundle(make_bundle(model, name, torch.zeros(2, *shape), block_of=block_of), path)
    bundle = read_bundle(path)
    for seed in seeds:
        weights = folder / f"{name}-{seed}.safetensors"
        if not weights.exists():
            write_atomically(weights, _weights(make, seed, bundle))


def _weights(make: Callable[[], nn.Module], seed: int, bundle: Bundle) -> bytes:
    with seeded(seed):
        model = make()
    arrays = {name: tensor.numpy() for name, tensor in stored_weights(model, bundle.graph).items()}
    return encode_weights(arrays, {"model": bundle.graph.digest})


def _mlp(widths: Sequence[int]) -> nn.Module:
    """Return a perceptron for images of 8x8."""
    layers: dict[str, nn.Module] = {"flatten": nn.Flatten()}
    features = 64
    for number, width in enumerate(widths, start=1):
        layers[f"block{number}"] = stack({"linear": nn.Linear(features, width), "relu": nn.ReLU()})
        features = width
    layers["head"] = nn.Linear(features, CLASSES)
    return stack(layers)


def _chain(
    widths: Sequence[int], size: int, norm: Callable[[int], nn.Module], pools: Collection[int], channels: int = 1
) -> nn.Module:
    """Return a chain of convolutions, with a pool after those of some numbers."""
    layers: dict[str, nn.Module] = {}
    for number, width in enumerate(widths, start=1):
        block: dict[str, nn.Module] = {
            "conv": nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False),
            "norm": norm(width),
            "relu": nn.ReLU(),
        }
        if number in pools:
            block["pool"] = nn.MaxPool2d(kernel_size=2)
            size //= 2
        layers[f"block{number}"] = stack(block)
        channels = width
    layers["flatten"] = nn.Flatten()
    layers["head"] = nn.Linear(channels * size * size, CLASSES, bias=False)
    return stack(layers)


def _pooled(size: int, channels: int) -> nn.Module:
    """Return four convolutions whose features are the means of their maps: few of them, for an exact head."""
    layers = dict(_chain((16, 32, 64, 64), size, _group, (1, 2, 3), channels).named_children())
    head = {"pool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(), "head": nn.Linear(64, CLASSES)}
    return stack({name: module for name, module in layers.items() if name not in head} | head)


def _group(width: int) -> nn.Module:
    return nn.GroupNorm(1, width)


def _cnn3_batch(size: int) -> nn.Module:
    model = _chain((16, 32, 64), size, nn.BatchNorm2d, (1, 2, 3))
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=INITIAL_DEVIATION)
    return model


_MODELS: Mapping[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp2": (lambda: _mlp((32,)), (1, 8, 8)),
    "mlp3": (lambda: _mlp((128, 64)), (1, 8, 8)),
    "mlp6": (lambda: _mlp((48,) * 5), (1, 8, 8)),
    "cnn3_batch": (lambda: _cnn3_batch(8), (1, 8, 8)),
    "cnn3_batch_14": (lambda: _cnn3_batch(14), (1, 14, 14)),
    "cnn4_colour_16": (lambda: _chain((16, 32, 64, 64), 16, _group, (1, 2, 3), channels=3), (3, 16, 16)),
    "cnn4_pooled_32": (lambda: _pooled(32, 3), (3, 32, 32)),
    "cnn4_pooled_28": (lambda: _pooled(28, 1), (1, 28, 28)),
    "cnn3_group": (lambda: _chain((16, 32, 64), 8, _group, (1, 2, 3)), (1, 8, 8)),
    "cnn4": (lambda: build("cnn4"), (1, 28, 28)),
    "cnn4_group": (lambda: _chain((32, 64, 128, 256), 28, _group, (1, 2, 3, 4)), (1, 28, 28)),
    "cnn4_colour": (lambda: _chain((32, 64, 128, 256), 32, nn.BatchNorm2d, (1, 2, 3, 4), channels=3), (3, 32, 32)),
    "preresnet18": (lambda: build("preresnet18"), (3, 32, 32)),
    "lenet5": (lambda: build("lenet5", classes=CLASSES), (1, 28, 28)),
}

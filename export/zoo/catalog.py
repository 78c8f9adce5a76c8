"""The models of the zoo by name, and how to build one.

`edgefl export --model NAME` uses it. Every entry keeps the norms, biases and classes of its paper; choices where a
paper is silent are documented at the top of the architecture's own file.
"""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import nn

from edgefl.errors import ExportError
from export.zoo.char_lstm import char_lstm
from export.zoo.cnn import cnn4, cnn8
from export.zoo.digits import digits_cnn, digits_mlp
from export.zoo.lenet import lenet5
from export.zoo.mlp import mlp
from export.zoo.mobilenet import mobilenet
from export.zoo.resnet import preresnet18, resnet18
from export.zoo.seeding import seeded
from export.zoo.spec import HEAD, ModelSpec, block_of
from export.zoo.vgg import vgg11, vgg16

__all__ = ["ZOO", "build", "blocks_of"]

_FEDMRN = "FedMRN: Li et al., Masked Random Noise for Communication-Efficient Federated Learning, ACM MM 2024"
_FEDSPA = "FedSpa: Achieving Personalized Federated Learning with Sparse Local Models"
_HERMES = "Hermes: Li et al., An Efficient Federated Learning Framework for Heterogeneous Mobile Clients, MobiCom 2021"
_PERFEDMASK = "PerFedMask: Setayesh et al., Personalized Federated Learning with Optimized Masking Vectors, ICLR 2023"
_FEDMAP = "FedMAP: One Training Fits All: Addressing Model-Heterogeneity Federated Learning via Architecture Probing"

_NONE = "of no paper: for the 8x8 digits of scikit-learn, to try things with"

_TINY, _GREY, _COLOUR = (1, 8, 8), (1, 28, 28), (3, 32, 32)

_SPECS = (
    ModelSpec("cnn4", "4 convolutions, batch norm", _FEDMRN, _GREY, "float32", 10, cnn4),
    ModelSpec("cnn8", "8 convolutions, batch norm", _FEDMRN, _COLOUR, "float32", 10, cnn8),
    ModelSpec("lenet5", "Caffe's LeNet5, no norm", _FEDSPA, _GREY, "float32", 26, lenet5),
    ModelSpec("vgg11", "8 convolutions, group norm", _FEDSPA, _COLOUR, "float32", 10, vgg11),
    ModelSpec("vgg16", "13 convolutions, two layers of 4096, no norm", _HERMES, _COLOUR, "float32", 10, vgg16),
    ModelSpec("resnet18", "residual network, group norm", _FEDSPA, _COLOUR, "float32", 100, resnet18),
    ModelSpec(
        "preresnet18",
        "pre-activation residual network, batch norm without running statistics",
        _PERFEDMASK,
        _COLOUR,
        "float32",
        10,
        preresnet18,
    ),
    ModelSpec(
        "mobilenet",
        "MobileNet v1: depthwise convolutions, batch norm without running statistics",
        _PERFEDMASK,
        _COLOUR,
        "float32",
        100,
        mobilenet,
    ),
    ModelSpec("mlp", "561-1024-512-6 perceptron for activity recognition", _HERMES, (561,), "float32", 6, mlp),
    ModelSpec("digits_cnn", "3 convolutions, group norm", _NONE, _TINY, "float32", 10, digits_cnn),
    ModelSpec("digits_mlp", "64-32-10 perceptron", _NONE, _TINY, "float32", 10, digits_mlp),
    ModelSpec("char_lstm", "2-layer LSTM, predicts the next character", _FEDMAP, (80,), "int64", 80, char_lstm),
)

ZOO: Mapping[str, ModelSpec] = MappingProxyType({spec.name: spec for spec in _SPECS})
"""Every model of the zoo by its name."""


def build(name: str, *, classes: int | None = None, in_channels: int | None = None, seed: int = 0) -> nn.Module:
    """Build a model of the zoo, in training mode, with fresh weights.

    `classes` and `in_channels` default to the paper's. `in_channels` means channels of an image, features of the
    perceptron, or the size of the LSTM's alphabet; the size of images stays that of `input_shape`. The same `seed`
    gives the same weights, and torch's own random state is restored.

    Under `torch.device("meta")` the model has shapes but no weights, which is enough to count or to trace it.
    """
    spec = _find(name)
    wanted_classes = _positive("classes", spec.classes if classes is None else classes)
    wanted_channels = _positive("in_channels", spec.in_channels if in_channels is None else in_channels)
    with seeded(seed):
        return spec.factory(wanted_classes, wanted_channels)


def blocks_of(name: str) -> tuple[str, ...]:
    """Return the names of the blocks of a zoo model in the order of its forward pass, without the head.

    PerFedMask trains or freezes each of these as a whole: 14 in MobileNet, 10 in PreResNet18. A block's parameters are
    those whose names start with its name and a dot, see `export.zoo.spec`.
    """
    spec = _find(name)
    with torch.device("meta"):
        model = spec.factory(spec.classes, spec.in_channels)
    blocks = dict.fromkeys(block_of(parameter) for parameter, _ in model.named_parameters())
    return tuple(block for block in blocks if block != HEAD)


def _find(name: str) -> ModelSpec:
    spec = ZOO.get(name)
    if spec is not None:
        return spec
    close = difflib.get_close_matches(name, ZOO, n=1)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    raise ExportError(
        f"there is no model {name!r} in the zoo",
        fix=f"{guess}Take one of {', '.join(ZOO)}, or name your own as package.module:factory.",
    )


def _positive(what: str, value: int) -> int:
    if value < 1:
        raise ExportError(f"{what} is {value}", fix="Give a number of at least 1, or leave it out for the paper's own.")
    return value

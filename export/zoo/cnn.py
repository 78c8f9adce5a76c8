"""CNN4 and CNN8 of FedMRN: plain convolutions with batch norm, and a linear head without a bias.

Paper: Li et al., "Masked Random Noise for Communication-Efficient Federated Learning", ACM MM 2024, section 5.1.1:
four convolutions for Fashion-MNIST and SVHN, eight for CIFAR, one fully connected layer each. It says no more; widths,
norms and initial values are those of the authors' code (github.com/Leopold1423/fedmrn-mm24, model/cnn.py):

- 3x3 convolutions, padding 1, no bias; batch norm with running statistics; ReLU; a 2x2 max pool after every
  convolution of CNN4 (32-64-128-256), after every second one of CNN8 (32-32-64-64-128-128-256-256).
- Weights of convolutions and the head are drawn from N(0, 0.01), which FedMRN's noise of +-0.01 is sized for.

CNN4 for Fashion-MNIST has 389,920 weights, which FedMRN sends as one bit each, and 960 norm parameters.
"""

from collections.abc import Sequence

from torch import nn

from export.zoo.spec import HEAD, stack

__all__ = ["cnn4", "cnn8"]

INITIAL_DEVIATION = 0.01
POOLS = 4


def _block(in_channels: int, width: int, *, pool: bool) -> nn.Sequential:
    layers: dict[str, nn.Module] = {
        "conv": nn.Conv2d(in_channels, width, kernel_size=3, padding=1, bias=False),
        "norm": nn.BatchNorm2d(width),
        "relu": nn.ReLU(),
    }
    if pool:
        layers["pool"] = nn.MaxPool2d(kernel_size=2)
    return stack(layers)


def _cnn(widths: Sequence[int], classes: int, in_channels: int, image_size: int) -> nn.Module:
    convolutions_a_pool = len(widths) // POOLS
    layers: dict[str, nn.Module] = {}
    channels = in_channels
    for number, width in enumerate(widths, start=1):
        layers[f"block{number}"] = _block(channels, width, pool=number % convolutions_a_pool == 0)
        channels = width
    layers["flatten"] = nn.Flatten()
    left = image_size // 2**POOLS
    layers[HEAD] = nn.Linear(channels * left * left, classes, bias=False)
    model = stack(layers)
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=INITIAL_DEVIATION)
    return model


def cnn4(classes: int, in_channels: int, *, image_size: int = 28) -> nn.Module:
    """FedMRN's network for Fashion-MNIST; for SVHN it has 3 input channels and an image size of 32."""
    return _cnn((32, 64, 128, 256), classes, in_channels, image_size)


def cnn8(classes: int, in_channels: int, *, image_size: int = 32) -> nn.Module:
    """FedMRN's network for CIFAR-10 and CIFAR-100."""
    return _cnn((32, 32, 64, 64, 128, 128, 256, 256), classes, in_channels, image_size)

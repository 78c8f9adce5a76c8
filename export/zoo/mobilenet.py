"""MobileNet v1 with depthwise convolutions, for 32x32 images.

Network: Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications", 2017,
table 1: a 3x3 stem, thirteen pairs of a depthwise 3x3 and a pointwise 1x1 convolution, each followed by batch norm and
ReLU, a global average pool, the head. For 32x32 images the stem has stride 1 (2 for ImageNet), so that 2x2 places are
left before the pool.

Paper: PerFedMask (Setayesh et al., "PerFedMask: Personalized Federated Learning with Optimized Masking Vectors", ICLR
2023), CIFAR-100. As in the authors' code (github.com/MehdiSet/PerFedMask, nets/Nets.py), convolutions have no bias and
batch norm keeps no running statistics, so it uses those of the batch in inference too. 3,309,476 parameters for 100
classes, 3,206,976 of them in the authors' 14 blocks: the stem, and the thirteen pairs.

Initial values are torch's own, as in the authors' code.
"""

from torch import nn

from export.zoo.spec import HEAD, stack

__all__ = ["mobilenet"]

STEM_WIDTH = 32
# Width and stride of the thirteen pairs.
PAIRS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
)


def _norm(width: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(width, track_running_stats=False)


def _pair(in_channels: int, width: int, stride: int) -> nn.Sequential:
    depthwise = nn.Conv2d(
        in_channels, in_channels, kernel_size=3, stride=stride, padding=1, groups=in_channels, bias=False
    )
    return stack(
        {
            "depthwise": depthwise,
            "norm1": _norm(in_channels),
            "relu1": nn.ReLU(),
            "pointwise": nn.Conv2d(in_channels, width, kernel_size=1, bias=False),
            "norm2": _norm(width),
            "relu2": nn.ReLU(),
        }
    )


def mobilenet(classes: int, in_channels: int) -> nn.Module:
    """PerFedMask's MobileNet: a stem and thirteen depthwise-separable blocks."""
    layers: dict[str, nn.Module] = {
        "stem": stack(
            {
                "conv": nn.Conv2d(in_channels, STEM_WIDTH, kernel_size=3, padding=1, bias=False),
                "norm": _norm(STEM_WIDTH),
                "relu": nn.ReLU(),
            }
        )
    }
    channels = STEM_WIDTH
    for number, (width, stride) in enumerate(PAIRS, start=1):
        layers[f"block{number}"] = _pair(channels, width, stride)
        channels = width
    layers["pool"] = nn.AdaptiveAvgPool2d(1)
    layers["flatten"] = nn.Flatten()
    layers[HEAD] = nn.Linear(channels, classes)
    return stack(layers)

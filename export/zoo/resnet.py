"""ResNet18 with group norm (FedSpa) and PreResNet18 with batch norm (PerFedMask), for 32x32 images.

Networks: He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, and "Identity Mappings in Deep Residual
Networks", ECCV 2016, which moves norm and ReLU before each convolution. Both in the form used for CIFAR: a 3x3 stem of
stride 1 without a pool, four stages of two blocks (64-128-256-512), the first convolution of stages 2 to 4 with stride
2, a 1x1 convolution on the shortcut where the shape changes, a global average pool.

ResNet18. FedSpa ("Achieving Personalized Federated Learning with Sparse Local Models", appendix B.2) replaces batch
norm by group norm, the shortcut's included. The 897.6 GB of its table 1 fit 11,220,132 parameters for 100 classes
(1,000 rounds, 10 clients, 4 bytes, both ways). The number of groups is not given; 32 is the default of Wu & He,
"Group Normalization", ECCV 2018.

PreResNet18. PerFedMask (Setayesh et al., "PerFedMask: Personalized Federated Learning with Optimized Masking Vectors",
ICLR 2023) takes HeteroFL's network: a plain convolution on the shortcut, which reads the activated input, and a last
norm before the pool. Batch norm keeps no running statistics (static batch norm: Diao et al., "HeteroFL", ICLR 2021), so
it uses those of the batch in inference too. 11,172,170 parameters for 10 classes, 11,167,040 of them in the authors'
10 blocks: the stem, the eight residual blocks, and the last norm.

Initial values are torch's own, with a zero bias in PreResNet18's head as in HeteroFL.
"""

from collections.abc import Iterator

from torch import Tensor, nn

from export.zoo.spec import HEAD, stack

__all__ = ["PreActivationBlock", "ResidualBlock", "preresnet18", "resnet18"]

STAGES = (64, 128, 256, 512)


def _conv3x3(in_channels: int, width: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, width, kernel_size=3, stride=stride, padding=1, bias=False)


def _conv1x1(in_channels: int, width: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(in_channels, width, kernel_size=1, stride=stride, bias=False)


def _residual_plan() -> Iterator[tuple[str, int, int, int]]:
    """Yield name, input channels, width and stride of the eight residual blocks."""
    channels, number = STAGES[0], 0
    for stage, width in enumerate(STAGES):
        for place in range(2):
            number += 1
            yield f"block{number}", channels, width, 2 if stage > 0 and place == 0 else 1
            channels = width


class ResidualBlock(nn.Module):
    """Convolution, group norm, ReLU, convolution, group norm; plus the shortcut; ReLU."""

    def __init__(self, in_channels: int, width: int, stride: int, groups: int) -> None:
        super().__init__()
        self.conv1 = _conv3x3(in_channels, width, stride)
        self.norm1 = nn.GroupNorm(groups, width)
        self.conv2 = _conv3x3(width, width)
        self.norm2 = nn.GroupNorm(groups, width)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != width:
            self.shortcut = stack({"conv": _conv1x1(in_channels, width, stride), "norm": nn.GroupNorm(groups, width)})

    def forward(self, features: Tensor) -> Tensor:
        """Add the output of the two convolutions to the shortcut."""
        change: Tensor = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(features)))))
        result: Tensor = self.relu(change + self.shortcut(features))
        return result


class PreActivationBlock(nn.Module):
    """Batch norm, ReLU, convolution, twice; plus the shortcut, untouched by norm or ReLU after the sum."""

    def __init__(self, in_channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels, track_running_stats=False)
        self.conv1 = _conv3x3(in_channels, width, stride)
        self.norm2 = nn.BatchNorm2d(width, track_running_stats=False)
        self.conv2 = _conv3x3(width, width)
        self.relu = nn.ReLU()
        self.shortcut = _conv1x1(in_channels, width, stride) if stride != 1 or in_channels != width else None

    def forward(self, features: Tensor) -> Tensor:
        """Add the output of the two convolutions to the shortcut."""
        active: Tensor = self.relu(self.norm1(features))
        shortcut: Tensor = features if self.shortcut is None else self.shortcut(active)
        change: Tensor = self.conv2(self.relu(self.norm2(self.conv1(active))))
        return change + shortcut


def resnet18(classes: int, in_channels: int, *, groups: int = 32) -> nn.Module:
    """FedSpa's ResNet18: group norm after every convolution."""
    layers: dict[str, nn.Module] = {
        "stem": stack(
            {
                "conv": _conv3x3(in_channels, STAGES[0]),
                "norm": nn.GroupNorm(groups, STAGES[0]),
                "relu": nn.ReLU(),
            }
        )
    }
    for name, channels, width, stride in _residual_plan():
        layers[name] = ResidualBlock(channels, width, stride, groups)
    layers["pool"] = nn.AdaptiveAvgPool2d(1)
    layers["flatten"] = nn.Flatten()
    layers[HEAD] = nn.Linear(STAGES[-1], classes)
    return stack(layers)


def preresnet18(classes: int, in_channels: int) -> nn.Module:
    """PerFedMask's PreResNet18: batch norm without running statistics before every convolution but the stem."""
    layers: dict[str, nn.Module] = {"stem": stack({"conv": _conv3x3(in_channels, STAGES[0])})}
    for name, channels, width, stride in _residual_plan():
        layers[name] = PreActivationBlock(channels, width, stride)
    head = nn.Linear(STAGES[-1], classes)
    nn.init.zeros_(head.bias)
    layers["norm"] = nn.BatchNorm2d(STAGES[-1], track_running_stats=False)
    layers["relu"] = nn.ReLU()
    layers["pool"] = nn.AdaptiveAvgPool2d(1)
    layers["flatten"] = nn.Flatten()
    layers[HEAD] = head
    return stack(layers)

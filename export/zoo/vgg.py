"""VGG11 with group norm (FedSpa) and VGG16 with its two 4096-wide layers (Hermes), for 32x32 images.

Network: Simonyan & Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015,
table 1, columns A and D: 3x3 convolutions with padding 1 and a bias, ReLU, five 2x2 max pools.

VGG11. FedSpa ("Achieving Personalized Federated Learning with Sparse Local Models", appendix B.2) uses group norm
instead of batch norm. The 738.5 GB that its table 1 reports fit 9,231,114 parameters for 10 classes (1,000 rounds,
10 clients, 4 bytes, both ways): one norm per convolution, and a head directly on the last 512 channels. The number of
groups is not given; 32 is the default of Wu & He, "Group Normalization", ECCV 2018.

VGG16. Hermes (Li et al., "Hermes: An Efficient Federated Learning Framework for Heterogeneous Mobile Clients", MobiCom
2021) gives only its size, 537.21 MB for CIFAR-10 (table 3). That is 4 x 134,301,514 bytes: no norm, biases everywhere,
and a classifier that reads 512 x 7 x 7 features, as for images of 224x224. A 32x32 image leaves 512 x 1 x 1, which
the usual adaptive average pool to 7x7 copies to all 49 positions, as `RepeatSpatially` does. With batch norm it would
be 537.24 MB, with a classifier on 512 features 134.4 MB. Hermes does not mention dropout; it is off by default.

Initial values (neither paper gives them): He's normal distribution over the fan-out for convolutions, N(0, 0.01)
for linear layers, zero biases. Without norms, torch's defaults would let VGG16's signal fade.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from export.zoo.spec import HEAD, stack

__all__ = ["RepeatSpatially", "vgg11", "vgg16"]

STAGES_A = ((64,), (128,), (256, 256), (512, 512), (512, 512))
STAGES_D = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
CLASSIFIER_WIDTH = 4096
CLASSIFIER_SIDE = 7


class RepeatSpatially(nn.Module):
    """Copies one value per channel to a square: an adaptive average pool from 1x1 to a larger size."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, features: Tensor) -> Tensor:
        """Expand N x C x 1 x 1 to N x C x side x side."""
        return features.expand(-1, -1, self.side, self.side)


def _features(stages: Sequence[Sequence[int]], in_channels: int, groups: int | None) -> dict[str, nn.Module]:
    blocks: dict[str, nn.Module] = {}
    channels = in_channels
    for widths in stages:
        for place, width in enumerate(widths, start=1):
            layers: dict[str, nn.Module] = {"conv": nn.Conv2d(channels, width, kernel_size=3, padding=1)}
            if groups is not None:
                layers["norm"] = nn.GroupNorm(groups, width)
            layers["relu"] = nn.ReLU()
            if place == len(widths):
                layers["pool"] = nn.MaxPool2d(kernel_size=2)
            blocks[f"block{len(blocks) + 1}"] = stack(layers)
            channels = width
    return blocks


def _hidden(in_features: int, dropout: float) -> nn.Sequential:
    layers: dict[str, nn.Module] = {"linear": nn.Linear(in_features, CLASSIFIER_WIDTH), "relu": nn.ReLU()}
    if dropout > 0:
        layers["dropout"] = nn.Dropout(dropout)
    return stack(layers)


def _initialised(model: nn.Sequential) -> nn.Sequential:
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=0.01)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    return model


def vgg11(classes: int, in_channels: int, *, groups: int = 32) -> nn.Module:
    """FedSpa's VGG11: eight convolutions with group norm, then the head."""
    layers = _features(STAGES_A, in_channels, groups)
    return _initialised(stack({**layers, "flatten": nn.Flatten(), HEAD: nn.Linear(512, classes)}))


def vgg16(classes: int, in_channels: int, *, dropout: float = 0.0) -> nn.Module:
    """Hermes' VGG16: thirteen convolutions without norms, two layers of 4096, then the head."""
    layers = _features(STAGES_D, in_channels, groups=None)
    layers["spread"] = RepeatSpatially(CLASSIFIER_SIDE)
    layers["flatten"] = nn.Flatten()
    layers["fc1"] = _hidden(512 * CLASSIFIER_SIDE**2, dropout)
    layers["fc2"] = _hidden(CLASSIFIER_WIDTH, dropout)
    layers[HEAD] = nn.Linear(CLASSIFIER_WIDTH, classes)
    return _initialised(stack(layers))

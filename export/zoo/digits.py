"""Two small networks for the 8x8 digits that scikit-learn ships, for experiments and the demo; they come from no paper.

The convolutional one has group norm with one group, which keeps no running statistics and works at any width. Initial
values are torch's own. Both are exported in `edgefl/simulation/models`, so that they can be trained without torch;
`python -m tests.export.test_built_in_models` writes them again.
"""

from torch import nn

from export.zoo.spec import HEAD, stack

__all__ = ["digits_cnn", "digits_mlp"]

WIDTHS = (48, 96, 192)
HIDDEN = 32


def digits_cnn(classes: int, in_channels: int) -> nn.Module:
    """Three convolutions, 48-96-192, each with a norm and a pool."""
    layers: dict[str, nn.Module] = {}
    channels = in_channels
    for number, width in enumerate(WIDTHS, start=1):
        layers[f"block{number}"] = stack(
            {
                "conv": nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False),
                "norm": nn.GroupNorm(1, width),
                "relu": nn.ReLU(),
                "pool": nn.MaxPool2d(kernel_size=2),
            }
        )
        channels = width
    return stack({**layers, "flatten": nn.Flatten(), HEAD: nn.Linear(channels, classes)})


def digits_mlp(classes: int, in_channels: int) -> nn.Module:
    """A perceptron, 64-32-10."""
    features = in_channels * 8 * 8
    hidden = stack({"linear": nn.Linear(features, HIDDEN), "relu": nn.ReLU()})
    return stack({"flatten": nn.Flatten(), "fc1": hidden, HEAD: nn.Linear(HIDDEN, classes)})

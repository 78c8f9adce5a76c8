"""The model of the example federations: a small convolutional network for scikit-learn's 8 x 8 digits.

edgefl export --model examples.coordinator.digits_cnn:digits_cnn --input 1,8,8 --out examples/coordinator/cnn.zip
"""

from torch import nn  # noqa: TID251  a user's model is torch's

__all__ = ["digits_cnn"]


def digits_cnn() -> nn.Module:
    """Two convolutions with batch norm, then ten scores: 6,138 trained parameters."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 4, 10)),
    )

"""The three-layer perceptron of Hermes for human activity recognition.

Paper: Li et al., "Hermes: An Efficient Federated Learning Framework for Heterogeneous Mobile Clients", MobiCom 2021,
section 5.1: three fully connected layers on the 561 features of UCI HAR. Its table 4 lists widths 300 and 100, but the
4.41 MB of its table 3 cannot be those (0.80 MB); 561-1024-512-6 with biases has 1,103,366 parameters, 4.41 MB, so
these widths are used.

Initial values are torch's own; the paper gives none.
"""

from torch import nn

from export.zoo.spec import HEAD, stack

__all__ = ["mlp"]

WIDTHS = (1024, 512)


def mlp(classes: int, in_channels: int) -> nn.Module:
    """Hermes' perceptron; `in_channels` is the number of features."""
    layers: dict[str, nn.Module] = {}
    features = in_channels
    for number, width in enumerate(WIDTHS, start=1):
        layers[f"fc{number}"] = stack({"linear": nn.Linear(features, width), "relu": nn.ReLU()})
        features = width
    layers[HEAD] = nn.Linear(features, classes)
    return stack(layers)

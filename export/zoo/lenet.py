"""LeNet5 in the form that Caffe gave it: 20 and 50 channels, 500 hidden units.

Paper: FedSpa, "Achieving Personalized Federated Learning with Sparse Local Models", appendix B.2, for the 26 letters of
EMNIST: Caffe's sizes, no padding and max pools. Its footnote names an implementation of SNIP, which we have not seen.
As is usual in work on pruning, there is a ReLU after each convolution; Caffe's own file
(examples/mnist/lenet_train_test.prototxt) has only the one after the hidden layer. Either way there are 431,080
parameters for 10 classes, 439,096 for 26.

Initial values are torch's own; neither source asks for others that matter (Caffe's Xavier filler is close to them).
"""

from torch import nn

from export.zoo.spec import HEAD, stack

__all__ = ["lenet5"]

IMAGE_SIZE = 28


def _block(in_channels: int, width: int) -> nn.Sequential:
    conv = nn.Conv2d(in_channels, width, kernel_size=5)
    # Of a quarter of the entries, and the same numbers as before the pool.
    return stack({"conv": conv, "pool": nn.MaxPool2d(kernel_size=2), "relu": nn.ReLU()})


def lenet5(classes: int, in_channels: int) -> nn.Module:
    """Caffe's LeNet5 for 28x28 images, with a ReLU after every layer but the head."""
    left = ((IMAGE_SIZE - 4) // 2 - 4) // 2
    return stack(
        {
            "block1": _block(in_channels, 20),
            "block2": _block(20, 50),
            "flatten": nn.Flatten(),
            "fc1": stack({"linear": nn.Linear(50 * left * left, 500), "relu": nn.ReLU()}),
            HEAD: nn.Linear(500, classes),
        }
    )

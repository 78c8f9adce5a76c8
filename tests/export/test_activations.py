"""Every activation: values and gradients as in PyTorch."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from edgefl.errors import ExportError
from tests.export.parity import Exported, assert_close, check

EXAMPLE = torch.randn(3, 6)


class Between(nn.Module):
    """An activation between two linear layers, on numbers of every size that matters to it."""

    def __init__(self, activation: Callable[[torch.Tensor], torch.Tensor], spread: float = 4.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 12), nn.Linear(12, 4)
        self.activation = activation
        nn.init.normal_(self.first.weight, std=spread)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(self.activation(self.first(x)))
        return result


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": nn.ReLU(),
    "relu in place": nn.ReLU(inplace=True),
    "relu6": nn.ReLU6(),
    "functional relu6": functional.relu6,
    "hardtanh": nn.Hardtanh(-2.0, 3.0, inplace=True),
    "leaky relu": nn.LeakyReLU(0.1),
    "steep leaky relu in place": nn.LeakyReLU(1.5, inplace=True),
    "elu": nn.ELU(),
    "elu of another size in place": nn.ELU(0.7, inplace=True),
    "selu": nn.SELU(),
    "celu": nn.CELU(0.5),
    "gelu": nn.GELU(),
    "gelu by tanh": nn.GELU("tanh"),
    "sigmoid": nn.Sigmoid(),
    "sigmoid in place": torch.sigmoid_,
    "tanh": nn.Tanh(),
    "silu": nn.SiLU(),
    "silu in place": nn.SiLU(inplace=True),
    "hardsigmoid": nn.Hardsigmoid(),
    "hardswish": nn.Hardswish(),
    "hardswish in place": nn.Hardswish(inplace=True),
    "softplus": nn.Softplus(),
    "softplus with a low threshold": nn.Softplus(beta=2.0, threshold=1.0),
    "softmax": nn.Softmax(dim=-1),
    "log softmax": nn.LogSoftmax(dim=1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_and_its_gradient_match(name: str) -> None:
    check(Between(ACTIVATIONS[name]), EXAMPLE, classes=4)


@pytest.mark.parametrize("name", ["relu", "relu6", "hardtanh", "leaky relu", "elu", "hardswish", "hardsigmoid", "celu"])
def test_gradients_match_at_the_corners(name: str) -> None:
    """Exactly at 0, 6, -3, ...: where two branches meet, PyTorch decides."""
    model = Between(ACTIVATIONS[name])
    exported = Exported(model, EXAMPLE)
    weights = exported.weights()
    weights["first.weight"][...] = 0
    corners = torch.tensor([0.0, -0.0, 6.0, -3.0, 3.0, -2.0, 1.0, -1.0, 5.0, 1e-30, -1e-30, 2.0])
    weights["first.bias"][...] = corners.numpy()
    x, y = torch.randn(5, 6), torch.tensor([0, 1, 2, 3, 0])
    assert_close(exported.run(weights, x, y), exported.torch_run(weights, x, y))


def test_softmax_over_an_inner_axis_matches() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.Conv2d(2, 6, 1), nn.Linear(6 * 9, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x).softmax(1) + self.layer(x).log_softmax(2)
            result: torch.Tensor = self.head(y.flatten(1))
            return result

    check(Attention(), torch.randn(3, 2, 3, 3), classes=3)


def test_a_softmax_in_another_dtype_is_refused() -> None:
    with pytest.raises(ExportError, match=r"softmax in torch.float64 .* Omit its dtype"):
        check(Between(lambda x: x.softmax(1, dtype=torch.float64).float()), EXAMPLE, classes=4)

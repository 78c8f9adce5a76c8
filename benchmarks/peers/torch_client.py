"""The models of the comparison and a client's training in plain PyTorch: what the bare loop and Flower's clients do.

Tensors have the names that EdgeFL's export gives them; a test holds the two together.
"""

from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.peers.case import Case, read_case

__all__ = ["SHAPES", "Client", "build", "client_in", "floats", "share_right"]

SHAPES = {"mlp": (1, 8, 8), "cnn4": (1, 28, 28)}
"""Of a sample."""
_WIDTHS = (32, 64, 128, 256)
_COUNTER = "num_batches_tracked"


def build(name: str) -> nn.Module:
    """Return a model: a perceptron 64-32-10, or FedMRN's four convolutions."""
    return _mlp() if name == "mlp" else _cnn4()


def _mlp() -> nn.Module:
    block = nn.Sequential(OrderedDict(linear=nn.Linear(64, 32), relu=nn.ReLU()))
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), block1=block, head=nn.Linear(32, 10)))


def _cnn4() -> nn.Module:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    before = 1
    for number, width in enumerate(_WIDTHS, start=1):
        conv = nn.Conv2d(before, width, kernel_size=3, padding=1, bias=False)
        block = OrderedDict(conv=conv, norm=nn.BatchNorm2d(width), relu=nn.ReLU(), pool=nn.MaxPool2d(2))
        layers[f"block{number}"] = nn.Sequential(block)
        before = width
    layers["flatten"], layers["head"] = nn.Flatten(), nn.Linear(before, 10, bias=False)
    for layer in layers.values():
        for module in layer.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
    return nn.Sequential(layers)


def floats(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return everything that is averaged: weights and running statistics."""
    return {name: tensor for name, tensor in model.state_dict().items() if not name.endswith(_COUNTER)}


class Client:
    """Every client, one at a time: it has the model and the data in memory, and is told which client to be."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        self.case, self._x, self._y, self.initial = read_case(folder)
        self._model = build(self.case.model)

    def train(self, number: int, weights: Mapping[str, torch.Tensor], seed: int) -> dict[str, torch.Tensor]:
        """Train one epoch from these weights on a client's samples, and return the new ones."""
        case, model = self.case, self._model
        model.load_state_dict(weights, strict=False)
        model.train()
        optimiser = torch.optim.SGD(model.parameters(), lr=case.rate)
        own = slice(number * case.samples, (number + 1) * case.samples)
        x, y = _numbers(case, self._x[own]), torch.from_numpy(self._y[own])
        order = torch.randperm(case.samples, generator=torch.Generator().manual_seed(seed))
        for chosen in torch.split(order, case.batch):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return floats(model)


@cache
def client_in(folder: Path) -> Client:
    """Return the client of this process. Ray's workers find it here, as they import modules by their names."""
    return Client(folder)


def _numbers(case: Case, raw: NDArray[np.uint8]) -> torch.Tensor:
    return torch.from_numpy((raw.astype(np.float32) / 255 - case.mean) / case.deviation)


def share_right(case: Case, weights: Mapping[str, NDArray[Any]], x: NDArray[np.uint8], y: NDArray[np.int64]) -> float:
    """Return how often a model is right about some images."""
    model = build(case.model)
    model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()}, strict=False)
    model.eval()
    with torch.no_grad():
        return float((model(_numbers(case, x)).argmax(1) == torch.tensor(y)).float().mean())

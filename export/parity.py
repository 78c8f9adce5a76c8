"""Does an exported training graph compute what PyTorch computes? The check that `edgefl export` runs by default.

Gradients of a network with ReLU or max pooling jump where a pre-activation is zero, and single precision may land on
either side: then PyTorch in single precision differs from PyTorch in double precision, and deep networks with batch
norm do so on most random batches. A wrong graph is wrong on every batch, so the check tries several, compares with
double precision, and reports the best together with PyTorch's own error there. It also moves biases and norms a
little: fresh ones are zero, which puts every silent channel exactly on the edge.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from edgefl.artifacts.cut import GRADIENT
from edgefl.errors import MissingDependencyError

__all__ = ["TOLERANCE", "Parity", "check_parity", "off_the_edge"]

TOLERANCE = 1e-4
TRIES = 12

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Parity:
    """How far a training graph is from PyTorch in double precision, and how far PyTorch in single precision is.

    The error of a gradient is its largest difference relative to the largest entry of its tensor.
    """

    loss_error: float
    gradient_error: float
    worst: str
    """The tensor with the largest error."""
    own_error: float
    """The largest error of PyTorch's own gradients in single precision."""

    @property
    def holds(self) -> bool:
        """Whether the graph is as right as can be asked: within the tolerance, or about as near as PyTorch is."""
        return self.loss_error <= TOLERANCE and self.gradient_error <= max(TOLERANCE, 3 * self.own_error)


def check_parity(model: nn.Module, graph: bytes, example: torch.Tensor, *, batch: int = 4) -> Parity:
    """Compare a training graph with PyTorch on random batches, and report the calmest of them."""
    model = off_the_edge(model)
    exact = copy.deepcopy(model).double()
    session = _session(graph)
    best: Parity | None = None
    for seed in range(TRIES):
        x, y = _batch(model, example, batch, seed)
        truth = _gradients(exact, x.double() if x.is_floating_point() else x, y)
        own, _ = _largest_error(_gradients(copy.deepcopy(model), x, y), truth)
        found = _run(session, model, x, y)
        error, worst = _largest_error(found, truth)
        loss_error = abs(float(found["loss"]) - float(truth["loss"])) / max(abs(float(truth["loss"])), 1e-12)
        parity = Parity(loss_error, error, worst, own)
        if best is None or parity.gradient_error < best.gradient_error:
            best = parity
        if best.gradient_error <= TOLERANCE:
            break
    assert best is not None  # there was at least one try
    return best


def off_the_edge(model: nn.Module) -> nn.Module:
    """Return a copy whose biases and norms are off zero, where silent channels sit on the edge of a ReLU."""
    generator = torch.Generator().manual_seed(0)
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in moved.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return moved


def _batch(model: nn.Module, example: torch.Tensor, batch: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, *example.shape[1:])
    if example.is_floating_point():
        x = torch.randn(shape, generator=generator)
    else:
        x = torch.randint(0, int(example.max()) + 1, shape, generator=generator)
    with torch.no_grad():
        classes = copy.deepcopy(model).train()(x).shape[1]
    return x, torch.randint(0, classes, (batch,), generator=generator)


def _gradients(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Arrays:
    model.train().zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()  # type: ignore[no-untyped-call]
    found = {GRADIENT + n: p.grad.numpy().copy() for n, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach().numpy(), **found}


def _session(graph: bytes) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise MissingDependencyError("onnxruntime", action="The parity check", extra="device") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph, options)


def _run(session: Any, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Arrays:
    stored = dict(model.named_parameters()) | dict(model.named_buffers())
    feed = {"x": x.numpy(), "y": y.numpy(), **{name: tensor.detach().numpy() for name, tensor in stored.items()}}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {i.name: feed[i.name] for i in session.get_inputs()}), strict=True))


def _largest_error(found: Arrays, truth: Arrays) -> tuple[float, str]:
    scales = {name: float(np.abs(truth[name]).max()) for name in truth if name.startswith(GRADIENT)}
    # A gradient that is zero but for rounding, as that of a bias before a norm, is measured against the others.
    least = 1e-4 * max(scales.values())
    errors = {name: float(np.abs(found[name] - truth[name]).max()) / max(scales[name], least) for name in scales}
    worst = max(errors, key=lambda name: errors[name])
    return errors[worst], worst.removeprefix(GRADIENT)

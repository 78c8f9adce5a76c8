"""Checks that an engine computes what PyTorch computes; `edgefl export` runs this by default.

    reference    a batch and weights away from every kink (see `export.kink_avoidance`), with PyTorch's loss and
                 gradients for them in double precision
    compare      the errors of an engine's loss and gradients, and those of PyTorch's own in single precision

An error is the largest difference relative to the largest entry of its tensor. A gradient that is zero except for
rounding, such as that of a bias before a norm, has no scale of its own: it is compared with the largest gradient.
"""

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from edgefl.artifacts.cut import GRADIENT
from edgefl.masks import Mask, freeze
from edgefl.model_graph import ModelGraph
from export.engines import Arrays, onnx_step
from export.kink_avoidance import smooth_batch
from export.ops.dropout import SEED, seed_input
from export.shared_dropout_noise import SharedDropoutNoise

__all__ = [
    "TOLERANCE",
    "Parity",
    "Reference",
    "check_parity",
    "compare",
    "perturb_biases",
    "random_batch",
    "random_submodel",
    "reference",
    "state_of",
]

TOLERANCE = 1e-4
TRIES = 4
VANISHED = 1e-9
"""A gradient smaller than this, relative to the largest of all, is zero except for rounding."""


@dataclass(frozen=True, slots=True)
class Parity:
    """The errors of an engine against PyTorch in double precision, with those of PyTorch in single precision."""

    loss_error: float
    gradient_error: float
    worst: str
    """The tensor with the largest error."""
    own_error: float
    """The largest error of PyTorch's own gradients in single precision."""

    @property
    def holds(self) -> bool:
        """Whether the engine is within the tolerance, or about as accurate as PyTorch."""
        return self.loss_error <= TOLERANCE and self.gradient_error <= max(TOLERANCE, 3 * self.own_error)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The inputs of an engine, and what PyTorch computes from them."""

    inputs: Arrays
    """x, y, the dropout seed, parameters and running statistics, in single precision."""
    truth: Arrays
    """Loss and gradients in double precision, named like those of a training graph."""
    own_errors: Mapping[str, float]
    """The errors of PyTorch's gradients in single precision."""
    margin: float
    """The batch's distance from the nearest kink, relative to what goes into it."""


def check_parity(model: nn.Module, graph: bytes, example: Tensor, *, batch: int = 4) -> Parity:
    """Compare a training graph with PyTorch on a random batch; if it fails, on a few more, and return the best.

    A model may have kinks that cannot be avoided, but a wrong graph is wrong on every batch.
    """
    model = perturb_biases(model)
    step = onnx_step(graph)
    best: Parity | None = None
    for seed in range(TRIES):
        given = reference(model, example, batch=batch, seed=seed)
        parity = compare(given, step(given.inputs))
        if best is None or parity.gradient_error < best.gradient_error:
            best = parity
        if best.gradient_error <= TOLERANCE:
            break
    assert best is not None  # there was at least one try
    return best


def perturb_biases(model: nn.Module) -> nn.Module:
    """Return a copy with random biases and norms: at zero, channels without signal lie on the kink of a ReLU."""
    generator = torch.Generator().manual_seed(0)
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in moved.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return moved


def reference(model: nn.Module, example: Tensor, *, batch: int = 4, seed: int = 0) -> Reference:
    """Run PyTorch on a random batch, with the model's biases shifted slightly away from every kink."""
    generator = torch.Generator().manual_seed(seed)
    exact = copy.deepcopy(model).double().train()
    smooth = smooth_batch(exact, lambda: random_batch(example, batch, generator), seed=seed)
    single = copy.deepcopy(exact).float()
    inputs = {"x": smooth.x.numpy(), SEED: seed_input(seed), **state_of(single)}
    exact = copy.deepcopy(single).double()  # the same rounded biases for both
    labels = torch.randint(0, 2**31, (batch,), generator=generator)
    truth = _gradients(exact, smooth.x.double() if smooth.x.is_floating_point() else smooth.x, labels, seed)
    own = _errors(_gradients(single, smooth.x, labels, seed), truth)
    return Reference(inputs | {"y": truth["y"]}, truth, own, smooth.margin)


def compare(given: Reference, found: Arrays, trained: Collection[str] | None = None) -> Parity:
    """Compare an engine's loss and gradients with a reference.

    An engine for some trained tensors must return the gradients of these and no others.
    """
    loss = float(given.truth["loss"])
    loss_error = abs(float(found["loss"]) - loss) / max(abs(loss), 1e-12)
    expected = {name for name in given.truth if name.startswith(GRADIENT)}
    if trained is not None:
        expected &= {GRADIENT + name for name in trained}
    wrong = expected ^ {name for name in found if name.startswith(GRADIENT)}
    if wrong:
        return Parity(loss_error, float("inf"), min(wrong).removeprefix(GRADIENT), float("nan"))
    errors = _errors(found, given.truth)
    worst = max(errors, key=lambda name: errors[name])
    own_error = max(given.own_errors[name] for name in errors)
    return Parity(loss_error, errors[worst], worst.removeprefix(GRADIENT), own_error)


def random_batch(example: Tensor, batch: int, generator: torch.Generator) -> Tensor:
    """Draw a batch like the example: normal numbers, or whole ones up to the example's largest."""
    shape = (batch, *example.shape[1:])
    if example.is_floating_point():
        return torch.randn(shape, generator=generator)
    return torch.randint(0, int(example.max()) + 1, shape, generator=generator)


def random_submodel(graph: ModelGraph, generator: np.random.Generator, *, frozen: float = 0.0, least: int = 2) -> Mask:
    """Return a mask with random channels of every group, and about a share of the layers frozen, never all.

    A norm removes the scale of a single channel, and with it the gradient of what produced the channel: only rounding
    remains, in PyTorch too. So at least two channels are kept by default.
    """
    kept = {}
    for group in graph.groups:
        most = group.width // group.multiple_of
        lowest = min(most, -(-least // group.multiple_of))
        if group.fixed is None:
            steps = int(generator.integers(lowest, most + 1))
            kept[group.name] = generator.permutation(group.width)[: steps * group.multiple_of]
    mask = Mask.of(graph, kept=kept)
    if frozen:
        layers = generator.permutation(graph.trainable_layers)
        mask = freeze(mask, [str(layer) for layer in layers[1:] if generator.random() < frozen])
    return mask


def state_of(model: nn.Module) -> dict[str, npt.NDArray[Any]]:
    """Return copies of a model's parameters and running statistics."""
    stored = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name: tensor.detach().numpy().copy() for name, tensor in stored.items()}


def _gradients(model: nn.Module, x: Tensor, labels: Tensor, seed: int) -> Arrays:
    """Return loss, gradients, and the labels modulo the number of classes."""
    with SharedDropoutNoise(seed):
        logits = model(x)
    y = labels % logits.shape[1]
    loss = nn.functional.cross_entropy(logits, y)
    loss.backward()  # type: ignore[no-untyped-call]
    found = {GRADIENT + n: p.grad.numpy() for n, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach().numpy(), "y": y.numpy(), **found}


def _errors(found: Arrays, truth: Arrays) -> dict[str, float]:
    """Return the relative error of every gradient that was found."""
    sizes = {name: float(np.abs(truth[name]).max()) for name in truth if name.startswith(GRADIENT)}
    largest = max(sizes.values())
    sizes = {name: size if size > VANISHED * largest else largest for name, size in sizes.items()}
    return {name: float(np.abs(found[name] - truth[name]).max()) / sizes[name] for name in sizes if name in found}

"""Per-FedAvg's updates against PyTorch's own gradients and Hessian, on a real network and real engines."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from edgefl.local_rules import Batch, Descent, Maml, TrainingInput
from edgefl.local_rules.maml import MetaGradient
from edgefl.masks import full_mask
from tests.export.local_rules.engines import OnnxStep, TorchStep, batches, exported, network, run_rule

ALPHA, BETA = 0.1, 0.2
pytestmark = pytest.mark.usefixtures("one_thread")


def algorithm_1(data: list[Batch], variant: MetaGradient) -> dict[str, np.ndarray]:
    """Updates with PyTorch's exact product of Hessian and vector: a second derivative of the loss."""
    model = network().train()
    names = [name for name, _ in model.named_parameters()]
    w = [parameter.detach().clone() for parameter in model.parameters()]

    def gradient(weights: list[torch.Tensor], batch: Batch, along: list[torch.Tensor] | None = None) -> Any:
        """Return the gradient, or with `along` the Hessian's product with it."""
        leaves = [array.clone().requires_grad_() for array in weights]
        logits = functional_call(model, dict(zip(names, leaves, strict=True)), (torch.from_numpy(batch.x),))
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(batch.y))
        found = torch.autograd.grad(loss, leaves, create_graph=along is not None)
        return found if along is None else torch.autograd.grad(found, leaves, along)

    for first in range(0, len(data), variant.batches):
        d = gradient(w, data[first])
        g = gradient([array - ALPHA * move for array, move in zip(w, d, strict=True)], data[first + 1])
        if variant is MetaGradient.HESSIAN_FREE:
            product = gradient(w, data[first + 2], list(g))
            g = [array - ALPHA * bend for array, bend in zip(g, product, strict=True)]
        w = [array - BETA * move for array, move in zip(w, g, strict=True)]
    return {name: tensor.numpy() for name, tensor in zip(names, w, strict=True)}


@pytest.mark.parametrize("variant", MetaGradient)
@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_two_updates_are_those_of_exact_derivatives(variant: MetaGradient, engine: str) -> None:
    found, data = exported(), batches(2 * variant.batches)
    part = TrainingInput(full_mask(found.graph), found.weights(), seed=1, steps=len(data))
    rule = Maml(descent=Descent(learning_rate=BETA), variant=variant, inner_rate=ALPHA, difference=0.01)
    step = TorchStep(network()) if engine == "torch" else OnnxStep(found)
    _, update = run_rule(rule, part, step, data)
    expected = algorithm_1(data, variant)
    for name, array in expected.items():
        moved = float(np.abs(array - part.weights[name]).max())
        assert np.abs(update.weights[name] - array).max() < 2e-3 * moved + 1e-6, name
    if variant is MetaGradient.HESSIAN_FREE:
        flat = Maml(descent=rule.descent, variant=variant, inner_rate=ALPHA, difference=1e-9)  # beside w is w
        _, without = run_rule(flat, part, step, data)
        assert max(float(np.abs(without.weights[name] - expected[name]).max()) for name in expected) > 1e-3

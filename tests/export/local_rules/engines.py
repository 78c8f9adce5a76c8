"""Training steps for rules: PyTorch itself, and the exported ONNX graph on onnxruntime."""

from typing import Any

import numpy as np
import torch
from torch import nn

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.local_rules import Batch, LocalRule, State, StepResult, TrainingInput, Update
from edgefl.masks import Weights
from edgefl.model_graph import TensorRole
from tests.export.parity import Exported


class TorchStep:
    """Loss, gradients and running statistics by PyTorch, at the weights that it is given."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model.train()
        self.parameters = dict(model.named_parameters())

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        leaves = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}
        trained = {name: leaf.requires_grad_() for name, leaf in leaves.items() if name in self.parameters}
        logits = torch.func.functional_call(self.model, leaves, (torch.from_numpy(batch.x),))
        y = torch.from_numpy(batch.y)
        loss = nn.functional.cross_entropy(logits, y)
        loss.backward()  # type: ignore[no-untyped-call]
        gradients = {name: leaf.grad.numpy() for name, leaf in trained.items() if leaf.grad is not None}
        statistics = {name: leaf.numpy() for name, leaf in leaves.items() if name not in self.parameters}
        return StepResult(float(loss.detach()), (logits.argmax(1) == y).numpy(), gradients, statistics)


class OnnxStep:
    """The same by the exported training graph."""

    def __init__(self, exported: Exported) -> None:
        self.exported = exported

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        found = self.exported.run(dict(weights), torch.from_numpy(batch.x), torch.from_numpy(batch.y))
        gradients = {n.removeprefix(GRADIENT): array for n, array in found.items() if n.startswith(GRADIENT)}
        statistics = {n.removeprefix(NEW_STATISTIC): array for n, array in found.items() if n.startswith(NEW_STATISTIC)}
        return StepResult(float(found["loss"]), found["correct"], gradients, statistics)


def network() -> nn.Module:
    """A small network with everything that rules tell apart: kernels, matrices, a norm with statistics, biases."""
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 7),
        nn.Tanh(),
        nn.Linear(7, 3),
    )


def exported() -> Exported:
    return Exported(network(), torch.randn(13, 1, 6, 6))


def batches(count: int) -> list[Batch]:
    generator = np.random.default_rng(11)
    return [
        Batch(generator.standard_normal((8, 1, 6, 6)).astype(np.float32), generator.integers(0, 3, 8))
        for _ in range(count)
    ]


def run_rule(rule: LocalRule, part: TrainingInput, step: Any, data: list[Batch]) -> tuple[State, Update]:
    """A whole round over the given batches."""
    state = rule.begin(part)
    for batch in data:
        rule.step(part, state, batch, step)
    return state, rule.finish(part, state, data[-1], step)


def parameters_of(part: TrainingInput) -> list[str]:
    return [t.name for t in part.mask.graph.tensors if t.role is not TensorRole.STATISTIC]

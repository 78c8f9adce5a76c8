"""Batches that are not full: what a program computes of r samples is what PyTorch does, whatever fills the batch up."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.errors import ExportError
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import SAMPLE_WEIGHTS
from export.describe_graph import describe
from export.executorch import Runner, TrainingProgram, run_step, training_program
from export.losses import LABEL_MASK, Loss
from export.trace_model import trace_model
from export.zoo.seeding import seeded
from tests.export.parity import assert_close

BATCH = 6

pytestmark = pytest.mark.usefixtures("one_thread")


def batch_norms() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(2, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 5, 3, stride=2), nn.BatchNorm2d(5, momentum=0.3), nn.ReLU(), nn.Flatten()),
        nn.Linear(20, 4),
    )


def flat_batch_norm() -> nn.Module:
    return nn.Sequential(nn.Linear(7, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, 4))


def group_norms() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(2, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(8 * 25, 4)),
    )


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 4))


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], Loss, tuple[int, ...]]] = {
    "batch norm": (batch_norms, (2, 10, 10), Loss.CROSS_ENTROPY, (1, 2, 5, BATCH)),
    "flat batch norm": (flat_batch_norm, (7,), Loss.CROSS_ENTROPY, (2, 5, BATCH)),  # torch refuses one sample
    "group norm": (group_norms, (2, 10, 10), Loss.CROSS_ENTROPY, (1, 2, 5, BATCH)),
    "squared error": (plain, (7,), Loss.MEAN_SQUARED_ERROR, (1, 2, 5, BATCH)),
    "masked loss": (plain, (7,), Loss.MASKED_CROSS_ENTROPY, (1, 2, 5, BATCH)),
}


class Case:
    """A small network with its program."""

    def __init__(self, name: str) -> None:
        build, shape, self.loss, self.sizes = CASES[name]
        with seeded(3):
            self.model = build().train()
            self.x = torch.randn(BATCH, *shape)
            self.y = torch.randn(BATCH, 4) if self.loss is Loss.MEAN_SQUARED_ERROR else torch.randint(0, 4, (BATCH,))
        self.labels = torch.tensor([1.0, 1.0, 0.0, 1.0]) if self.loss is Loss.MASKED_CROSS_ENTROPY else torch.ones(4)
        self.graph: ModelGraph = describe(trace_model(self.model, self.x, training=True), name)
        self.program: TrainingProgram = training_program(self.model, self.x, Mask.of(self.graph), self.loss)
        self.runner = Runner(self.program.pte)
        stored = self.model.state_dict()
        self.weights = {tensor: stored[tensor].clone() for tensor in self.graph.tensor}

    def ours(self, real: int, fill: float) -> dict[str, Any]:
        """A step of the first samples, in a batch that is filled up with a value."""
        x, y = self.x.clone(), self.y.clone()
        x[real:] = fill
        y[real:] = 0
        counts = np.zeros(BATCH, np.float32)
        counts[:real] = 1 / real
        given = {"x": x.numpy(), "y": y.numpy(), SAMPLE_WEIGHTS: counts, LABEL_MASK: self.labels.numpy()}
        found = run_step(self.program, self.runner, given | {n: w.numpy() for n, w in self.weights.items()})
        return found | {name: value[:real] for name, value in found.items() if name == "correct"}

    def torchs(self, real: int) -> dict[str, Any]:
        """A step of these samples alone, by PyTorch."""
        self.model.load_state_dict(self.weights, strict=False)
        self.model.zero_grad()
        x, y = self.x[:real], self.y[:real]
        output = self.model(x) * self.labels
        squared = self.loss is Loss.MEAN_SQUARED_ERROR
        loss = nn.functional.mse_loss(output, y) if squared else nn.functional.cross_entropy(output, y)
        loss.backward()  # type: ignore[no-untyped-call]
        found = {"loss": loss.detach().numpy()}
        found |= {} if squared else {"correct": (output.argmax(1) == y).numpy()}
        found |= {GRADIENT + n: p.grad.numpy() for n, p in self.model.named_parameters() if p.grad is not None}
        buffers = {n: b.numpy().copy() for n, b in self.model.named_buffers() if n in self.graph.tensor}
        return found | {NEW_STATISTIC + name: buffer for name, buffer in buffers.items()}


@cache
def case(name: str) -> Case:
    return Case(name)


@pytest.mark.parametrize(("name", "real"), [(name, real) for name, (*_, sizes) in CASES.items() for real in sizes])
def test_a_step_of_some_samples_is_torchs_of_these_samples(name: str, real: int) -> None:
    given = case(name)
    ours, theirs = given.ours(real, 0.0), given.torchs(real)
    assert list(ours) == list(theirs)
    assert_close(ours, theirs)


@pytest.mark.parametrize("name", CASES)
def test_what_fills_a_batch_contributes_nothing_at_all(name: str) -> None:
    given = case(name)
    plain, wild = given.ours(2, 0.0), given.ours(2, 1e4)
    for output in plain:
        np.testing.assert_array_equal(plain[output], wild[output], err_msg=output)


class Folded(nn.Module):
    """A network whose batch norm sees two rows of each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.norm, self.head = nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(10, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.norm(self.inside(x.reshape(-1, 3))).reshape(x.shape[0], -1))
        return scores


def test_samples_that_are_not_on_the_first_axis_of_a_batch_norm_are_refused() -> None:
    model, x = Folded(), torch.randn(BATCH, 6)
    graph = describe(trace_model(model, x, training=True), "folded")
    with pytest.raises(ExportError, match="sees 12 samples in a batch of 6"):
        training_program(model, x, Mask.of(graph))

"""Inference programs predict what the model predicts in eval mode, at every width."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.errors import ExportError
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from export.describe_graph import describe
from export.executorch import Runner, inference_program, submodel, traced_submodel
from export.executorch.folding import fold_batch_norms
from export.executorch.quiet_output import quiet
from export.trace_model import trace_model
from export.zoo.seeding import seeded
from tests.export.parity import random_mask

pytestmark = pytest.mark.usefixtures("one_thread")


class Branches(nn.Module):
    """A norm that can be folded, one whose input is read twice, and a layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.late = nn.BatchNorm2d(8)  # constructors say nothing about the order of calls
        self.early = nn.BatchNorm2d(8)
        self.stem = nn.Conv2d(3, 8, 3, bias=False)
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.twice = nn.Conv2d(8, 8, 1)
        self.shared = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.early(self.stem(x)).relu()
        y = self.deep(x)
        x = (self.late(y) + y).relu()
        x = self.shared(self.twice(x)) + self.twice(x)
        scores: torch.Tensor = self.head(x.mean((2, 3)))
        return scores


def trained(model: nn.Module) -> nn.Module:
    """Give norms weights and running statistics that are not those of fresh ones."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.running_var):
                assert tensor is not None
                nn.init.uniform_(tensor, 0.5, 2.0)
            for tensor in (module.bias, module.running_mean):
                assert tensor is not None
                nn.init.normal_(tensor)
    return model


def described(model: nn.Module, x: torch.Tensor) -> tuple[ModelGraph, dict[str, Any]]:
    graph = describe(trace_model(model, x, training=True), "model")
    stored = model.state_dict()
    return graph, {name: stored[name].numpy().copy() for name in graph.tensor}


def branches() -> tuple[nn.Module, ModelGraph, dict[str, Any], torch.Tensor]:
    with seeded(0):
        model, x = trained(Branches()), torch.randn(3, 3, 9, 9)
    return model, *described(model, x), x


def test_predictions_are_torchs_at_full_width_and_at_a_random_mask() -> None:
    model, graph, weights, x = branches()
    sizes = []
    for mask in (Mask.of(graph), random_mask(graph, np.random.default_rng(1))):
        program = inference_program(model, x, mask, weights)
        expected = submodel(model, mask, weights).eval()(x[:1]).detach().numpy()
        (found,) = Runner(program.pte)(x[:1].numpy())
        assert program.batch == 1
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
        sizes.append(len(program.pte))
    assert sizes[1] < sizes[0]


def test_only_norms_that_may_be_folded_are_folded() -> None:
    model, graph, weights, x = branches()
    expected = model.eval()(x)
    with quiet():
        small = traced_submodel(model, x, Mask.of(graph), weights, training=False)
        left = fold_batch_norms(small)
    assert left == ["'late' (BatchNorm2d)", "'shared' (BatchNorm2d)"]
    torch.testing.assert_close(small(x), expected, rtol=1e-4, atol=1e-5)


def test_norms_without_running_statistics_stay_and_use_the_batch() -> None:
    with seeded(0):
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.Flatten(), nn.Linear(64, 3)
        )
        x = torch.randn(2, 1, 6, 6)
    graph, weights = described(model, x)
    program = inference_program(model, x, Mask.of(graph), weights, batch=2)
    two = x[:1].expand(2, -1, -1, -1).contiguous() + torch.arange(2.0).reshape(2, 1, 1, 1)
    (found,) = Runner(program.pte)(two.numpy())
    np.testing.assert_allclose(found, model.eval()(two).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
def test_eight_bit_integers_predict_nearly_the_same_in_fewer_bytes() -> None:
    with seeded(0):
        model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, 10))
        x = torch.randn(16, 1, 10, 10)
    graph, weights = described(model, x)
    mask = Mask.of(graph)
    small = inference_program(model, x, mask, weights, calibration=x)
    expected = model(x[:1]).detach().numpy()
    (found,) = Runner(small.pte)(x[:1].numpy())
    assert small.int8
    assert len(small.pte) < 0.5 * sum(array.nbytes for array in weights.values())
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()
    assert not np.array_equal(found, expected)


def test_the_model_itself_is_left_as_it_was() -> None:
    model, graph, weights, _ = branches()
    mask = random_mask(graph, np.random.default_rng(2))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    small = submodel(model, mask, weights)
    assert {name: tuple(t.shape) for name, t in small.state_dict().items()} == dict(mask.shapes)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert isinstance(model, Branches)
    assert model.deep.groups == 8


def test_a_mask_of_another_model_is_refused() -> None:
    _, graph, weights, x = branches()
    with pytest.raises(ExportError, match="has no tensor"):
        inference_program(nn.Linear(3, 2), x, Mask.of(graph), weights)


def test_an_empty_batch_is_refused() -> None:
    model, graph, weights, x = branches()
    with pytest.raises(ExportError, match="batch size is 0"):
        inference_program(model, x, Mask.of(graph), weights, batch=0)

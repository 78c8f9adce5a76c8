"""Dropout: the mask is that of `edgefl.noise`, bit for bit, and the gradient goes through the same mask."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from torch import nn

from device_runtime.engines import ThreadSettings
from device_runtime.engines.onnx import OnnxEngine
from edgefl.artifacts.cut import GRADIENT
from edgefl.local_rules import Batch
from edgefl.masks import full_mask, gather
from edgefl.noise import derive, unit
from export.ops.dropout import seed_input
from export.trace_model import trace_model
from tests.export.parity import Exported, assert_close, check, random_mask

SEEDS = [0, 1, 2**63 + 12345, 2**64 - 1]


def kept(seed: int, number: int, shape: tuple[int, ...], p: float) -> npt.NDArray[np.bool_]:
    """The mask of dropout `number`, made as the specification says."""
    return (unit(derive(seed, number), 0, int(np.prod(shape))) >= p).reshape(shape)


class Masked(nn.Module):
    """Two layers with masks that are given, where the exported model has dropout."""

    def __init__(self, *drops: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last, self.drops = nn.Linear(6, 16), nn.Linear(16, 4), nn.ModuleList(drops)
        self.masks: list[torch.Tensor] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x).relu()
        for place, drop in enumerate(self.drops):
            y = drop(y) if self.masks is None else y * self.masks[place]
        result: torch.Tensor = self.last(y)
        return result


def run(exported: Exported, weights: dict[str, Any], x: torch.Tensor, y: torch.Tensor, seed: int) -> dict[str, Any]:
    return exported.run({**weights, "seed": seed_input(seed)}, x, y)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_graph_of_an_older_export_takes_an_unsigned_seed_and_drops_the_same(seed: int) -> None:
    exported = Exported(Masked(nn.Dropout(0.5)), torch.randn(3, 6))
    older = onnx.ModelProto.FromString(exported.onnx.SerializeToString())
    (declared,) = (node for node in older.graph.input if node.name == "seed")
    assert declared.type.tensor_type.elem_type == onnx.TensorProto.INT64
    declared.type.tensor_type.elem_type = onnx.TensorProto.UINT64
    batch = Batch(np.ones((9, 6), np.float32), np.zeros(9, np.int64), seed)
    engine, mask, weights = OnnxEngine(ThreadSettings(1)), full_mask(exported.graph), exported.weights()
    found = [
        engine.train_step(graph.SerializeToString(), mask)(weights, batch).gradients for graph in (exported.onnx, older)
    ]
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])
    assert any(array.any() for array in found[0].values())
    x, y = torch.ones(9, 6), torch.zeros(9, dtype=torch.int64)
    as_one_entry = exported.run({**weights, "seed": seed_input(seed).reshape(1)}, x, y)
    assert all(np.array_equal(as_one_entry[GRADIENT + name], array) for name, array in found[0].items())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_mask_is_that_of_the_noise_and_gradients_pass_through_it(seed: int, p: float) -> None:
    model = Masked(nn.Dropout(p), nn.Dropout(0.3))
    exported = Exported(model, torch.randn(3, 6))
    x, y = torch.randn(9, 6), torch.randint(0, 4, (9,))
    generator = np.random.default_rng(0)
    for weights in (exported.weights(), gather(random_mask(exported.graph, generator), exported.weights())):
        shape = (9, weights["first.bias"].size)
        ours = run(exported, weights, x, y, seed)
        masks = [kept(seed, place, shape, q) / np.float32(1 - q) for place, q in enumerate([p, 0.3])]
        model.masks = [torch.from_numpy(mask) for mask in masks]
        assert_close(ours, exported.torch_run(weights, x, y))
        model.masks = None


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_entries_are_bit_for_bit_those_of_the_noise(seed: int) -> None:
    """A bias of ones through dropout alone: the gradient of the bias of the layer before counts kept entries."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 50), nn.Dropout(0.37), nn.Linear(50, 50))
    exported = Exported(model, torch.randn(3, 3))
    weights = exported.weights()
    weights["0.weight"][...], weights["0.bias"][...] = 0, 1
    weights["2.weight"][...], weights["2.bias"][...] = np.eye(50), 0
    # The last layer's weight gradient is (softmax - one-hot)^T @ dropped; one sample and one class show the mask.
    gradient = run(exported, weights, torch.randn(1, 3), torch.tensor([7]), seed)[GRADIENT + "2.weight"]
    assert np.array_equal(gradient[7] != 0, kept(seed, 0, (50,), 0.37))


def test_a_whole_channel_is_dropped_at_once() -> None:
    class Channels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.first, self.drop, self.last = nn.Conv2d(2, 6, 1), nn.Dropout2d(0.4), nn.Linear(54, 4)
            self.mask: torch.Tensor | None = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            y = self.drop(y) if self.mask is None else y * self.mask
            result: torch.Tensor = self.last(y.flatten(1))
            return result

    model = Channels()
    exported = Exported(model, torch.randn(3, 2, 3, 3))
    x, y = torch.randn(5, 2, 3, 3), torch.randint(0, 4, (5,))
    ours = run(exported, exported.weights(), x, y, 99)
    model.mask = torch.from_numpy(kept(99, 0, (5, 6, 1, 1), 0.4) / np.float32(0.6))
    assert_close(ours, exported.torch_run(exported.weights(), x, y))


def test_the_same_seed_gives_the_same_step_and_another_seed_another() -> None:
    exported = Exported(Masked(nn.Dropout(0.5)), torch.randn(3, 6))
    x, y = torch.randn(9, 6), torch.randint(0, 4, (9,))
    first, again, other = (run(exported, exported.weights(), x, y, seed)["loss"] for seed in (5, 5, 6))
    assert first == again != other


def test_everything_is_dropped_with_probability_one() -> None:
    exported = Exported(Masked(nn.Dropout(1.0)), torch.randn(3, 6))
    ours = run(exported, exported.weights(), torch.randn(4, 6), torch.tensor([0, 1, 2, 3]), 5)
    assert not ours[GRADIENT + "first.weight"].any()
    assert np.isfinite(ours["loss"])


def test_without_dropout_there_is_no_seed() -> None:
    exported = check(Masked(nn.Dropout(0.0), nn.Dropout(0.0)), torch.randn(3, 6), classes=4)
    assert "seed" not in {node.name for node in exported.session.get_inputs()}


def test_outside_of_training_dropout_does_nothing() -> None:
    traced = trace_model(Masked(nn.Dropout(0.5), nn.Dropout(0.5)), torch.randn(3, 6), training=False)
    assert traced.trace.inputs == {}

"""Compares an exported training graph with PyTorch: losses and gradients, whole and as submodels."""

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from torch import nn

from edgefl.artifacts.cut import GRADIENT
from edgefl.masks import Mask, gather
from edgefl.model_graph import ModelGraph
from export.describe_graph import describe
from export.parity import random_submodel
from export.training_graph import training_graph

TOLERANCE = 1e-4


class Exported:
    """A model with its training graph, ready to be compared."""

    def __init__(self, model: nn.Module, example: torch.Tensor) -> None:
        self.model = model.train()
        self.onnx, traced = training_graph(model, example)
        onnx.checker.check_model(self.onnx)
        self.graph: ModelGraph = describe(traced, "model")
        self.session = _session(self.onnx)

    @classmethod
    def of(cls, other: "Exported", graph: onnx.ModelProto) -> "Exported":
        """The same model with another graph, such as a cut one."""
        made = copy.copy(other)
        made.onnx, made.session = graph, _session(graph)
        return made

    def weights(self) -> dict[str, Any]:
        stored = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        return {name: stored[name].detach().numpy().copy() for name in self.graph.tensor}

    def run(self, weights: dict[str, Any], x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        feed = {"x": x.numpy(), "y": y.numpy(), **weights}
        names = [output.name for output in self.session.get_outputs()]
        wanted = {node.name for node in self.session.get_inputs()}
        found = self.session.run(names, {name: array for name, array in feed.items() if name in wanted})
        return dict(zip(names, found, strict=True))

    def torch_run(self, weights: dict[str, Any], x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        """The same by PyTorch, at whatever widths the weights have."""
        leaves = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
        parameters = dict(self.model.named_parameters())
        trained = {name: leaf.requires_grad_() for name, leaf in leaves.items() if name in parameters}
        with resized(self.model, weights):
            logits = torch.func.functional_call(self.model, leaves, (x,))
        loss = nn.functional.cross_entropy(logits, y)
        loss.backward()  # type: ignore[no-untyped-call]
        result: dict[str, Any] = {"loss": loss.detach().numpy(), "correct": (logits.argmax(1) == y).numpy()}
        return result | {GRADIENT + n: leaf.grad.numpy() for n, leaf in trained.items() if leaf.grad is not None}


def _session(graph: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(graph.SerializeToString(), options)


@contextlib.contextmanager
def resized(model: nn.Module, weights: dict[str, Any]) -> Iterator[None]:
    """Let modules that keep their sizes as numbers believe in the widths of the given weights."""
    changed: list[tuple[nn.Module, str, Any]] = []

    def change(module: nn.Module, name: str, value: Any) -> None:
        changed.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    for path, module in model.named_modules():
        if isinstance(module, nn.Conv2d) and module.groups == module.in_channels > 1:
            change(module, "groups", weights[f"{path}.weight"].shape[0])
        if isinstance(module, nn.LayerNorm) and f"{path}.weight" in weights:
            change(module, "normalized_shape", weights[f"{path}.weight"].shape)
        if isinstance(module, nn.RNNBase):
            change(module, "input_size", weights[f"{path}.weight_ih_l0"].shape[1])
            change(module, "hidden_size", weights[f"{path}.weight_hh_l0"].shape[1])
    try:
        yield
    finally:
        for module, name, value in changed:
            setattr(module, name, value)


def assert_close(ours: dict[str, Any], theirs: dict[str, Any], tolerance: float = TOLERANCE) -> None:
    """Every output agrees, relative to the largest entry of each tensor, or to a hundredth of the largest of all.

    A gradient that nearly cancels, as that of a bias can, is only as exact as the terms that cancel.
    """
    least = 0.01 * max(float(np.abs(array).max(initial=0)) for array in theirs.values() if array.dtype != np.bool_)
    for name, expected in theirs.items():
        found = ours[name]
        assert found.shape == expected.shape, (name, found.shape, expected.shape)
        if expected.dtype == np.bool_:
            assert np.array_equal(found, expected), name
            continue
        scale = max(float(np.abs(expected).max(initial=0)), least)
        error = float(np.abs(found - expected).max(initial=0)) / scale
        assert error <= tolerance, f"{name}: relative error {error:.2e}"


def check(model: nn.Module, example: torch.Tensor, *, classes: int, masks: int = 2, batch: int = 5) -> Exported:
    """Export a model, then compare loss and gradients with PyTorch at full width and at random masks."""
    exported = Exported(model, example)
    generator = np.random.default_rng(0)
    x = example[:1].expand(batch, *example.shape[1:]).clone()
    x = torch.randn_like(x) if x.is_floating_point() else torch.randint_like(x, int(example.max()) + 1)
    y = torch.from_numpy(generator.integers(0, classes, batch))
    weights = exported.weights()
    assert_close(exported.run(weights, x, y), exported.torch_run(weights, x, y))
    for _ in range(masks):
        mask = random_mask(exported.graph, generator)
        part = gather(mask, weights)
        assert_close(exported.run(part, x, y), exported.torch_run(part, x, y))
    return exported


def random_mask(graph: ModelGraph, generator: np.random.Generator) -> Mask:
    """Random channels of every group, as many as its norm allows, sometimes a single one."""
    return random_submodel(graph, generator, least=1)

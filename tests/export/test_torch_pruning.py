"""Channel groups against those of Torch-Pruning, and cut models against whole ones whose channels are silent.

Torch-Pruning (Fang et al., "DepGraph: Towards Any Structural Pruning", CVPR 2023) finds coupled channels in its own
way, from PyTorch's autograd graph. Three things are beyond its release 1.6.1: it does not follow channels through a
shuffle, it loses them where flattened images of different sizes are concatenated, and it cannot cut an LSTM. There, as
for most other models, a cut model is compared with the whole one.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch_pruning
from torch import Tensor, nn
from torch.nn import functional

from edgefl.masks import Mask, gather
from edgefl.model_graph import ChannelGroup, ModelGraph, Span
from examples.outside_model import Outsider
from export.describe_graph import describe
from export.trace_model import trace_model
from export.zoo import ZOO, build
from tests.export.parity import resized

pytestmark = pytest.mark.usefixtures("one_thread")

CLASSES = 5
Entry = tuple[str, int, int]
"""A tensor, an axis, and an index that is cut from it."""


class Inverted(nn.Module):
    """A residual block around a depthwise convolution, and gates for its channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.widen = nn.Sequential(nn.Conv2d(8, 24, 1), nn.BatchNorm2d(24), nn.ReLU())
        self.depth = nn.Conv2d(24, 24, 3, padding=1, groups=24)
        self.gate = nn.Sequential(nn.Conv2d(24, 6, 1), nn.ReLU(), nn.Conv2d(6, 24, 1), nn.Sigmoid())
        self.narrow = nn.Conv2d(24, 8, 1)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        given = self.stem(x)
        inner = torch.relu(self.depth(self.widen(given)))
        gated = inner * self.gate(inner.mean((2, 3), keepdim=True))
        out: Tensor = self.head((given + self.narrow(gated)).mean((2, 3)))
        return out


class Dense(nn.Module):
    """Concatenations that grow and are normed, then added to a convolution of themselves, then flattened."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(3, 6, 3, padding=1)
        self.two = nn.Conv2d(6, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(10)
        self.three = nn.Conv2d(10, 10, 3, padding=1)
        self.hidden = nn.Linear(10 * 16, 7)
        self.head = nn.Linear(7, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        first = self.one(x)
        both = self.norm(torch.cat([first, self.two(torch.relu(first))], 1))
        both = torch.relu(both + self.three(both))
        out: Tensor = self.head(torch.relu(self.hidden(functional.adaptive_avg_pool2d(both, 4).flatten(1))))
        return out


class Halves(nn.Module):
    """A convolution in two groups that is called twice, and a gated linear unit on halves of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.wide = nn.Linear(8, 12)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        features = torch.relu(self.grouped(torch.relu(self.grouped(self.stem(x)))))
        value, gate = self.wide(features.mean((2, 3))).chunk(2, 1)
        out: Tensor = self.head(value * torch.sigmoid(gate))
        return out


class Shuffled(nn.Module):
    """Channels change places between two convolutions, as in a ShuffleNet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.mix = nn.Conv2d(8, 6, 1)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        shuffled = self.stem(x).unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)
        out: Tensor = self.head(torch.relu(self.mix(shuffled)).mean((2, 3)))
        return out


class TwoSizes(nn.Module):
    """Images of two sizes, flattened and concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.large = nn.Conv2d(3, 8, 3, padding=1)
        self.small = nn.Conv2d(3, 5, 3, padding=1)
        self.hidden = nn.Linear(8 * 16 + 5 * 4, 9)
        self.head = nn.Linear(9, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        large = functional.adaptive_avg_pool2d(self.large(x), 4).flatten(1)
        small = functional.adaptive_avg_pool2d(self.small(x), 2).flatten(1)
        out: Tensor = self.head(torch.relu(self.hidden(torch.cat([large, small], 1))))
        return out


OWN = {kind.__name__: kind for kind in (Outsider, Inverted, Dense, Halves, Shuffled, TwoSizes)}
BEYOND = ["char_lstm", "Shuffled", "TwoSizes"]
SHARED = [name for name in (*ZOO, *OWN) if name not in BEYOND]
# A norm over several channels notices when one of them goes away, silent or not: such models are not compared.
WITHOUT_SHARED_NORMS = ["cnn4", "lenet5", "mobilenet", "preresnet18", "Inverted", "Dense", "Halves"]


def model_and_batch(name: str) -> tuple[nn.Module, Tensor]:
    if name in OWN:
        return OWN[name](), torch.randn(2, 3, 16, 16)
    spec = ZOO[name]
    if spec.input_dtype == "int64":
        return build(name), torch.randint(0, spec.in_channels, (2, *spec.input_shape))
    return build(name), torch.randn(2, *spec.input_shape)


def random_submodel(group: ChannelGroup, generator: np.random.Generator) -> list[int]:
    """About half of the channels, as many as a norm of the group allows."""
    steps = max(1, group.width // group.multiple_of // 2)
    return sorted(generator.permutation(group.width)[: steps * group.multiple_of].tolist())


def indices(span: Span, channels: Sequence[int]) -> list[int]:
    starts = [span.offset + s * span.stride + c * span.repeat for s in range(span.stacks) for c in channels]
    return [start + j for start in starts for j in range(span.repeat)]


def roots(model: nn.Module, group: ChannelGroup) -> Iterator[tuple[str, Span]]:
    """The convolutions and linear layers that write a group: Torch-Pruning starts from any of them."""
    for span in group.spans:
        layer, _, key = span.tensor.rpartition(".")
        if key == "weight" and span.axis == 0 and isinstance(model.get_submodule(layer), nn.Conv2d | nn.Linear):
            yield layer, span


def traced(model: nn.Module, x: Tensor) -> Any:
    return torch_pruning.DependencyGraph().build_dependency(model, (x,))


def pruning_group(graph: Any, layer: str, cut: Sequence[int]) -> Any:
    module = graph.model.get_submodule(layer)
    return graph.get_pruning_group(module, graph.get_pruner_of_module(module).prune_out_channels, list(cut))


def entries(graph: Any, group: Any) -> set[Entry]:
    """What Torch-Pruning cuts: outputs of a module are the first axis of all its tensors, inputs the second."""
    names = {module: name for name, module in graph.model.named_modules()}
    found: set[Entry] = set()
    for dependency, cut in group:
        module = dependency.target.module
        if module not in names:  # an operation that keeps no tensors
            continue
        axis = 0 if graph.is_out_channel_pruning_fn(dependency.handler) else 1
        for key, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
            if tensor.ndim > axis:  # a convolution in groups has the inputs of one group alone on its second axis
                found |= {(f"{names[module]}.{key}", axis, index % tensor.shape[axis]) for index in cut}
    return found


@pytest.mark.parametrize("name", SHARED)
def test_what_is_cut_together_is_what_torch_pruning_cuts_together(name: str) -> None:
    with torch.device("meta"):  # coupling is a matter of shapes, and VGG16 is large
        model, x = model_and_batch(name)
    theirs = traced(copy.deepcopy(model), x)
    generator, reached = np.random.default_rng(0), set()
    for group in describe(trace_model(model, x, training=True), "model").groups:
        cut = random_submodel(group, generator)
        ours = {(span.tensor, span.axis, index) for span in group.spans for index in indices(span, cut)}
        for layer, span in roots(model, group):
            reached.add(layer)
            assert entries(theirs, pruning_group(theirs, layer, indices(span, cut))) == ours, (group.name, layer)
    layers = {layer for layer, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)}
    assert layers - reached == {"head"}


def stored(model: nn.Module, graph: ModelGraph) -> dict[str, Any]:
    found = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name: found[name].detach().numpy().copy() for name in graph.tensor}


@pytest.mark.parametrize("name", ["cnn4", "mobilenet", "Outsider", "Inverted", "Dense", "Halves"])
def test_a_model_cut_by_torch_pruning_holds_the_weights_of_the_submodel(name: str) -> None:
    model, x = model_and_batch(name)
    graph = describe(trace_model(model, x, training=True), "model")
    generator, pruned, kept = np.random.default_rng(0), copy.deepcopy(model), {}
    theirs = traced(pruned, x)
    for group in graph.groups:
        cut = random_submodel(group, generator)
        kept[group.name] = np.setdiff1d(np.arange(group.width), cut)
        layer, span = next(roots(model, group))
        pruning_group(theirs, layer, indices(span, cut)).prune()
    part = gather(Mask.of(graph, kept=kept), stored(model, graph))
    for tensor, array in stored(pruned, graph).items():
        assert np.array_equal(part[tensor], array), tensor
    assert pruned(x).shape == model(x).shape


def gradients(model: nn.Module, weights: dict[str, Any], x: Tensor) -> dict[str, Any]:
    """Gradients in double precision, at whatever widths the weights have; zeros for what is not trained."""
    trained = {name for name, _ in model.named_parameters()}
    leaves = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    leaves = {name: leaf.double() if leaf.is_floating_point() else leaf for name, leaf in leaves.items()}
    for name in trained:
        leaves[name].requires_grad_()
    with resized(model, weights):
        output = torch.func.functional_call(model.train(), leaves, (x.double() if x.is_floating_point() else x,))
    output.square().sum().backward()
    return {name: (torch.zeros_like(leaf) if leaf.grad is None else leaf.grad).numpy() for name, leaf in leaves.items()}


def writes(model: nn.Module, span: Span) -> bool:
    """Whether the channels of a span are outputs: a layer's first axis, but the second of an embedding."""
    return span.axis == int(isinstance(model.get_submodule(span.tensor.rpartition(".")[0]), nn.Embedding))


@pytest.mark.parametrize("name", [*WITHOUT_SHARED_NORMS, *BEYOND])
def test_a_cut_model_learns_as_the_whole_one_does_when_the_channels_are_silent(name: str) -> None:
    model, x = model_and_batch(name)
    graph = describe(trace_model(model, x, training=True), "model")
    weights, generator, kept = stored(model, graph), np.random.default_rng(0), {}
    silent = {tensor: array.copy() for tensor, array in weights.items()}
    for group in graph.groups:
        cut = random_submodel(group, generator)
        kept[group.name] = np.setdiff1d(np.arange(group.width), cut)
        for span in group.spans:
            if writes(model, span):
                np.moveaxis(silent[span.tensor], span.axis, 0)[indices(span, cut)] = 0
    assert kept
    mask = Mask.of(graph, kept=kept)
    ours, truth = gradients(model, gather(mask, weights), x), gather(mask, gradients(model, silent, x))
    # The gradient of a bias before a norm is zero but for rounding: what counts as nothing is the same for all tensors.
    nothing = 1e-9 * max(float(np.abs(array).max()) for array in truth.values())
    for tensor, array in truth.items():
        np.testing.assert_allclose(ours[tensor], array, rtol=1e-6, atol=nothing, err_msg=tensor)

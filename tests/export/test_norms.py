"""Norms: values, gradients and running statistics as in PyTorch, at every width."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
import torch
from torch import nn

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC, cut, cut_training_graph
from edgefl.errors import ExportError
from edgefl.masks import Mask, gather
from tests.export.parity import Exported, assert_close, check, random_mask


def images(*norms: nn.Module, channels: int = 8) -> nn.Sequential:
    """Norms after a convolution, then a head on all that they give."""
    torch.manual_seed(0)
    # A bias before a norm has a gradient of zero, and what is compared of it would be rounding.
    first = nn.Conv2d(2, channels, 1, bias=False)
    return shuffled(nn.Sequential(first, *norms, nn.Flatten(), nn.Linear(channels * 12, 4)))


def shuffled(model: nn.Sequential) -> nn.Sequential:
    """Give norms weights and statistics that are not all ones and zeros."""
    for module in list(model)[1:-1]:
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if name in ("weight", "running_var"):
                nn.init.uniform_(tensor, 0.5, 1.5)
            elif tensor.is_floating_point():
                nn.init.normal_(tensor, std=0.5)
    return model


class Instance(nn.Module):
    """An instance norm that does not ask how many channels there were."""

    def __init__(self, channels: int, affine: bool, tracked: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels)) if affine else None
        self.bias = nn.Parameter(torch.rand(channels)) if affine else None
        self.running_mean: torch.Tensor | None
        self.running_var: torch.Tensor | None
        self.register_buffer("running_mean", torch.zeros(channels) if tracked else None)
        self.register_buffer("running_var", torch.ones(channels) if tracked else None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias)


class Shift(nn.Module):
    """Adds a constant."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 5.0


class Layer(nn.Module):
    """A layer norm over as many entries as its weight has."""

    def __init__(self, *shape: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(shape))
        self.bias = nn.Parameter(torch.rand(shape)) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.layer_norm(x, self.weight.shape, self.weight, self.bias)


EXAMPLE = torch.randn(3, 2, 4, 3)

IMAGE_NORMS: dict[str, Callable[[], nn.Module]] = {
    "batch": lambda: nn.BatchNorm2d(8, track_running_stats=False),
    "batch without parameters": lambda: nn.BatchNorm2d(8, affine=False, track_running_stats=False),
    "instance": lambda: Instance(8, affine=True),
    "instance without parameters": lambda: Instance(8, affine=False),
    "group of 1": lambda: nn.GroupNorm(1, 8),
    "group of 2": lambda: nn.GroupNorm(2, 8),
    "group of each channel": lambda: nn.GroupNorm(8, 8),
    "group without parameters": lambda: nn.GroupNorm(4, 8, affine=False),
    "layer over the last axis": lambda: nn.LayerNorm(3),
    "layer without parameters": lambda: nn.LayerNorm((4, 3), elementwise_affine=False),
    "layer over the image": lambda: nn.LayerNorm((4, 3), bias=False),
    "layer over the channels too": lambda: Layer(8, 4, 3),
}


@pytest.mark.parametrize("name", IMAGE_NORMS)
def test_a_norm_of_images_and_its_gradients_match(name: str) -> None:
    check(images(IMAGE_NORMS[name](), nn.Hardswish(), IMAGE_NORMS[name]()), EXAMPLE, classes=4)


FEATURE_NORMS: dict[str, Callable[[], nn.Module]] = {
    "batch": lambda: nn.BatchNorm1d(32, track_running_stats=False),
    "batch without parameters": lambda: nn.BatchNorm1d(32, affine=False, track_running_stats=False),
    "group": lambda: nn.GroupNorm(2, 32),
    "group without parameters": lambda: nn.GroupNorm(2, 32, affine=False),
    "layer": lambda: Layer(32),
    "layer without bias": lambda: Layer(32, bias=False),
}


@pytest.mark.parametrize("name", FEATURE_NORMS)
def test_a_norm_of_features_matches(name: str) -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(6, 32, bias=False), FEATURE_NORMS[name](), nn.Tanh(), nn.Linear(32, 4)]
    check(shuffled(nn.Sequential(*layers)), torch.randn(3, 6), classes=4, batch=9)


def test_a_norm_of_sequences_matches() -> None:
    torch.manual_seed(0)

    class Sequences(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(2, 8, 1, bias=False), nn.Linear(8 * 12, 4)
            self.batch, self.instance = nn.BatchNorm1d(8, track_running_stats=False), Instance(8, affine=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x).flatten(2)
            result: torch.Tensor = self.last(self.instance(self.batch(y).tanh()).flatten(1))
            return result

    check(Sequences(), EXAMPLE, classes=4)


@pytest.mark.parametrize("name", ["batch", "instance", "group of 2", "layer over the image"])
def test_gradients_match_when_the_mean_is_far_from_zero(name: str) -> None:
    check(images(Shift(), IMAGE_NORMS[name]()), EXAMPLE, classes=4)


def test_two_norms_of_one_tensor_keep_their_statistics_apart() -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.first, self.last = nn.Conv2d(2, 8, 1, bias=False), nn.Linear(96, 4)
            self.left = nn.BatchNorm2d(8, track_running_stats=False, eps=0.1)
            self.right = nn.BatchNorm2d(8, affine=False, track_running_stats=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            z = self.left(y).tanh() + self.right(y) + self.right(y.sigmoid())
            result: torch.Tensor = self.last(z.flatten(1))
            return result

    check(Branches(), EXAMPLE, classes=4)


@pytest.mark.parametrize("kind", ["batch", "batch without parameters", "slow batch", "features", "instance"])
def test_new_running_statistics_match(kind: str) -> None:
    norms = {
        "batch": nn.BatchNorm2d(8),
        "batch without parameters": nn.BatchNorm2d(8, affine=False),
        "slow batch": nn.BatchNorm2d(8, momentum=0.01, eps=0.1),
        "features": nn.BatchNorm1d(96),
        "instance": Instance(8, affine=True, tracked=True),
    }
    if kind == "features":
        model = shuffled(nn.Sequential(nn.Flatten(), nn.Linear(24, 96), norms[kind], nn.Linear(96, 4)))
    else:
        model = images(norms[kind])
    exported = Exported(model, EXAMPLE)
    generator = np.random.default_rng(3)
    x, y = torch.randn(7, 2, 4, 3), torch.randint(0, 4, (7,))
    for weights in (exported.weights(), gather(random_mask(exported.graph, generator), exported.weights())):
        ours = exported.run(weights, x, y)
        expected = torch_step(model, weights, x, y)
        assert {name for name in ours if name.startswith(NEW_STATISTIC)} == {
            name for name in expected if name.startswith(NEW_STATISTIC)
        }
        assert_close(ours, expected)
        counts = [name for name in ours if name.endswith("num_batches_tracked")]
        assert all(ours[name].dtype == np.int64 for name in counts)


def torch_step(model: nn.Module, weights: dict[str, Any], x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
    """Loss, gradients and new statistics by PyTorch, whose batch norm writes its statistics in place."""
    trained = {name for name, _ in model.named_parameters()}
    leaves = {name: torch.from_numpy(array.copy()).requires_grad_(name in trained) for name, array in weights.items()}
    loss = nn.functional.cross_entropy(torch.func.functional_call(model, leaves, (x,)), y)
    loss.backward()  # type: ignore[no-untyped-call]
    result = {"loss": loss.detach().numpy()}
    for name, leaf in leaves.items():
        if name in trained:
            assert leaf.grad is not None
            result[GRADIENT + name] = leaf.grad.numpy()
        elif not np.array_equal(leaf.numpy(), weights[name]):
            result[NEW_STATISTIC + name] = leaf.numpy()
    return result


def test_statistics_stay_right_when_gradients_are_cut() -> None:
    exported = Exported(images(nn.BatchNorm2d(8), nn.Tanh(), nn.BatchNorm2d(8, affine=False)), EXAMPLE)
    x, y = torch.randn(7, 2, 4, 3), torch.randint(0, 4, (7,))
    feed = {"x": x.numpy(), "y": y.numpy(), **exported.weights()}
    whole = exported.run(exported.weights(), x, y)
    session = ort.InferenceSession(cut(exported.onnx, ["5.weight", "3.running_mean"]).SerializeToString())
    wanted = {node.name for node in session.get_inputs()}
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {name: array for name, array in feed.items() if name in wanted})
    assert_close(dict(zip(names, found, strict=True)), {name: whole[name] for name in names})
    assert names == ["loss", "correct", "grad:5.weight", "new:3.running_mean"]


def test_a_graph_cut_for_a_mask_has_the_statistics_of_its_trained_layers_alone() -> None:
    exported = Exported(images(nn.BatchNorm2d(8), nn.Tanh(), nn.BatchNorm2d(8, affine=False)), EXAMPLE)
    x, y = torch.randn(7, 2, 4, 3), torch.randint(0, 4, (7,))
    feed = {"x": x.numpy(), "y": y.numpy(), **exported.weights()}
    whole = exported.run(exported.weights(), x, y)
    for name in exported.graph.trainable_layers:
        part = cut_training_graph(exported.onnx.SerializeToString(), Mask.of(exported.graph, trained=[name]))
        session = ort.InferenceSession(part)
        found = {output.name for output in session.get_outputs()} - {"loss", "correct"}
        of_layer = {tensor for tensor in exported.graph.tensor if exported.graph.layer_of[tensor] == name}
        assert found == {output for output in whole if output.partition(":")[2] in of_layer}
        wanted = {node.name for node in session.get_inputs()}
        results = session.run(sorted(found), {key: array for key, array in feed.items() if key in wanted})
        assert all(np.array_equal(one, whole[key]) for key, one in zip(sorted(found), results, strict=True))


def test_counted_batches_are_scalars_even_if_they_are_fed_as_one_entry(capfd: pytest.CaptureFixture[str]) -> None:
    exported = Exported(images(nn.BatchNorm2d(8)), EXAMPLE)
    feed = {"x": np.zeros((7, 2, 4, 3), np.float32), "y": np.zeros(7, np.int64), **exported.weights()}
    options = ort.SessionOptions()
    options.log_severity_level = 2  # warnings: this is about them
    session = ort.InferenceSession(exported.onnx.SerializeToString(), options)
    for count in (np.array(3), np.array([3])):
        (found,) = session.run(["new:1.num_batches_tracked"], feed | {"1.num_batches_tracked": count})
        assert (found.shape, int(found)) == ((), 4)
    assert "shape" not in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["batch", "instance"])
def test_running_statistics_are_used_where_a_norm_is_told_to(kind: str) -> None:
    class Frozen(nn.Module):
        """A norm that keeps to its statistics even in training."""

        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.rand(8)), nn.Parameter(torch.rand(8))
            self.register_buffer("mean", torch.randn(8))
            self.register_buffer("variance", torch.rand(8) + 0.5)
            self.mean: torch.Tensor
            self.variance: torch.Tensor

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if kind == "batch":
                return nn.functional.batch_norm(x, self.mean, self.variance, self.weight, self.bias)
            return nn.functional.instance_norm(
                x, self.mean, self.variance, self.weight, self.bias, use_input_stats=False
            )

    exported = Exported(images(Frozen()), EXAMPLE)
    weights = gather(random_mask(exported.graph, np.random.default_rng(4)), exported.weights())
    x, y = torch.randn(7, 2, 4, 3), torch.randint(0, 4, (7,))
    ours = exported.run(weights, x, y)
    assert not any(name.startswith(NEW_STATISTIC) for name in ours)
    assert_close(ours, torch_step(exported.model, weights, x, y))


def test_widths_of_a_group_norm_are_multiples_of_its_groups() -> None:
    exported = Exported(images(nn.GroupNorm(4, 8), nn.Conv2d(8, 6, 1), nn.GroupNorm(3, 6), nn.Conv2d(6, 8, 1)), EXAMPLE)
    multiples = {group.name: group.multiple_of for group in exported.graph.groups}
    assert multiples == {"0": 4, "2": 3, "4": 1}


class Joined(nn.Module):
    """A group norm over two layers' channels, one after the other."""

    def __init__(self, left: int, right: int, groups: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = nn.Conv2d(2, left, 1), nn.Conv2d(2, right, 1)
        self.norm, self.last = nn.GroupNorm(groups, left + right), nn.Linear((left + right) * 12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cat([self.left(x), self.right(x)], 1)
        result: torch.Tensor = self.last(self.norm(y).flatten(1))
        return result


def test_both_parts_of_a_concatenation_stay_multiples_of_the_groups() -> None:
    exported = check(Joined(8, 4, 4), EXAMPLE, classes=4)
    assert [group.multiple_of for group in exported.graph.groups] == [4, 4]


def test_parts_that_the_groups_do_not_divide_are_never_cut() -> None:
    exported = check(Joined(5, 3, 4), EXAMPLE, classes=4)
    assert exported.graph.groups == ()


def test_a_norm_is_a_layer_with_its_cost() -> None:
    graph = Exported(images(nn.BatchNorm2d(8), nn.LayerNorm((4, 3))), EXAMPLE).graph
    assert {layer.name: layer.kind for layer in graph.layers} == {"0": "conv", "1": "norm", "2": "norm", "4": "linear"}
    uses = {name: tensor.uses for name, tensor in graph.tensor.items()}
    assert (uses["1.weight"], uses["1.bias"], uses["1.running_mean"]) == (12, 0, 0)
    assert (uses["2.weight"], uses["2.bias"]) == (8, 0)


def test_a_cumulative_average_is_refused() -> None:
    with pytest.raises(ExportError, match="cannot trace"):
        Exported(images(nn.BatchNorm2d(8, momentum=None)), EXAMPLE)

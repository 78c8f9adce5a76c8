"""Convolutions of every geometry against PyTorch, whole and at random masks."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime as ort
import pytest
import torch
from torch import nn

from edgefl.errors import ExportError
from export.inference_graph import inference_graph
from tests.export.parity import check


class Probe(nn.Module):
    """A layer between two 1 x 1 convolutions, so that its input's gradient is seen and its channels can be cut."""

    def __init__(self, layer: nn.Module, before: int, after: int) -> None:
        super().__init__()
        self.before = nn.Conv2d(3, before, 1)
        self.layer = layer
        self.after = nn.Conv2d(after, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.after(self.layer(self.before(x))).mean((2, 3))
        return out


GEOMETRIES = [
    (3, 1, 1, 1),
    (3, 2, 1, 1),
    (1, 1, 0, 1),
    (1, 2, 0, 1),
    (5, 1, 2, 1),
    (3, 3, 0, 1),
    (3, 1, 2, 2),
    ((3, 1), (1, 2), (1, 0), 1),
    (2, 2, 1, 1),
    (3, 2, 4, 2),
]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation"), GEOMETRIES)
def test_convolutions_match(kernel: int, stride: int, padding: int, dilation: int, bias: bool) -> None:
    layer = nn.Conv2d(6, 8, kernel, stride, padding, dilation, bias=bias)
    check(Probe(layer, 6, 8), torch.randn(13, 3, 9, 10), classes=4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation"), GEOMETRIES)
def test_convolutions_of_small_maps_match(kernel: int, stride: int, padding: int, dilation: int, bias: bool) -> None:
    layer = nn.Conv2d(10, 12, kernel, stride, padding, dilation, bias=bias)
    exported = check(Probe(layer, 10, 12), torch.randn(13, 3, 5, 6), classes=4, masks=3)
    gathers = [node.op_type for node in exported.onnx.graph.node].count("Gather")
    assert gathers == (0 if kernel in (1, 5) else 3 if stride == 1 else 2)


@pytest.mark.parametrize(
    ("kernel", "size", "padding", "gathers"),
    [((5, 6), (5, 6), 0, 2), (3, (3, 3), 0, 2), ((4, 1), (7, 7), 0, 2), (5, (7, 7), 2, 0), (5, (4, 4), 2, 3)],
)
def test_patches_never_become_much_larger_than_those_of_ordinary_layers(
    kernel: int, size: tuple[int, int], padding: int, gathers: int
) -> None:
    exported = check(Probe(nn.Conv2d(10, 12, kernel, padding=padding), 10, 12), torch.randn(13, 3, *size), classes=4)
    assert [node.op_type for node in exported.onnx.graph.node].count("Gather") == gathers


def test_a_small_map_whose_input_needs_no_gradient_matches() -> None:
    model = nn.Sequential(nn.Conv2d(10, 6, 3, padding=1), nn.Flatten(), nn.Linear(6 * 12, 4))
    check(model, torch.randn(13, 10, 3, 4), classes=4)


def test_patches_of_small_maps_are_not_kept_for_the_backward_pass() -> None:
    exported = check(Probe(nn.Conv2d(10, 12, 3, padding=1), 10, 12), torch.randn(13, 3, 3, 3), classes=4)
    options = ort.SessionOptions()
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder, "optimised.onnx"))
        ort.InferenceSession(exported.onnx.SerializeToString(), options)
        optimised = onnx.load(options.optimized_model_filepath)
    made = {name: node.op_type for node in optimised.graph.node for name in node.output}
    flattened = [made.get(node.input[0]) for node in optimised.graph.node if node.op_type == "Flatten"]
    assert flattened.count("Gather") == 3  # forward, and for the gradients of weight and input


def test_inference_leaves_convolutions_of_small_maps_to_the_runtime() -> None:
    graph = inference_graph(Probe(nn.Conv2d(10, 12, 3, padding=1), 10, 12), torch.randn(13, 3, 3, 3))
    assert [node.op_type for node in graph.graph.node].count("Conv") == 3


def test_few_input_channels_take_the_unfolded_form_and_match() -> None:
    check(Probe(nn.Conv2d(2, 8, 3, padding=1), 2, 8), torch.randn(13, 3, 9, 10), classes=4)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), (1, 2, 2), ((2, 3), (0, 1), 1), (2, 0, 2)]
)
def test_grouped_convolutions_match(stride: int, padding: int, dilation: int) -> None:
    layer = nn.Conv2d(6, 12, 3, stride, padding, dilation, groups=3)
    exported = check(Probe(layer, 6, 12), torch.randn(13, 3, 9, 10), classes=4, masks=3)
    assert {group.name: group.width for group in exported.graph.groups} == {"before": 2, "layer": 4}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        (3, 1, 1, 1),
        (3, 2, 1, 1),
        (5, 2, 2, 1),
        (3, 1, 2, 2),
        ((1, 3), (1, 2), (0, 1), 1),
        (1, 1, 0, 1),
        (3, 2, 0, 1),
        (1, 2, 1, 1),
    ],
)
def test_depthwise_convolutions_match_at_any_width(
    kernel: int, stride: int, padding: int, dilation: int, bias: bool
) -> None:
    layer = nn.Conv2d(6, 6, kernel, stride, padding, dilation, groups=6, bias=bias)
    exported = check(Probe(layer, 6, 6), torch.randn(13, 3, 9, 10), classes=4, masks=3)
    (group,) = exported.graph.groups
    assert {span.tensor for span in group.spans} >= {"before.weight", "layer.weight", "after.weight"}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "extra", "dilation"),
    [(2, 2, 0, 0, 1), (3, 2, 1, 1, 1), (3, 1, 1, 0, 1), (4, 2, 1, 0, 1), (3, 2, 0, 1, 2)],
)
def test_transposed_convolutions_match(
    kernel: int, stride: int, padding: int, extra: int, dilation: int, bias: bool
) -> None:
    layer = nn.ConvTranspose2d(6, 8, kernel, stride, padding, extra, bias=bias, dilation=dilation)
    check(Probe(layer, 6, 8), torch.randn(13, 3, 5, 6), classes=4)


def test_padding_by_name_matches() -> None:
    for padding in ("same", "valid"):
        check(Probe(nn.Conv2d(6, 8, 3, padding=padding), 6, 8), torch.randn(13, 3, 5, 6), classes=4, masks=1)
    with pytest.raises(ExportError, match="uneven for a kernel"):
        check(Probe(nn.Conv2d(6, 8, 2, padding="same"), 6, 8), torch.randn(13, 3, 5, 6), classes=4)


def test_what_cannot_be_exported_names_the_operation_and_the_module() -> None:
    layer = nn.ConvTranspose2d(6, 8, 2, groups=2)
    with pytest.raises(
        ExportError, match=r"aten.conv_transpose2d.input in module 'layer' \(ConvTranspose2d\).*2 groups"
    ):
        check(Probe(layer, 6, 8), torch.randn(13, 3, 5, 6), classes=4)


class Sequences(nn.Module):
    """A layer between two others on sequences; the depthwise one has a group for every channel."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.before, self.layer, self.after = nn.Conv1d(3, 6, 1), layer, nn.Conv1d(6, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.after(self.layer(self.before(x)).relu()).mean(2)
        return out


SEQUENCES: dict[str, Callable[[], nn.Module]] = {
    "strided": lambda: nn.Conv1d(6, 6, 5, 2, 2),
    "dilated": lambda: nn.Conv1d(6, 6, 3, dilation=2, padding="same"),
    "depthwise": lambda: nn.Conv1d(6, 6, 3, padding=1, groups=6),
    "grouped": lambda: nn.Conv1d(6, 6, 3, groups=2, bias=False),
    "transposed": lambda: nn.ConvTranspose1d(6, 6, 3, 2, padding=1, output_padding=1),
    "with a norm": lambda: nn.Sequential(nn.Conv1d(6, 6, 3), nn.GroupNorm(2, 6)),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_convolutions_of_sequences_match(name: str) -> None:
    # PyTorch itself cannot run a depthwise convolution narrower.
    check(Sequences(SEQUENCES[name]()), torch.randn(5, 3, 11), classes=4, masks=0 if name == "depthwise" else 2)

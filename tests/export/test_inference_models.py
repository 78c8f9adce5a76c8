"""Finished inference models: compact, folded, and predicting what PyTorch predicts; also on 8-bit integers."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from torch import nn

from edgefl.artifacts.bake import bake
from edgefl.artifacts.quantise import quantise
from edgefl.errors import DataError, MaskError
from edgefl.masks import Mask, gather
from export.executorch import submodel
from export.inference_graph import inference_graph
from export.zoo import ZOO, build
from export.zoo.seeding import seeded
from tests.export.parity import random_mask
from tests.export.test_executorch_inference import branches, described, trained

SMALL = [name for name in ZOO if name != "vgg16"]  # 134 million parameters are for the benchmark

BATCH_STATISTICS = ("preresnet18", "mobilenet")  # their norms keep no running statistics to make up


def baked(model: nn.Module, example: torch.Tensor, part: dict[str, Any]) -> onnx.ModelProto:
    made = bake(inference_graph(model, example), part)
    onnx.checker.check_model(made)
    return made


def predict(model: onnx.ModelProto, x: torch.Tensor) -> Any:
    return ort.InferenceSession(model.SerializeToString()).run(None, {"x": x.numpy()})[0]


def kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


@pytest.mark.parametrize("name", SMALL)
def test_a_baked_submodel_predicts_what_torch_predicts(name: str) -> None:
    spec = ZOO[name]
    with seeded(0):
        model = build(name) if name in BATCH_STATISTICS else trained(build(name))
        shape = (3, *spec.input_shape)
        x = torch.randint(0, spec.in_channels, shape) if spec.input_dtype == "int64" else torch.randn(shape)
    graph, weights = described(model, x)
    mask = random_mask(graph, np.random.default_rng(3))
    expected = submodel(model, mask, weights).eval()(x).detach().numpy()
    found = predict(baked(model, x, gather(mask, weights)), x)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_norms_go_into_the_layers_before_them_where_nothing_else_reads_these() -> None:
    model, _, weights, x = branches()
    made = baked(model, x, weights)
    left = [node.input[1] for node in made.graph.node if node.op_type == "BatchNormalization"]
    assert left == ["late.weight", "shared.weight"]
    np.testing.assert_allclose(predict(made, x), model.eval()(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_depthwise_convolution_is_one_again_at_the_width_of_the_mask() -> None:
    with seeded(0):
        model = nn.Sequential(
            nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, 2, 1, groups=8), nn.Flatten(), nn.Linear(8 * 25, 4)
        )
        x = torch.randn(2, 3, 9, 9)
    graph, weights = described(model, x)
    mask = Mask.of(graph, kept={"0": [1, 3, 4]})
    made = baked(model, x, gather(mask, weights))
    assert kinds(made) == {"Conv": 2, "Reshape": 1, "Gemm": 1}
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in made.graph.node[1].attribute}
    assert attributes["group"] == 3
    expected = submodel(model, mask, weights).eval()(x).detach().numpy()
    np.testing.assert_allclose(predict(made, x), expected, rtol=1e-4, atol=1e-5)


def test_sizes_that_follow_from_the_widths_are_computed_once() -> None:
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 3))
    graph, weights = described(model, torch.randn(2, 1, 8, 8))
    before = kinds(inference_graph(model, torch.randn(2, 1, 8, 8)))
    after = kinds(baked(model, torch.randn(2, 1, 8, 8), weights))
    assert before["ConstantOfShape"] > 0
    assert after["ConstantOfShape"] == after["Identity"] == 0
    assert graph.parameters == sum(array.size for array in weights.values())


class Shifted(nn.Module):
    """A linear layer and a sum that looks like a bias of channels, and is none."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(5, 4)
        self.shift = nn.Parameter(torch.randn(4, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shifted: torch.Tensor = (self.f(x) + self.shift).sum(0)
        return shifted


def test_only_a_shift_of_channels_becomes_a_bias() -> None:
    with seeded(0):
        model, x = Shifted(), torch.randn(3, 5)
    _, weights = described(model, x)
    np.testing.assert_allclose(predict(baked(model, x, weights), x), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def two_outputs() -> onnx.ModelProto:
    """A convolution that is an output itself, before its norm, which is another."""
    floats = onnx.TensorProto.FLOAT
    sizes = {"x": [1, 2, 4, 4], "w": [3, 2, 1, 1], "s": [3], "b": [3], "m": [3], "v": [3]}
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w"], ["c"]),
        onnx.helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"]),
        onnx.helper.make_node("Abs", ["s"], ["a"]),
    ]
    inputs = [onnx.helper.make_tensor_value_info(name, floats, size) for name, size in sizes.items()]
    outputs = [onnx.helper.make_tensor_value_info(name, floats, None) for name in ("c", "n", "a")]
    graph = onnx.helper.make_graph(nodes, "two", inputs, outputs)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    made.ir_version = 10
    return made


def test_outputs_of_a_graph_stay_what_they_are() -> None:
    generator = np.random.default_rng(0)
    sizes = {"w": (3, 2, 1, 1), "s": (3,), "b": (3,), "m": (3,), "v": (3,)}
    weights = {name: generator.uniform(0.5, 2, size).astype(np.float32) for name, size in sizes.items()}
    x = generator.standard_normal((1, 2, 4, 4)).astype(np.float32)
    before = ort.InferenceSession(two_outputs().SerializeToString()).run(None, {"x": x, **weights})
    made = bake(two_outputs(), weights)
    after = ort.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    for found, expected in zip(after, before, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_missing_weight_is_named() -> None:
    model = nn.Linear(3, 2)
    with pytest.raises(MaskError, match="lack tensor 'bias'"):
        bake(inference_graph(model, torch.zeros(2, 3)), {"weight": np.zeros((2, 3), np.float32)})


def test_eight_bit_integers_predict_nearly_the_same_in_a_third_of_the_bytes() -> None:
    with seeded(0):
        model = trained(
            nn.Sequential(
                *(nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 10)),
            )
        )
        x = torch.randn(40, 1, 10, 10)
    _, weights = described(model, x)
    made = baked(model, x, weights).SerializeToString()
    small = quantise(made, x.numpy())
    expected = predict(onnx.load_from_string(made), x)
    found = predict(onnx.load_from_string(small), x)
    assert len(small) < len(made) / 3
    assert 0 < np.abs(found - expected).max() < 0.03 * np.abs(expected).max()
    assert quantise(made, x.numpy()) == small


def test_nothing_to_calibrate_with_is_an_error() -> None:
    with pytest.raises(DataError, match="no samples to calibrate"):
        quantise(b"", np.zeros((0, 3), np.float32))

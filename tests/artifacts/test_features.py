"""The part of an inference graph that computes features: the head makes its logits of them."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from device_runtime.engines import ThreadSettings, open_engine
from edgefl.artifacts.bundle import INFER, Bundle
from edgefl.artifacts.features import feature_graph
from edgefl.artifacts.graph_check import check_graph
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import MaskError
from edgefl.local_rules import head_of
from edgefl.local_rules.base_networks import base_networks, joined_networks
from edgefl.local_rules.submodel_channels import narrow, positions_within
from edgefl.masks import full_mask, gather, random_channels
from edgefl.simulation.built_in_models import built_in_bundle
from tests.device_runtime.federation import bundle

BUNDLES: dict[str, Callable[[], Bundle]] = {"small_cnn": bundle, "digits_mlp": lambda: built_in_bundle("digits_mlp")}


@pytest.mark.parametrize("name", BUNDLES)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "some channels"])
def test_the_head_makes_the_logits_of_the_features(name: str, whole: bool) -> None:
    made = BUNDLES[name]()
    graph = made.graph
    mask = full_mask(graph) if whole else random_channels(graph, 0.5, np.random.default_rng(1))
    weights = gather(mask, bundle_weights(made))
    x = np.random.default_rng(2).normal(size=(5, 1, 8, 8)).astype(np.float32)
    engine = open_engine("onnx", ThreadSettings(1))
    data = feature_graph(made.files[INFER], graph)
    check_graph(data)
    features = engine.predictor(data)(weights, x)
    logits = engine.predictor(made.files[INFER])(weights, x)
    head = head_of(mask)
    assert features.shape == (5, mask.shapes[head.weight][1])
    assert features @ weights[head.weight].T + weights[str(head.bias)] == pytest.approx(logits, abs=1e-5)


@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [1, 3]])
def test_features_of_networks_stand_side_by_side_where_the_head_has_them(numbers: list[int]) -> None:
    graph, engine = bundle().graph, open_engine("onnx", ThreadSettings(1))
    part = joined_networks(graph, numbers, 4)
    networks = base_networks(part, 4)
    assert len(networks) == len(numbers)
    weights = gather(part, bundle_weights(bundle()))
    data = feature_graph(bundle().files[INFER], graph, part, networks)
    check_graph(data)
    onnx.checker.check_model(onnx.load_from_string(data))
    x = np.random.default_rng(2).normal(size=(5, 1, 8, 8)).astype(np.float32)
    found = engine.predictor(data)(weights, x)
    assert found.shape == (5, part.shapes["9.weight"][1])
    alone = engine.predictor(feature_graph(bundle().files[INFER], graph))
    for network in networks:
        columns = positions_within(part, network, "9.weight")[1]
        assert found[:, np.ravel(np.arange(found.shape[1])[columns])] == pytest.approx(
            alone(narrow(part, network, weights), x), abs=1e-6
        )


def test_a_feature_graph_needs_no_weights_of_the_head() -> None:
    model = onnx.load_from_string(feature_graph(bundle().files[INFER], bundle().graph))
    assert [output.name for output in model.graph.output] == ["features"]
    assert not {"9.weight", "9.bias"} & {one.name for one in model.graph.input}


def test_an_output_that_is_more_than_a_linear_layer_is_refused() -> None:
    model = onnx.load_from_string(bundle().files[INFER])
    name = model.graph.output[0].name
    model.graph.node[-1].output[0] = "scores"
    model.graph.node.append(helper.make_node("Tanh", ["scores"], [name]))
    with pytest.raises(MaskError, match="not that of one linear layer"):
        feature_graph(model.SerializeToString(), bundle().graph)


def test_a_scaled_layer_is_not_taken_for_the_head() -> None:
    model = onnx.load_from_string(bundle().files[INFER])
    (gemm,) = (node for node in model.graph.node if node.op_type == "Gemm")
    gemm.attribute.append(helper.make_attribute("alpha", 0.5))
    with pytest.raises(MaskError):
        feature_graph(model.SerializeToString(), bundle().graph)


def test_a_product_and_a_sum_are_a_linear_layer_too() -> None:
    model = onnx.load_from_string(bundle().files[INFER])
    place, gemm = next((place, node) for place, node in enumerate(model.graph.node) if node.op_type == "Gemm")
    read, matrix, bias = gemm.input
    made = gemm.output[0]
    nodes = [
        helper.make_node("Transpose", [matrix], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", [read, "turned"], ["product"]),
        helper.make_node("Add", [bias, "product"], [made]),
    ]
    every = [*model.graph.node[:place], *nodes, *model.graph.node[place + 1 :]]
    del model.graph.node[:]
    model.graph.node.extend(every)
    found = onnx.load_from_string(feature_graph(model.SerializeToString(), bundle().graph))
    assert found.graph.node[-1].input[0] == read
    assert found.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT

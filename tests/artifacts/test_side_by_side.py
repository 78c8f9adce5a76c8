"""Several networks as one ONNX model: its logits are the mean of theirs."""

import numpy as np
import onnx
import pytest

from device_runtime.engines import ThreadSettings, open_engine
from edgefl.artifacts.bundle import INFER
from edgefl.artifacts.graph_check import check_graph
from edgefl.artifacts.side_by_side import bake_networks
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import MaskError
from edgefl.local_rules.base_networks import base_networks
from edgefl.masks import full_mask, gather, leading_channels
from tests.device_runtime.federation import bundle


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_logits_are_the_mean_of_those_of_the_networks(count: int) -> None:
    graph, weights = bundle().graph, bundle_weights(bundle())
    networks = [gather(mask, weights) for mask in base_networks(full_mask(graph), count)]
    assert len(networks) == count
    made = bake_networks(onnx.load_from_string(bundle().files[INFER]), networks).SerializeToString()
    check_graph(made)
    onnx.checker.check_model(onnx.load_from_string(made))
    x = np.random.default_rng(1).normal(size=(7, 1, 8, 8)).astype(np.float32)
    engine = open_engine("onnx", ThreadSettings(1))
    apart = [engine.predictor(bundle().files[INFER])(one, x) for one in networks]
    assert engine.predictor(made)({}, x) == pytest.approx(np.mean(apart, axis=0), abs=1e-5)


def test_networks_may_have_other_widths() -> None:
    graph, weights = bundle().graph, bundle_weights(bundle())
    networks = [gather(leading_channels(graph, share), weights) for share in (0.5, 0.25)]
    made = bake_networks(onnx.load_from_string(bundle().files[INFER]), networks).SerializeToString()
    x = np.random.default_rng(1).normal(size=(3, 1, 8, 8)).astype(np.float32)
    engine = open_engine("onnx", ThreadSettings(1))
    apart = [engine.predictor(bundle().files[INFER])(one, x) for one in networks]
    assert engine.predictor(made)({}, x) == pytest.approx(np.mean(apart, axis=0), abs=1e-5)


def test_no_network_is_no_model() -> None:
    with pytest.raises(MaskError, match="no network"):
        bake_networks(onnx.load_from_string(bundle().files[INFER]), [])

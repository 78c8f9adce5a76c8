"""A wider bundle: submodels of the original's widths cost and compute what they did."""

import numpy as np
import pytest
from hypothesis import given, settings

from device_runtime.engines import ThreadSettings, open_engine
from edgefl.artifacts.bundle import INFER, TRAIN, pack_bundle, unpack_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.artifacts.widen import widen
from edgefl.errors import MaskError
from edgefl.masks import Mask, full_mask, gather
from edgefl.model_graph import ModelGraph, cost_of, widened
from edgefl.simulation.built_in_models import built_in_bundle
from tests.device_runtime.federation import bundle
from tests.random_models import model_graphs


@settings(max_examples=40, deadline=None)
@given(graph=model_graphs())
def test_a_submodel_of_the_original_widths_is_the_original(graph: ModelGraph) -> None:
    for factor in (1.0, 1.5, 2.0, 3.7):
        wider = widened(graph, factor)
        widths = {group.name: group.width for group in graph.groups}
        assert cost_of(wider, widths) == cost_of(graph, widths)
        same = Mask.of(wider, kept={name: range(width) for name, width in widths.items()})
        assert same.shapes == full_mask(graph).shapes
        for group, other in zip(graph.groups, wider.groups, strict=True):
            if group.fixed is not None or factor == 1:
                assert group.width == other.width
            else:
                assert other.width % group.multiple_of == 0
                assert abs(other.width - factor * group.width) <= group.multiple_of


@settings(max_examples=40, deadline=None)
@given(graph=model_graphs())
def test_other_submodels_cost_what_their_widths_cost(graph: ModelGraph) -> None:
    wider = widened(graph, 2.0)
    twice = Mask.of(wider)
    for group in wider.groups:
        if group.fixed is None:
            half = Mask.of(wider, kept={group.name: range(group.width // 2, group.width)})
            assert half.cost.parameters < twice.cost.parameters


def test_a_network_of_the_last_channels_predicts() -> None:
    wide = widen(bundle(), 2.5, seed=3)
    assert wide.manifest.graph == wide.graph.digest != bundle().graph.digest
    assert unpack_bundle(pack_bundle(wide)).files == dict(wide.files)
    assert (wide.files[INFER], wide.files[TRAIN]) == (bundle().files[INFER], bundle().files[TRAIN])
    assert [group.width for group in wide.graph.groups if group.fixed is None] == [40, 80]
    x = np.random.default_rng(1).normal(size=(4, 1, 8, 8)).astype(np.float32)
    predict = open_engine("onnx", ThreadSettings(1)).predictor(wide.files[INFER])
    widths = {group.name: group.width for group in bundle().graph.groups}
    original = Mask.of(wide.graph, kept={name: range(width) for name, width in widths.items()})
    weights = bundle_weights(wide)
    assert predict(gather(original, weights), x) == pytest.approx(predict(bundle_weights(bundle()), x), abs=1e-6)
    last = {group.name: range(group.width - 8, group.width) for group in wide.graph.groups if group.fixed is None}
    assert np.isfinite(predict(gather(Mask.of(wide.graph, kept=last), weights), x)).all()


def test_added_weights_have_the_distribution_of_the_first_ones() -> None:
    narrow = built_in_bundle("digits_mlp")
    wide = widen(narrow, 4.0)
    for name, array in bundle_weights(narrow).items():
        added = bundle_weights(wide)[name]
        assert set(np.unique(added)) <= set(np.unique(array))
        if array.size > 1000:
            assert added.std() == pytest.approx(array.std(), rel=0.1)
    again, other = (bundle_weights(widen(narrow, 4.0, seed=seed))["head.weight"] for seed in (0, 1))
    assert np.array_equal(again, bundle_weights(wide)["head.weight"])
    assert not np.array_equal(again, other)


def test_a_model_is_not_made_narrower() -> None:
    with pytest.raises(MaskError, match="cannot be made"):
        widen(bundle(), 0.5)

"""Training as usual, and a compressed update at the end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.local_rules import CompressedSgd, Descent, Sgd, TrainingInput
from edgefl.local_rules.compressed_sgd import Compression
from edgefl.local_rules.compression import (
    Drive,
    Eden,
    RandomSubsample,
    ScaledSign,
    SignScale,
    StochasticSign,
    TernGrad,
    TopK,
)
from edgefl.local_rules.descent import weight_tensors
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import ModelGraph
from edgefl.wire import Body, BodyKind, Dense, decode, encode
from tests.local_rules.quadratic import Quadratic, assert_frozen_stay, assert_resumes, part_of, train
from tests.random_models import masked_models


@given(masked_models(), st.sampled_from(Compression), st.integers(0, 2**64 - 1))
def test_the_coordinator_expands_what_the_device_compressed(
    model: tuple[ModelGraph, Mask], compression: Compression, seed: int
) -> None:
    graph, mask = model
    part = TrainingInput(mask, part_of(mask, 1).weights, seed)
    rule = CompressedSgd(compressor=compression, kept=1.0, descent=Descent(momentum=0.5))
    _, update = train(rule, part, Quadratic(graph), 3)
    assert_frozen_stay(part, update)
    arrived = decode(encode(Body(BodyKind.UPDATE, update.tensors, seed))).tensors
    plain = train(Sgd(descent=Descent(momentum=0.5)), part, Quadratic(graph), 3)[1]
    assert all(np.array_equal(update.weights[name], array) for name, array in plain.weights.items())
    expanded = rule.expand(mask, arrived, seed)
    assert set(expanded) == set(weight_tensors(mask))
    for name, found in expanded.items():
        truth = plain.weights[name] - part.weights[name]
        assert found.shape == truth.shape
        assert not found[~mask.held.get(name, np.ones(found.shape, np.bool_))].any()
        if compression in (Compression.TOP_K, Compression.RANDOM_SUBSAMPLE):  # everything is kept
            assert np.array_equal(found, truth)
    for name in set(mask.trained_tensors) - set(expanded):
        payload = arrived[name]
        assert isinstance(payload, Dense)
        assert np.array_equal(payload.array, plain.weights[name])


@pytest.mark.parametrize("compression", Compression)
def test_a_compressed_update_points_where_the_update_does(small: ModelGraph, compression: Compression) -> None:
    part = part_of(full_mask(small), 3)
    rule = CompressedSgd(compressor=compression, kept=0.3)
    _, update = train(rule, part, Quadratic(small), 5)
    for name, found in rule.expand(part.mask, update.tensors, part.seed).items():
        truth = update.weights[name] - part.weights[name]
        assert float((found * truth).sum()) > 0.2 * float(np.linalg.norm(found) * np.linalg.norm(truth))


@given(masked_models(), st.integers(0, 2))
def test_a_round_goes_on_after_a_crash(model: tuple[ModelGraph, Mask], stop: int) -> None:
    rule = CompressedSgd(descent=Descent(momentum=0.9), compressor=Compression.TERNGRAD)
    assert_resumes(rule, part_of(model[1], 2, steps=3), Quadratic(model[0]), steps=3, stop=stop)


def test_the_settings_of_a_compressor_reach_it() -> None:
    made = {
        "stochastic_sign": StochasticSign(SignScale.L2),
        "scaled_sign": ScaledSign(),
        "terngrad": TernGrad(1.5),
        "top_k": TopK(0.2),
        "drive": Drive(),
        "eden": Eden(),
        "random_subsample": RandomSubsample(0.2, unbiased=False),
    }
    for compression in Compression:
        rule = CompressedSgd(
            compressor=compression, sign_scale=SignScale.L2, terngrad_clip=1.5, kept=0.2, unbiased=False
        )
        assert rule.build() == made[compression]
        assert rule.build().name == compression

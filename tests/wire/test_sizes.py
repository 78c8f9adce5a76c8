"""Bits on the wire for FedMRN's CNN4 of 390,880 parameters, headers included."""

import numpy as np

from edgefl.model_graph import TensorRole
from edgefl.wire import Bits, Body, BodyKind, Dense, Payload, Sparse, encode, measure
from examples.networks import cnn4
from tests.random_models import numbered


def test_a_bit_packed_update_takes_hardly_more_than_one_bit_a_masked_parameter() -> None:
    graph = cnn4()
    generator = np.random.default_rng(0)
    masked = [tensor for tensor in graph.tensors if tensor.role in (TensorRole.WEIGHT, TensorRole.HEAD)]
    tensors: dict[str, Payload] = {t.name: Bits.of(generator.random(t.shape) < 0.5) for t in masked}
    data = encode(Body(BodyKind.UPDATE, tensors, seed=2**64 - 1))
    assert sum(tensor.size for tensor in masked) == 389_920
    assert measure(data).bits_per_parameter(389_920) <= 1.02


def test_a_tenth_of_the_weights_takes_little_more_than_a_tenth_of_the_bits() -> None:
    generator = np.random.default_rng(0)
    tensors: dict[str, Payload] = {
        name: Sparse.where(array, generator.random(array.shape) < 0.1) for name, array in numbered(cnn4()).items()
    }
    assert measure(encode(Body(BodyKind.UPDATE, tensors))).bits_per_parameter(390_880) <= 4.3


def test_a_dense_body_costs_its_tensors_and_a_small_header() -> None:
    weights = numbered(cnn4())
    data = encode(Body(BodyKind.WEIGHTS, {name: Dense(array) for name, array in weights.items()}))
    assert len(data) <= 1.001 * 4 * 390_880

"""Compressed updates against the papers' formulas written out, after 20 steps of PyTorch's own training."""

import numpy as np
import pytest

from edgefl.local_rules import CompressedSgd, Descent, TrainingInput
from edgefl.local_rules.compressed_sgd import Compression
from edgefl.masks import full_mask
from edgefl.noise import bits, derive, unit
from tests.export.local_rules.engines import TorchStep, batches, exported, network, run_rule
from tests.export.local_rules.test_sgd import torch_training

STEPS = 20
SEED = 77
pytestmark = pytest.mark.usefixtures("one_thread")


def hadamard(size: int) -> np.ndarray:
    matrix: np.ndarray = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return np.asarray(matrix / size**0.5)


def signs_of(size: int, name: str) -> np.ndarray:
    words = [int(word) for word in bits(derive(SEED, "rotation", name), 0, -(-size // 64))]
    return np.array([1.0 if words[i // 64] >> (i % 64) & 1 else -1.0 for i in range(size)])


def rotated(update: np.ndarray, name: str, *, unbiased: bool) -> np.ndarray:
    """DRIVE or EDEN by dense matrices, block by block: 252 = 128 + 64 + 60, the last one padded."""
    widths, left = [], update.size
    for width in (128, 64):
        if left >= width:
            widths.append(width)
            left -= width
    if left:
        widths.append(1 << (left - 1).bit_length())
    padded = np.zeros(sum(widths))
    padded[: update.size] = update.reshape(-1)
    signs, found, begin = signs_of(padded.size, name), np.zeros(padded.size), 0
    for width in widths:
        here = slice(begin, begin + width)
        rotation = hadamard(width) * signs[here]
        y = rotation @ padded[here]
        q = np.where(y >= 0, 1.0, -1.0)
        scale = (padded[here] @ padded[here]) / (y @ q) if unbiased else (y @ q) / (q @ q)
        found[here] = rotation.T @ (scale * q)
        begin += width
    return found[: update.size].reshape(update.shape)


def expected_for(compression: Compression, update: np.ndarray, name: str) -> np.ndarray:
    flat = update.reshape(-1).astype(np.float64)
    match compression:
        case Compression.STOCHASTIC_SIGN:
            s = np.abs(flat).max()
            v = unit(derive(SEED, "signs", name), 0, flat.size)
            found = np.where(v < 0.5 + flat / (2 * s), s, -s)
        case Compression.SCALED_SIGN:
            found = np.abs(flat).mean() * np.where(flat >= 0, 1, -1)
        case Compression.TERNGRAD:
            limit = 2.5 * flat.std()
            clipped = np.clip(flat, -limit, limit)
            s = np.abs(clipped).max()
            b = unit(derive(SEED, "levels", name), 0, flat.size) < np.abs(clipped) / s
            found = s * np.sign(clipped) * b
        case Compression.TOP_K:
            count = max(1, round(0.2 * flat.size))
            found = np.where(np.abs(flat) >= np.sort(np.abs(flat))[-count], flat, 0)
        case Compression.RANDOM_SUBSAMPLE:
            count = max(1, round(0.2 * flat.size))
            words = bits(derive(SEED, "subsample", name), 0, flat.size)
            found = np.where(words <= np.sort(words)[count - 1], flat * flat.size / count, 0)
        case _:
            return rotated(update, name, unbiased=compression is Compression.EDEN)
    return np.asarray(found).reshape(update.shape)


@pytest.mark.parametrize("compression", Compression)
def test_an_update_of_twenty_steps_is_what_the_formula_says(compression: Compression) -> None:
    found, data = exported(), batches(STEPS)
    part = TrainingInput(full_mask(found.graph), found.weights(), seed=SEED, steps=STEPS)
    rule = CompressedSgd(compressor=compression, kept=0.2, descent=Descent(learning_rate=0.1, momentum=0.9))
    _, update = run_rule(rule, part, TorchStep(network()), data)
    trained = torch_training(data, {"lr": 0.1, "momentum": 0.9})
    expanded = rule.expand(part.mask, update.tensors, SEED)
    assert set(expanded) == {"0.weight", "5.weight", "7.weight"}
    for name, array in expanded.items():
        assert np.allclose(update.weights[name], trained[name], rtol=1e-4, atol=2e-6)
        expected = expected_for(compression, update.weights[name] - part.weights[name], name)
        assert np.allclose(array, expected, rtol=1e-4, atol=1e-6), name

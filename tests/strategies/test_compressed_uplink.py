"""Compressed updates of the coordinator's strategies against slow transcriptions: one entry at a time, from the seed.

From what a device's training added to its weights follows, compressor by compressor, the update that the coordinator
is to understand, and from those of several devices the next model.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from edgefl.local_rules.descent import weight_tensors
from edgefl.strategies import strategy_of
from edgefl.wire import Dense
from tests.strategies.rounds import ROUND_CONTEXT, random_weights, slow_mean
from tests.strategies.test_equations import GRAPH, MASKS
from tests.strategies.test_fedmrn import seed_for, word_of
from tests.strategies.wired import order_of, wired


def draw(seed: int, kind: str, tensor: str, place: int) -> int:
    return word_of(seed_for(seed, kind, tensor), place)


def signs(u: list[float], seed: int, tensor: str) -> list[float]:
    """Plus the largest |u| with probability 1/2 + u / (2 s), else minus."""
    s = max(map(abs, u))
    chances = [((draw(seed, "signs", tensor, i) >> 40) - 2**23) / 2**23 for i in range(len(u))]
    return [s if chance < entry / s else -s for chance, entry in zip(chances, u, strict=True)]


def levels(u: list[float], seed: int, tensor: str) -> list[float]:
    """Clipped at 2.5 standard deviations; the largest with the entry's sign with probability |u| / s, else 0."""
    limit = 2.5 * float(np.std(u))
    clipped = [min(max(entry, -limit), limit) for entry in u]
    s = max(map(abs, clipped))
    chances = [(draw(seed, "levels", tensor, i) >> 40) / 2**24 for i in range(len(u))]
    return [math.copysign(s, v) if chance * s < abs(v) else 0.0 for chance, v in zip(chances, clipped, strict=True)]


def largest(u: list[float], seed: int, tensor: str) -> list[float]:
    chosen = sorted(range(len(u)), key=lambda i: -abs(u[i]))[: max(1, round(0.2 * len(u)))]
    return [entry if i in chosen else 0.0 for i, entry in enumerate(u)]


def some(u: list[float], seed: int, tensor: str) -> list[float]:
    """Those of the lowest words, scaled up for what is not sent."""
    k = max(1, round(0.2 * len(u)))
    chosen = sorted(range(len(u)), key=lambda i: draw(seed, "subsample", tensor, i))[:k]
    return [entry * len(u) / k if i in chosen else 0.0 for i, entry in enumerate(u)]


def turned(u: list[float], seed: int, tensor: str, *, unbiased: bool) -> list[float]:
    """S (R transposed) sign(R u), R being random signs and the Walsh-Hadamard matrix; blocks of 64 and what is left."""
    found: list[float] = []
    while len(found) < len(u):
        block = u[len(found) :][:64]
        width = 1 << (len(block) - 1).bit_length()
        flips = [
            2 * (draw(seed, "rotation", tensor, i // 64) >> i % 64 & 1) - 1
            for i in range(len(found), len(found) + width)
        ]
        h = [[(-1) ** (i & j).bit_count() / math.sqrt(width) for j in range(width)] for i in range(width)]
        y = [sum(h[i][j] * flips[j] * entry for j, entry in enumerate(block)) for i in range(width)]
        ones = sum(map(abs, y))
        s = sum(v * v for v in y) / ones if unbiased else ones / width
        back = [sum(h[i][j] * (s if y[j] >= 0 else -s) for j in range(width)) * flips[i] for i in range(width)]
        found += back[: len(block)]
    return found


SAID: Mapping[str, Callable[[list[float], int, str], list[float]]] = {
    "signsgd": signs,
    "topk": largest,
    "terngrad": levels,
    "drive": lambda u, seed, tensor: turned(u, seed, tensor, unbiased=False),
    "eden": lambda u, seed, tensor: turned(u, seed, tensor, unbiased=True),
    "random_subsampling": some,
}


@pytest.mark.parametrize("name", ["signsgd", "topk", "terngrad", "drive", "eden", "random_subsampling"])
def test_compressed_updates_are_averaged_as_in_a_slow_loop(name: str) -> None:
    strategy: Any = strategy_of(name, {"sent_share": 0.2, "learning_rate": 0.1})
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    found, plain = [], []
    for number, mask in enumerate(MASKS):
        one = wired(order_of(mask, strategy.uplink.rule), model.weights, seed=40 + number, samples=3 + number)
        strategy.check(one.client_update)
        found.append(one.client_update)
        new = {tensor: np.asarray(one.update.weights[tensor], np.float64) for tensor in mask.trained_tensors}
        for tensor in weight_tensors(mask):
            given = one.part.weights[tensor]
            u = (one.update.weights[tensor] - given).ravel().tolist()
            new[tensor] = given + np.reshape(SAID[name](u, 40 + number, tensor), given.shape)
        tensors = {tensor: Dense(array.astype(np.float32)) for tensor, array in new.items()}
        plain.append(dataclasses.replace(one.client_update, tensors=tensors))
    exact, _ = slow_mean(model, plain)
    after = strategy.combine(model, found, ROUND_CONTEXT).weights
    for tensor, array in exact.items():
        assert np.allclose(after[tensor], array, rtol=1e-5, atol=1e-6), tensor

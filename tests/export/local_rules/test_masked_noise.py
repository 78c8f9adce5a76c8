"""FedMRN against Algorithm 1, written out entry by entry with its own random numbers: equal bit for bit."""

import hashlib
import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from edgefl.local_rules import Batch, Descent, MaskedNoise, TrainingInput, rebuild
from edgefl.local_rules.masked_noise import Masking, MaskKind, NoiseDistribution
from edgefl.masks import full_mask, gather, leading_channels
from edgefl.wire import Bits, Body, BodyKind, encode, measure
from export.zoo import build
from tests.export.local_rules.engines import OnnxStep, TorchStep, batches, exported, network, run_rule
from tests.export.parity import Exported
from tests.golden.noise_file import normal_quantile

STEPS = 20
RATE = 0.1
f32 = np.float32
WORD = 2**64
pytestmark = pytest.mark.usefixtures("one_thread")


def word(seed: int, index: int) -> int:
    """The specification of `edgefl.noise`, in Python's own integers."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def stream(seed: int, *parts: str) -> int:
    for part in parts:
        seed = word(seed, int.from_bytes(hashlib.sha256(part.encode()).digest()[:8], "little"))
    return seed


class Algorithm1:
    """Lines 11-20 for the tensors that are masked; the others take plain steps."""

    def __init__(self, part: TrainingInput, masked: list[str], rule: MaskedNoise) -> None:
        self.part, self.masked, self.kind, self.masking = part, masked, rule.masks, rule.masking
        self.weights = {name: array.copy() for name, array in part.weights.items()}
        self.noise = {name: self._noise(name, f32(rule.noise_bound), rule.distribution) for name in masked}
        self.update = {name: [f32(0)] * part.weights[name].size for name in masked}
        self.words = self._words()

    def _noise(self, name: str, bound: np.float32, distribution: NoiseDistribution) -> list[np.float32]:
        seed = stream(self.part.seed, "noise", name)
        words = [word(seed, i) for i in range(self.part.weights[name].size)]
        match distribution:
            case NoiseDistribution.UNIFORM:
                noise = [f32((f32(one >> 40) - f32(2**23)) * f32(2**-23)) * bound for one in words]
            case NoiseDistribution.GAUSSIAN:
                noise = [f32(normal_quantile(one >> 32)) * bound for one in words]
            case NoiseDistribution.BERNOULLI:
                noise = [bound if one >> 63 else -bound for one in words]
        return [f32(1e-8) if abs(n) < f32(1e-8) else n for n in noise]

    def _words(self) -> Iterator[int]:
        seed = stream(self.part.seed, "draws")
        return (word(seed, index) for index in itertools.count())

    def _draws(self, size: int) -> list[int]:
        """Numbers below 2^24: two from every word, and none left over for the next tensor."""
        words = list(itertools.islice(self.words, (size + 1) // 2))
        halves = [half for w in words for half in (w % 2**32, w >> 32)]
        return [half >> 8 for half in halves[:size]]

    def _mask(self, u: np.float32, n: np.float32, v: int, share: np.float32) -> int | None:
        """M(u, n), or None where the Bernoulli variable P is 0."""
        if not v < share:
            return None
        least = f32(0) if self.kind is MaskKind.BINARY else f32(-1)
        ratio = min(max(f32(u / n), least), f32(1))
        if not self.masking.draws:
            one = ratio > 0
        elif self.kind is MaskKind.BINARY:
            one = v < f32(ratio * share)
        else:
            one = v < f32(f32(ratio + f32(1)) * f32(share / 2))
        return int(one) if self.kind is MaskKind.BINARY else 2 * int(one) - 1

    def step(self, run: TorchStep, batch: Batch, number: int) -> None:
        share = f32(number / STEPS * 2**24) if self.masking.progresses else f32(2**24)
        least = f32(0) if self.kind is MaskKind.BINARY else f32(-1)
        for name in self.masked:
            forward = []
            entries = zip(self.update[name], self.noise[name], self._draws(len(self.noise[name])), strict=True)
            for u, n, v in entries:
                m = self._mask(u, n, v, share)
                forward.append(f32(m) * n if m is not None else min(max(f32(u / n), least), f32(1)) * n)
            shape = self.part.weights[name].shape
            self.weights[name] = self.part.weights[name] + np.array(forward, f32).reshape(shape)
        result = run(self.weights, batch)
        for name, gradient in result.gradients.items():
            if name in self.masked:
                self.update[name] = [
                    f32(u - f32(f32(RATE) * g)) for u, g in zip(self.update[name], gradient.reshape(-1), strict=True)
                ]
            else:
                self.weights[name] = self.weights[name] - f32(RATE) * gradient
        self.weights |= result.statistics

    def masks(self) -> dict[str, list[int]]:
        """The final masks (line 20)."""
        found = {}
        for name in self.masked:
            entries = zip(self.update[name], self.noise[name], self._draws(len(self.noise[name])), strict=True)
            drawn = [self._mask(u, n, v, f32(2**24)) for u, n, v in entries]
            found[name] = [m for m in drawn if m is not None]
        return found


CASES = [
    *((kind, masking, NoiseDistribution.UNIFORM) for masking in Masking for kind in MaskKind),
    *((kind, Masking.PROGRESSIVE_STOCHASTIC, other) for other in list(NoiseDistribution)[1:] for kind in MaskKind),
]


@pytest.mark.parametrize(("kind", "masking", "distribution"), CASES)
def test_twenty_steps_equal_algorithm_1_bit_for_bit(
    kind: MaskKind, masking: Masking, distribution: NoiseDistribution
) -> None:
    found, run, data = exported(), TorchStep(network()), batches(STEPS)
    part = TrainingInput(full_mask(found.graph), found.weights(), seed=2**63 + 5, steps=STEPS)
    descent = Descent(learning_rate=RATE)
    rule = MaskedNoise(masks=kind, masking=masking, distribution=distribution, descent=descent)
    paper = Algorithm1(part, ["0.weight", "5.weight", "7.weight"], rule)
    state = rule.begin(part)
    for number, batch in enumerate(data, start=1):
        rule.step(part, state, batch, run)
        paper.step(run, batch, number)
        assert all(np.array_equal(state.weights[name], array) for name, array in paper.weights.items()), number
    update = rule.finish(part, state, data[0], run)
    for name, mask in paper.masks().items():
        payload = update.tensors[name]
        assert isinstance(payload, Bits)
        assert np.array_equal(payload.to_bool().reshape(-1), np.array(mask) == 1)
        masked = np.array([f32(m) * n for m, n in zip(mask, paper.noise[name], strict=True)], f32)
        expected = part.weights[name] + masked.reshape(payload.shape)
        assert np.array_equal(update.weights[name], expected)
        assert 0.05 < payload.ones() / len(mask) < 0.95


@pytest.mark.parametrize("kind", MaskKind)
def test_masked_noise_learns_on_the_exported_graph_at_any_width(kind: MaskKind) -> None:
    found = exported()
    mask = leading_channels(found.graph, 0.6)
    weights = gather(mask, found.weights())
    data = batches(1) * 200
    part = TrainingInput(mask, weights, seed=4, steps=len(data))
    rule = MaskedNoise(masks=kind, bound=0.8, descent=Descent(learning_rate=0.3))
    losses = [OnnxStep(found)(weights, data[0]).loss]
    _, update = run_rule(rule, part, OnnxStep(found), data)
    losses.append(OnnxStep(found)(update.weights, data[0]).loss)
    assert losses[1] < 0.7 * losses[0]
    for name in ("0.weight", "5.weight", "7.weight"):
        payload = update.tensors[name]
        assert isinstance(payload, Bits)
        noise = rebuild(payload, part.seed, name, masks=kind, bound=0.8)
        assert np.array_equal(weights[name] + noise, update.weights[name])


def test_cnn4_takes_the_bits_that_the_paper_counts() -> None:
    found = Exported(build("cnn4"), torch.randn(13, 1, 28, 28))
    part = TrainingInput(full_mask(found.graph), found.weights(), seed=1)
    rule = MaskedNoise()
    update = rule.finish(part, rule.begin(part), batches(1)[0], OnnxStep(found))
    sizes = measure(encode(Body(BodyKind.UPDATE, update.tensors, part.seed)))
    masked = [name for name, payload in update.tensors.items() if isinstance(payload, Bits)]
    assert sum(update.weights[name].size for name in masked) == 389_920
    data = {name: 8 * count for name, count in sizes.tensor_bytes.items()}
    assert sum(data[name] for name in masked) == 389_920
    norms = [name for name in data if name.endswith(("norm.weight", "norm.bias"))]
    assert sum(data[name] for name in norms) == 32 * 960
    # With the running statistics, and a counter of 64 bits for each of the four norms.
    assert sum(data.values()) == 389_920 + 32 * 960 + 32 * 960 + 4 * 64
    assert sum(data.values()) / 390_880 == pytest.approx(1.155, abs=1e-3)

"""Rule `masked_noise`: learn one bit per weight that selects from random noise, and send the bits. FedMRN.

Li et al., "Masked Random Noise for Communication-Efficient Federated Learning", ACM MM 2024. The device generates noise
n from its seed, trains an update u that starts at zero, and replaces it by masked noise in the forward pass:

    r = u / n
    m = 1 with probability clip(r, 0, 1), else 0                                binary masks, Eq. 6
    m = 1 with probability clip((r + 1) / 2, 0, 1), else -1                     signed masks, Eq. 7
    P = 1 with probability step / steps                                         Algorithm 1, line 16
    forward pass with w + n * (m where P is 1, else r clipped to [0, 1] or [-1, 1])       Eq. 10, lines 15-18
    u <- u - rate * gradient                                                    Eq. 9, line 19

At the end the device draws m once more and sends it (line 20): one bit per weight. Where the paper is silent the
authors' code decides: only matrices and kernels are masked (including the head's), everything else is trained as usual
and sent in full; u is clipped in the forward pass only; noise nearer to zero than 1e-8 is 1e-8; the a of Gaussian noise
N(0, a) is its standard deviation.

Randomness, all from `edgefl.noise`: the noise of a tensor is `noise_of`. The draws of a step are halves of words of the
stream derive(seed, "draws"). The masked tensors lie on it one after the other in the model's order, each beginning with
a new word, step after step; of the entries of a tensor, the even ones have the low half of a word, the odd ones the
high half. The top 24 bits of a half are one number v in [0, 1), which decides both P (v < step / steps) and, where P is
1, m (v < step / steps * probability): given the first, the second has the right probability.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.local_rules.descent import (
    BLOCK,
    DescentRule,
    Positive,
    adopt_statistics,
    descend,
    start,
    weight_tensors,
)
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.local_rules.sensitivity import observed, report_forms, reported
from edgefl.local_rules.sent_tensors import bits_and_values
from edgefl.masks import Array, BoolArray, Mask
from edgefl.noise import bits, derive, normal, rademacher, symmetric
from edgefl.wire import Bits, Dense, Expected, Payload
from edgefl.wire.codecs.checks import check_finite

__all__ = ["MaskKind", "MaskedNoise", "Masking", "NoiseDistribution", "noise_of", "rebuild"]

FloatArray = npt.NDArray[np.float32]

LEAST_NOISE = np.float32(1e-8)


class MaskKind(StrEnum):
    """What a mask's bit means: noise or no noise, or plus or minus the noise."""

    BINARY = "binary"
    SIGNED = "signed"


_BOUNDS = {MaskKind.BINARY: 0.01, MaskKind.SIGNED: 0.005}  # section 5.1.4


class NoiseDistribution(StrEnum):
    """What noise is drawn from; all but the first are those of section 5.5. a is the bound."""

    UNIFORM = "uniform"
    """Uniform in [-a, a)."""
    GAUSSIAN = "gaussian"
    """Normal, with mean 0 and standard deviation a."""
    BERNOULLI = "bernoulli"
    """-a or a, with equal chances."""


class Masking(StrEnum):
    """How masks are drawn; all but the first are ablations (section 5.3)."""

    PROGRESSIVE_STOCHASTIC = "progressive_stochastic"
    STOCHASTIC = "stochastic"
    """Everything is masked from the first step on."""
    PROGRESSIVE = "progressive"
    """Masks are not drawn: a bit is set where update and noise have the same sign (section 3.2.1)."""
    DETERMINISTIC = "deterministic"
    """Neither progressive nor stochastic."""

    @property
    def draws(self) -> bool:
        """Whether the bits of a mask are drawn."""
        return self in (Masking.PROGRESSIVE_STOCHASTIC, Masking.STOCHASTIC)

    @property
    def progresses(self) -> bool:
        """Whether the share of masked weights grows from step to step."""
        return self in (Masking.PROGRESSIVE_STOCHASTIC, Masking.PROGRESSIVE)


_GENERATORS = {
    NoiseDistribution.UNIFORM: symmetric,
    NoiseDistribution.GAUSSIAN: normal,
    NoiseDistribution.BERNOULLI: rademacher,
}


def noise_of(
    seed: int,
    tensor: str,
    shape: tuple[int, ...],
    bound: float,
    distribution: NoiseDistribution = NoiseDistribution.UNIFORM,
) -> FloatArray:
    """Return the noise of a tensor: the same bits on the device and the coordinator."""
    noise = _GENERATORS[distribution](derive(seed, "noise", tensor), 0, math.prod(shape), bound)
    noise[np.abs(noise) < LEAST_NOISE] = LEAST_NOISE
    return noise.reshape(shape)


def rebuild(
    payload: Bits,
    seed: int,
    tensor: str,
    *,
    masks: MaskKind = MaskKind.BINARY,
    bound: float | None = None,
    distribution: NoiseDistribution = NoiseDistribution.UNIFORM,
    held: BoolArray | None = None,
) -> FloatArray:
    """Return the masked noise that a device's bits stand for (Algorithm 1, line 9): its update of this tensor."""
    noise = noise_of(seed, tensor, payload.shape, _BOUNDS[masks] if bound is None else bound, distribution)
    noise *= _values_of(payload.to_bool(), masks)
    if held is not None:
        noise *= held
    return noise


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedNoise(DescentRule):
    """FedMRN's local training."""

    name: ClassVar[str] = "masked_noise"
    masks: MaskKind = MaskKind.BINARY
    bound: Positive | None = None
    """How large noise is, as its distribution says. By default 0.01 with binary masks and 0.005 with signed ones."""
    masking: Masking = Masking.PROGRESSIVE_STOCHASTIC
    sensitivity: bool = field(default=False, metadata={"added": True})
    """Whether the update also reports sensitivities, by the weights of the forward pass."""
    distribution: NoiseDistribution = field(default=NoiseDistribution.UNIFORM, metadata={"added": True})
    """What noise is drawn from."""

    @property
    def noise_bound(self) -> float:
        """The bound, or its default."""
        return _BOUNDS[self.masks] if self.bound is None else self.bound

    def change(self, payload: Bits, seed: int, tensor: str, held: BoolArray | None) -> FloatArray:
        """Return the masked noise that bits stand for."""
        return rebuild(
            payload,
            seed,
            tensor,
            masks=self.masks,
            bound=self.noise_bound,
            distribution=self.distribution,
            held=held,
        )

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send bits of matrices and kernels, new values of the rest, and the report if it is asked for."""
        bits = bits_and_values(mask, weight_tensors(mask))
        return bits | report_forms(mask) if self.sensitivity else bits

    def begin(self, inputs: TrainingInput) -> State:
        """Generate the noise, and updates of zero (lines 11-13)."""
        state = start(inputs)
        for name in weight_tensors(inputs.mask):
            shape = state.weights[name].shape
            noise = noise_of(inputs.seed, name, shape, self.noise_bound, self.distribution)
            state.memory[f"noise:{name}"] = noise
            state.memory[f"update:{name}"] = np.zeros(shape, np.float32)
        return state

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Mask the updates for the forward pass, and move them down the gradient (lines 15-19)."""
        masked = weight_tensors(state.mask)
        share = min((state.steps + 1) / max(inputs.steps, 1), 1.0) if self.masking.progresses else 1.0
        draws = _Draws(inputs.seed, state, masked)
        for name in masked:
            self._mask(inputs, state, name, draws, share)
        result = (observed(run, state) if self.sensitivity else run)(state.weights, batch)
        moved = {name: state.weights[name] for name in trained_parameters(state.mask)}
        moved |= {name: state.memory[f"update:{name}"] for name in masked}
        # An update is itself the distance from the global model, so its proximal term pulls to zero.
        anchors = {name: array for name, array in inputs.weights.items() if name not in masked}
        descend(self.descent, self.descent.rate(inputs, state.steps), moved, result.gradients, state, anchors=anchors)
        adopt_statistics(state, result)
        state.steps += 1
        return result

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Draw the final masks (line 20)."""
        masked = weight_tensors(state.mask)
        draws = _Draws(inputs.seed, state, masked)
        tensors: dict[str, Payload] = {}
        for name in state.mask.trained_tensors:
            tensors[name] = self._final_bits(state, name, draws) if name in masked else Dense(state.weights[name])
        weights = dict(state.weights)
        ones = 0
        for name in masked:
            payload, held = tensors[name], state.mask.held.get(name)
            assert isinstance(payload, Bits)  # set a few lines above
            weights[name] = inputs.weights[name] + self.change(payload, inputs.seed, name, held)
            ones += payload.ones()
        size = sum(weights[name].size for name in masked)
        if self.sensitivity:
            tensors |= reported(state)
        return Update(tensors, weights, state.mask, {"ones": ones / size} if size else {})

    def _mask(self, inputs: TrainingInput, state: State, name: str, draws: "_Draws", share: float) -> None:
        """Write the weights of the forward pass: global weights and masked noise, block by block."""
        update, noise = (state.memory[f"{kind}:{name}"].reshape(-1) for kind in ("update", "noise"))
        base, out = inputs.weights[name].reshape(-1), state.weights[name].reshape(-1)
        held = state.mask.held[name].reshape(-1) if name in state.mask.held else None
        ratios = np.empty(min(update.size, BLOCK), np.float32)
        for begin in range(0, update.size, BLOCK):
            here = slice(begin, begin + BLOCK)
            masked = np.divide(update[here], noise[here], out=ratios[: update.size - begin])
            self._mask_ratios(masked, draws.block(name, begin, masked.size), share)
            masked *= noise[here]
            if held is not None:
                masked *= held[here]
            np.add(base[here], masked, out=out[here])

    def _mask_ratios(self, ratio: FloatArray, draw: FloatArray, share: float) -> None:
        """Turn u / n into the factor on the noise: a mask's value, or the ratio itself where it is not masked yet.

        Draws are integers below 2^24. Selecting by random flags is slow, because a processor cannot predict them;
        products with zeros and ones are fast and just as exact.
        """
        signed, limit = self.masks is MaskKind.SIGNED, np.float32(share * 2**24)
        ratio.clip(np.float32(-1 if signed else 0), np.float32(1), out=ratio)
        mask = self._ones(ratio, draw, limit)
        if signed:
            mask *= 2
            mask -= 1
        if share < 1:
            left = np.greater_equal(draw, limit, out=draw)
            ratio *= left
            if signed:
                mask += left  # it is -1 where nothing was drawn, and must add nothing there
            ratio += mask
        else:
            np.copyto(ratio, mask)

    def _ones(self, ratio: FloatArray, draw: FloatArray, limit: np.float32) -> FloatArray:
        """Return 1 where the mask is drawn and its bit is set, else 0; draws below the limit are drawn."""
        if not self.masking.draws:
            return ((ratio > 0) & (draw < limit)).astype(np.float32)
        if self.masks is MaskKind.BINARY:
            chance: FloatArray = ratio * limit
        else:
            chance = ratio + np.float32(1)
            chance *= limit / 2
        np.less(draw, chance, out=chance)
        return chance

    def _final_bits(self, state: State, name: str, draws: "_Draws") -> Bits:
        update, noise = (state.memory[f"{kind}:{name}"] for kind in ("update", "noise"))
        check_finite(name, update)  # bits would hide that training diverged
        ratio = np.divide(update, noise, dtype=np.float32).reshape(-1)
        self._mask_ratios(ratio, draws.block(name, 0, ratio.size), 1.0)
        flags = (ratio > 0).reshape(update.shape)
        return Bits.of(flags & state.mask.held[name] if name in state.mask.held else flags)


class _Draws:
    """The random numbers of one step, integers below 2^24 (see the top of this file)."""

    def __init__(self, seed: int, state: State, masked: tuple[str, ...]) -> None:
        words = [-(-state.weights[name].size // 2) for name in masked]
        ends = itertools.accumulate(words, initial=state.steps * sum(words))
        self._stream, self._first = derive(seed, "draws"), dict(zip(masked, ends, strict=False))

    def block(self, tensor: str, begin: int, count: int) -> FloatArray:
        """Return the draws of some entries of a tensor, starting at an even one."""
        words = bits(self._stream, self._first[tensor] + begin // 2, -(-count // 2))
        halves = words.astype("<u8", copy=False).view("<u4")[:count]
        halves >>= 8
        return halves.view("<i4").astype(np.float32)  # signed, because that conversion is the fast one


def _values_of(flags: BoolArray, masks: MaskKind) -> Array:
    """Return the factors on the noise that a mask's bits stand for."""
    if masks is MaskKind.BINARY:
        return flags
    values = flags.astype(np.float32)
    values *= 2
    values -= 1
    return values

"""Rule `sampled_masks`: learn the probability that a random weight is worth keeping, and send one draw. FedPM.

Isik et al., "Sparse Random Networks for Communication-Efficient Federated Learning" (FedPM), ICLR 2023. Weights are
random, generated from a seed that all devices share, and never change. The coordinator sends a probability theta for
each, in `TrainingInput.extras` as "p/<tensor>". The device moves scores s = logit(theta):

    m = 1 with probability sigmoid(s), else 0                   drawn again in every step
    forward pass with w * m
    gradient of s = gradient of (w * m) * w * sigmoid'(s)       straight through the draw
    s moves by Adam

At the end it draws m once more and sends it: one bit per weight. Defaults are those of the authors' code: Adam with
rate 0.1 and PyTorch's other settings; weights of either sign and of one size in a tensor, e / sqrt(fan-in). (There the
gradient of a draw is multiplied by theta once more; Adam divides most of that out again.) Their networks have no norms,
and masks over biases too. Here matrices and kernels are masked, including the head's, and everything else is trained by
gradient descent and sent in full, as in FedMRN.

Randomness, all from `edgefl.noise`: entry i of a tensor is kept in step k if unit(derive(seed, "draw", k, tensor), i)
is below its probability; for the last draw, k is the number of all steps. Its weight is positive if bit i % 64 of word
i // 64 of the stream derive(weight_seed, "weights", tensor) is set, i being counted in the whole model's tensor.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.descent import Descent, DescentRule, Positive, adopt_statistics, descend, start, weight_tensors
from edgefl.local_rules.mask_generation import Floats, logit, sigmoid
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.local_rules.sent_tensors import bits_and_values
from edgefl.masks import Array, BoolArray, Mask, gather
from edgefl.noise import bits, derive, unit
from edgefl.values import Count
from edgefl.wire import Bits, Dense, Expected, Payload
from edgefl.wire.codecs.checks import check_finite

__all__ = ["SampledMasks", "draw_mask", "random_weights"]

_P = "p/"
_MARGIN = 1e-6
"""How far from 0 and 1 probabilities are kept before scores are computed from them."""
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8  # Adam


def random_weights(mask: Mask, tensor: str, seed: int, gain: float) -> Array:
    """Return the random weights of a tensor that a mask holds: gain / sqrt(fan-in), of either sign."""
    spec = mask.graph.tensor[tensor]
    words = bits(derive(seed, "weights", tensor), 0, -(-spec.size // 64)).astype("<u8", copy=False)
    flags = np.unpackbits(words.view(np.uint8), count=spec.size, bitorder="little").view(np.int8)
    signs = gather(mask, {tensor: (2 * flags - 1).reshape(spec.shape)}, [tensor])[tensor]
    size = np.dtype(spec.dtype.value).type(gain / math.sqrt(math.prod(spec.shape[1:])))
    return np.asarray(signs * size)


def draw_mask(p: Array, stream: int) -> BoolArray:
    """Return which entries are kept, each with its probability."""
    return (unit(stream, 0, p.size).reshape(p.shape) < p).view(np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMasks(DescentRule):
    """FedPM's local training."""

    name: ClassVar[str] = "sampled_masks"
    descent: Descent = field(default_factory=Descent)
    """How everything but matrices and kernels is trained."""
    score_rate: Positive = 0.1
    """Adam's learning rate for scores."""
    weight_seed: Count = 0
    """The seed of the random weights, the same for all devices and rounds."""
    weight_gain: Positive = math.e
    """The size of a weight times the square root of its fan-in."""

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send bits of matrices and kernels, and new values of the rest."""
        return bits_and_values(mask, weight_tensors(mask))

    def begin(self, inputs: TrainingInput) -> State:
        """Generate the weights, and compute the scores."""
        state = start(inputs)
        for name, p in _probabilities(inputs).items():
            state.memory[f"weight:{name}"] = random_weights(inputs.mask, name, self.weight_seed, self.weight_gain)
            state.memory[f"score:{name}"] = logit(p, _MARGIN)
            for kind in ("first", "second"):
                state.memory[f"{kind}:{name}"] = np.zeros(p.shape, np.float32)
        return state

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Draw masks, run the masked weights, and move scores and everything else down their gradients."""
        masked = weight_tensors(state.mask)
        p = self._draw(inputs, state)
        result = run(state.weights, batch)
        others = {name: state.weights[name] for name in trained_parameters(state.mask) if name not in masked}
        rate = self.descent.rate(inputs, state.steps)
        descend(self.descent, rate, others, result.gradients, state, anchors=inputs.weights)
        adopt_statistics(state, result)
        state.steps += 1
        for name in masked:
            if name in result.gradients:
                slope = p[name] * (1 - p[name])
                slope *= state.memory[f"weight:{name}"]  # zero where the submodel's mask holds nothing
                slope *= result.gradients[name]
                self._move(state, name, slope)
        return result

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Draw the masks that are sent."""
        masked = weight_tensors(state.mask)
        for name in masked:
            check_finite(name, state.memory[f"score:{name}"])  # bits would hide that training diverged
        p = self._draw(inputs, state)
        tensors: dict[str, Payload] = {}
        for name in state.mask.trained_tensors:
            array = state.weights[name]
            tensors[name] = Bits.of(array != 0) if name in masked else Dense(array)
        size = sum(state.weights[name].size for name in masked)
        kept = sum(int(np.count_nonzero(state.weights[name])) for name in masked)
        total = sum(float(p[name].sum(dtype=np.float64)) for name in masked)
        metrics = {"ones": kept / size, "mean_probability": total / size} if size else {}
        return Update(tensors, dict(state.weights), state.mask, metrics)

    def _draw(self, inputs: TrainingInput, state: State) -> dict[str, Floats]:
        """Write freshly masked weights into the state, and return the probabilities."""
        found: dict[str, Floats] = {}
        for name in weight_tensors(state.mask):
            p = sigmoid(state.memory[f"score:{name}"])
            flags = draw_mask(p, derive(inputs.seed, "draw", state.steps, name))
            np.multiply(state.memory[f"weight:{name}"], flags, out=state.weights[name])
            found[name] = p
        return found

    def _move(self, state: State, name: str, gradient: Array) -> None:
        """Take a step of Adam (Kingma and Ba 2015, Algorithm 1); the gradient's array is reused."""
        first, second, score = (state.memory[f"{kind}:{name}"] for kind in ("first", "second", "score"))
        first *= np.float32(_FIRST)
        first += np.float32(1 - _FIRST) * gradient
        second *= np.float32(_SECOND)
        second += np.float32(1 - _SECOND) * np.square(gradient, out=gradient)
        root = np.sqrt(second, out=gradient)
        root /= np.float32(math.sqrt(1 - _SECOND**state.steps))
        root += np.float32(_TINY)
        score -= np.float32(self.score_rate / (1 - _FIRST**state.steps)) * first / root


def _probabilities(inputs: TrainingInput) -> Mapping[str, Array]:
    """Return the probabilities by tensor, if every masked tensor has some."""
    found = {key.removeprefix(_P): array for key, array in inputs.extras.items() if key.startswith(_P)}
    masked = weight_tensors(inputs.mask)
    if not set(masked) <= found.keys():
        raise MaskError(
            f"the device was sent probabilities of {', '.join(sorted(found)) or 'nothing'}",
            fix=f"Send '{_P}<tensor>' for each of: {', '.join(masked)}.",
        )
    for name in masked:
        p, shape = found[name], inputs.mask.shapes[name]
        if p.shape != shape or not bool(np.all((p >= 0) & (p <= 1))):
            raise MaskError(
                f"the probabilities of {name!r} have shape {p.shape}, or are not all from 0 to 1",
                fix=f"Send numbers from 0 to 1 of shape {shape}.",
            )
    return {name: found[name] for name in masked}

"""Rule `probabilistic_masks`: the mask phase of FedMAP on the device.

"One Training Fits All: Addressing Model-Heterogeneity Federated Learning via Architecture Probing" (FedMAP), Algorithm
1, lines 5 to 13. The coordinator sends a probability for every entry of the mask, in `TrainingInput.extras` as
"p/<name>". With the weights fixed, the device moves s = logit(p) for K steps (`TrainingInput.steps`): it draws a mask
that fits its capacity gamma, shrinks it by one more draw, runs the masked model, and follows the gradient of s
(Proposition 4.1). At the end it draws once more, without the shrink step, and sends m, how often every entry was drawn
(Eq. 6), as "m/<name>". The coordinator needs m and its largest entry over all arrays (Eq. 9). A device of capacity 1
sends all ones.

With granularity "weight", the paper's, names are tensors, with their shapes in the submodel; the device holds the whole
submodel and whole gradients. With "channel", ours (`maskable_channels.py`), names are channel groups, with a number for
each kept channel. What has no probability is always used. Weights do not change, so the update has the mask and weights
of the inputs; `extract` makes a submodel from probabilities, for the strategy.

eta_m and K are not given in the paper; the learning rate is a setting, and reported.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.descent import Positive
from edgefl.local_rules.erk import maskable_tensors
from edgefl.local_rules.mask_generation import Drawn, Gradient, Maskable, generate, logit, sigmoid, slopes
from edgefl.local_rules.maskable_channels import MaskableChannels
from edgefl.local_rules.maskable_weights import MaskableWeights
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.local_rules.submodel_channels import prunable_groups, squared_norms
from edgefl.masks import Array, Mask, Weights
from edgefl.noise import derive
from edgefl.values import Dimension, Quantity, check_fields
from edgefl.wire import Counts, Expected
from edgefl.wire.codecs.checks import check_finite

__all__ = ["Extraction", "Granularity", "ProbabilisticMasks", "entry_shapes", "extract", "magnitudes", "maskable"]

_P, _M, _S = "p/", "m/", "s:"
_FALLBACKS = "fallbacks"

Capacity = Annotated[float, Quantity(Dimension.SHARE, "a fraction above 0", "0.25 or '25 %'", low=1e-12, high=1)]
Draws = Annotated[int, Quantity(Dimension.NUMBER, "a number of draws", "64", whole=True, low=1, high=60_000)]
Margin = Annotated[float, Quantity(Dimension.NUMBER, "a small probability", "0.0001", low=1e-9, high=0.1)]


class Granularity(StrEnum):
    """What an entry of the mask is."""

    WEIGHT = "weight"
    CHANNEL = "channel"


class Extraction(StrEnum):
    """How a submodel is extracted from probabilities (section 5.2)."""

    TOP = "top"
    """The most probable entries: the better way in the paper, and it uses the whole capacity."""
    SAMPLE = "sample"
    """Algorithm 2, as in the weight phase (Algorithm 3, line 6); it often ends well below the capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilisticMasks:
    """The settings of FedMAP's mask phase on a device."""

    name: ClassVar[str] = "probabilistic_masks"
    learning_rate: Positive = 10.0
    """eta_m. A gradient of s is a gradient times a weight times a slope below 1, so small rates move nothing."""
    capacity: Capacity = 1.0
    """gamma: the share of the masked weights, or with channels of the parameters, that the device may use."""
    granularity: Granularity = Granularity.WEIGHT
    gradient: Gradient = Gradient.PAPER
    max_draws: Draws = 64
    """After this many draws that do not fit, the top entries are taken."""
    epsilon: Margin = 1e-4
    """Probabilities are kept this far from 0 and 1 before s is computed."""

    def __post_init__(self) -> None:
        check_fields(self)

    def trains(self, mask: Mask) -> Mask:
        """Need the gradients of everything that the mask trains, though only probabilities move."""
        return mask

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send how often every entry was drawn."""
        return {
            _M + name: Expected(shape, Counts.codec) for name, shape in entry_shapes(mask, self.granularity).items()
        }

    def begin(self, inputs: TrainingInput) -> State:
        """Compute s from the probabilities (Algorithm 1, line 6)."""
        memory: dict[str, Array] = {_FALLBACKS: np.zeros((), np.int64)}
        for name, p in _probabilities(inputs, self.granularity).items():
            memory[_S + name] = logit(p, self.epsilon)
        return State(inputs.mask, dict(inputs.weights), memory)

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Draw a mask, run it, and move s (lines 8 and 9)."""
        entries, p = self._entries(inputs.mask, state), _current(state)
        drawn = self._generate(inputs, state, entries, p, shrink=True)
        result, gradients = entries.probe(inputs.weights, drawn, batch, run)
        factors = slopes(drawn, p, self.gradient)
        for name, gradient in gradients.items():
            factors[name] *= gradient
            factors[name] *= np.float32(self.learning_rate)
            state.memory[_S + name] -= factors[name]
        state.memory[_FALLBACKS] += drawn.fell_back
        state.steps += 1
        return result

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Draw once more and send the counts (lines 11 and 12)."""
        for name in _scores(state):
            check_finite(name, state.memory[_S + name])  # counts would hide that training diverged
        entries, p = self._entries(inputs.mask, state), _current(state)
        drawn = self._generate(inputs, state, entries, p, shrink=False)
        limit = max(1, *(int(count.max(initial=0)) for count in drawn.counts.values()))
        kept = entries.mask(drawn.flags).cost.parameters
        metrics = {
            "learning_rate": self.learning_rate,
            "capacity": self.capacity,
            "kept_fraction": kept / inputs.mask.cost.parameters,
            "draws": float(limit),
            "fallbacks": float(state.memory[_FALLBACKS] + drawn.fell_back),
            "mean_probability": float(np.mean([array.mean(dtype=np.float64) for array in p.values()])),
        }
        tensors = {_M + name: Counts.of(count, limit) for name, count in drawn.counts.items()}
        return Update(tensors, state.weights, inputs.mask, metrics)

    def extra_bytes(self, mask: Mask) -> int:
        """Return the memory that a round needs beyond the submodel's weights and the engine's own memory.

        With weights: p as sent, s and p as they are, masked weights and slopes, 20 bytes per entry; masks and counts, 5
        bytes; gradients of all trained tensors; and 24 bytes per entry of the largest tensor; or while falling back to
        the top entries, 36 bytes per entry. With channels: two copies of the cut submodel, its gradients, and their
        products for the largest tensor.
        """
        sizes = {name: math.prod(shape) for name, shape in mask.shapes.items()}
        trained = sum(sizes[name] for name in trained_parameters(mask))
        if self.granularity is Granularity.CHANNEL:
            largest = max((sizes[name] for name in trained_parameters(mask)), default=0)
            return math.ceil(self.capacity * 4 * (2 * sum(sizes.values()) + trained) + 8 * largest)
        entries = [sizes[name] for name in maskable_tensors(mask)]
        return max(25 * sum(entries) + 4 * trained + 24 * max(entries, default=0), 36 * sum(entries))

    def _entries(self, mask: Mask, state: State) -> Maskable:
        return maskable(mask, self.granularity, self.capacity, _scores(state))

    def _generate(self, inputs: TrainingInput, state: State, entries: Maskable, p: Weights, *, shrink: bool) -> Drawn:
        seed = derive(inputs.seed, "mask", state.steps)
        return generate(entries, p, seed, max_draws=self.max_draws, shrink=shrink)


def entry_shapes(mask: Mask, granularity: Granularity) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a probabilistic mask's entries, by tensor or by channel group."""
    if granularity is Granularity.CHANNEL:
        return {group.name: (mask.widths[group.name],) for group in prunable_groups(mask)}
    return {name: mask.shapes[name] for name in maskable_tensors(mask)}


def magnitudes(mask: Mask, weights: Weights, granularity: Granularity) -> dict[str, Array]:
    """Return how large every entry of a probabilistic mask is: a weight, or the mean square of a channel's weights."""
    if granularity is Granularity.CHANNEL:
        return {name: total / max(1, entries) for name, (total, entries) in squared_norms(mask, weights).items()}
    return {name: np.abs(weights[name]) for name in maskable_tensors(mask)}


def maskable(mask: Mask, granularity: Granularity, capacity: float, names: tuple[str, ...]) -> Maskable:
    """Return what a probabilistic mask over the named tensors or groups of a submodel is over."""
    kind = MaskableChannels if granularity is Granularity.CHANNEL else MaskableWeights
    return kind(mask, names, capacity)


def extract(
    mask: Mask,
    p: Weights,
    capacity: float,
    seed: int,
    *,
    granularity: Granularity = Granularity.WEIGHT,
    method: Extraction = Extraction.TOP,
    max_draws: int = 64,
) -> Mask:
    """Return the submodel of a capacity that the probabilities, by name of tensor or group, extract from `mask`."""
    entries = maskable(mask, granularity, capacity, tuple(sorted(p)))
    if method is Extraction.SAMPLE:
        return entries.mask(generate(entries, p, seed, max_draws=max_draws).flags)
    everything = entries.everything()
    return entries.mask(everything if entries.fits(everything) else entries.top(p, everything, seed))


def _scores(state: State) -> tuple[str, ...]:
    return tuple(sorted(key.removeprefix(_S) for key in state.memory if key.startswith(_S)))


def _current(state: State) -> dict[str, Array]:
    return {name: sigmoid(state.memory[_S + name]) for name in _scores(state)}


def _probabilities(inputs: TrainingInput, granularity: Granularity) -> Mapping[str, Array]:
    """Return the probabilities by name, if they belong to tensors or groups of the submodel."""
    found = {key.removeprefix(_P): array for key, array in inputs.extras.items() if key.startswith(_P)}
    shapes = entry_shapes(inputs.mask, granularity)
    if not found or not found.keys() <= shapes.keys():
        raise MaskError(
            f"the device was sent probabilities of {', '.join(sorted(found)) or 'nothing'}",
            fix=f"With granularity {granularity.value!r} send '{_P}<name>' for some of: {', '.join(shapes)}.",
        )
    for name, p in found.items():
        if p.shape != shapes[name] or not bool(np.all((p >= 0) & (p <= 1))):
            raise MaskError(
                f"the probabilities of {name!r} have shape {p.shape}, or are not all from 0 to 1",
                fix=f"Send numbers from 0 to 1 of shape {shapes[name]}.",
            )
    return found

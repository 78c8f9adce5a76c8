"""Strategy `fedpm`: weights are random and never change; devices learn which to keep, and send one bit per weight.

Isik et al., "Sparse Random Networks for Communication-Efficient Federated Learning" (FedPM), ICLR 2023. The coordinator
holds a probability theta for every weight. Devices learn on from it (rule `sampled_masks`) and send a draw m. The
belief about a weight is a Beta distribution, alpha and beta, both lambda_0 whenever counting starts again; a device
adds its draw, and theta is the mode of the distribution:

    alpha += m      beta += 1 - m       theta = (alpha - 1) / (alpha + beta - 2)            Bayesian aggregation

Defaults are those of the authors' code. There lambda_0 is 1 and counting starts again every round, so theta is the mean
of the draws; if few devices take part in a round, continue counting for several (`reset_every`). A draw counts as
`draw_margin` or 1 - `draw_margin`, so that nothing becomes certain. First thetas are sigmoids of normal numbers. Every
device counts equally; here one with an old model counts less, and if submodels differ, a weight is counted over the
devices that held it. A weight that no device held keeps its theta.

A model that predicts needs a mask. The authors test with draws, so the weights of a round's model, which the
coordinator evaluates and hands out, are the random ones times one draw; `served_mask` = 'likely' keeps those above one
half instead. A device's own model has the draw that it sent.

Norms, biases and statistics are not random weights: they are trained, sent in full and averaged
(`AggregationSettings`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, ClassVar

import numpy as np

from edgefl.local_rules import Descent, SampledMasks
from edgefl.local_rules.descent import Positive, weight_tensors
from edgefl.local_rules.mask_generation import sigmoid
from edgefl.local_rules.sampled_masks import draw_mask, random_weights
from edgefl.masks import Array, Mask, Weights, add_at, check_weights, full_mask, gather
from edgefl.model_graph import ModelGraph
from edgefl.noise import derive, unit
from edgefl.strategies.aggregation import aggregate
from edgefl.strategies.averaging_strategy import FineTunedStrategy, MappedUpdates
from edgefl.strategies.freezing import FrozenLayers
from edgefl.strategies.one_bit_uplinks import SampledMaskUplink
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model, RoundContext
from edgefl.strategies.uplink import Uplink
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.strategies.widths import Widths
from edgefl.values import Count, Dimension, FieldError, PositiveCount, Quantity
from edgefl.wire import Bits

__all__ = ["FedPM", "Posterior", "ServedMask"]

_P, _ALPHA, _BETA = "p/", "alpha/", "beta/"

Prior = Annotated[float, Quantity(Dimension.NUMBER, "a number of 1 or more", "1", low=1, high=1e6)]
Margin = Annotated[float, Quantity(Dimension.NUMBER, "a small probability", "0.01", low=1e-6, high=0.49)]


class Posterior(StrEnum):
    """Which value of a Beta distribution theta is."""

    MODE = "mode"
    MEAN = "mean"
    """alpha / (alpha + beta): nearer to one half."""


class ServedMask(StrEnum):
    """Which weights the model of a round keeps."""

    DRAWN = "drawn"
    """Each with its probability."""
    LIKELY = "likely"
    """Those with a probability above one half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FedPM(FineTunedStrategy):
    """Federated probabilistic mask training."""

    name: ClassVar[str] = "fedpm"
    descent: Descent = field(default_factory=Descent)
    """How norms and biases are trained."""
    score_rate: Positive = 0.1
    """Adam's learning rate for the scores of weights."""
    weight_seed: Count = 0
    """The seed of the random weights."""
    weight_gain: Positive = math.e
    """The size of a weight times the square root of its fan-in; Kaiming's is the square root of 2."""
    prior: Prior = 1.0
    """lambda_0: the initial alpha and beta."""
    posterior: Posterior = Posterior.MODE
    draw_margin: Margin = 0.01
    """The distance from 0 and 1 at which a device's draw is counted."""
    reset_every: PositiveCount = 1
    """The number of rounds after which counting starts again."""
    served_mask: ServedMask = ServedMask.DRAWN
    widths: Widths = field(default_factory=Widths)
    frozen: FrozenLayers = FrozenLayers.NONE
    sent: UplinkKind | None = field(default=None, metadata={"absent": "one bit a weight"})
    """These two exist only to explain why they cannot be chosen."""

    def check_settings(self) -> None:
        """Refuse frozen layers and any other uplink."""
        if self.frozen is not FrozenLayers.NONE:
            raise FieldError(
                f"is {self.frozen.value!r}, but in FedPM no weight is ever trained: freezing would keep a random "
                "mask of random weights",
                fix="Leave it out, or choose the strategy fedavg",
                path=("frozen",),
            )
        if self.sent is not None:
            raise FieldError(
                f"is {self.sent.value!r}, but FedPM's devices train no weights: they can only send their mask",
                fix="Leave it out, or choose the strategy fedavg",
                path=("sent",),
            )

    @property
    def uplink(self) -> Uplink:
        """One draw of every mask."""
        return SampledMaskUplink(
            SampledMasks(
                descent=self.descent,
                score_rate=self.score_rate,
                weight_seed=self.weight_seed,
                weight_gain=self.weight_gain,
            )
        )

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device the submodel that it can train in time; leave out devices that can train none."""
        return self.widths.masks(estimates, round_context)

    def extras(self, model: Model, mask: Mask, round_context: RoundContext) -> Weights:
        """Send the probabilities of the submodel."""
        names = weight_tensors(mask)
        thetas = gather(mask, {name: model.state[_P + name] for name in names}, names)
        return {_P + name: theta for name, theta in thetas.items()}

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Replace all matrices and kernels by random weights; the rest starts as it is."""
        check_weights(graph, weights)
        thetas = {name: _first_theta(graph, name, self.weight_seed) for name in weight_tensors(full_mask(graph))}
        served = self._served(graph, thetas, derive(self.weight_seed, "served"))
        return Model(graph, {**weights, **served}, {_P + name: theta for name, theta in thetas.items()})

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Count the draws, and average everything else."""
        belief = self._belief(model, round_context)
        for update in updates:
            self._count(belief, update)
            del update  # or it would be in memory together with the next one
        thetas = {name: self._theta(model, belief, name) for name in weight_tensors(full_mask(model.graph))}
        weights = aggregate(self.averaging, model, MappedUpdates(_without_bits, updates))
        served = self._served(model.graph, thetas, derive(round_context.seed, "served"))
        counted = belief if self.reset_every > 1 else {}
        return Model(model.graph, {**weights, **served}, {_P + name: p for name, p in thetas.items()} | counted)

    def _belief(self, model: Model, round_context: RoundContext) -> dict[str, Array]:
        """Return alpha and beta, by name, before the draws of a round."""
        found: dict[str, Array] = {}
        for name in weight_tensors(full_mask(model.graph)):
            for side in (_ALPHA, _BETA):
                known = model.state.get(side + name) if round_context.round % self.reset_every else None
                shape = model.graph.tensor[name].shape
                found[side + name] = np.full(shape, self.prior, np.float32) if known is None else known.copy()
        return found

    def _count(self, belief: Mapping[str, Array], update: ClientUpdate) -> None:
        """Add the draws of one device, in place."""
        weight = update.trust if update.result.samples else 0.0
        no, yes = np.float32(weight * self.draw_margin), np.float32(weight * (1 - self.draw_margin))
        for name, payload in update.tensors.items():
            if isinstance(payload, Bits):
                flags = payload.to_bool()
                add_at(update.mask, name, belief[_ALPHA + name], np.where(flags, yes, no))
                add_at(update.mask, name, belief[_BETA + name], np.where(flags, no, yes))

    def _theta(self, model: Model, belief: Weights, name: str) -> Array:
        alpha, beta = belief[_ALPHA + name], belief[_BETA + name]
        one = np.float32(self.posterior is Posterior.MODE)
        total = alpha + beta - 2 * one
        heard = alpha + beta > 2 * self.prior
        theta = np.array(model.state[_P + name])
        np.divide(alpha - one, total, out=theta, where=heard)
        return theta

    def _served(self, graph: ModelGraph, thetas: Weights, seed: int) -> dict[str, Array]:
        """Return the random weights that the model of a round keeps."""
        whole, found = full_mask(graph), {}
        for name, theta in thetas.items():
            kept = draw_mask(theta, derive(seed, name)) if self.served_mask is ServedMask.DRAWN else theta > 0.5
            found[name] = random_weights(whole, name, self.weight_seed, self.weight_gain) * kept
        return found


def _first_theta(graph: ModelGraph, tensor: str, seed: int) -> Array:
    """Return sigmoids of standard normal numbers (Box and Muller 1958)."""
    shape = graph.tensor[tensor].shape
    one, other = (unit(derive(seed, f"{kind} normal", tensor), 0, math.prod(shape)) for kind in ("radius", "angle"))
    normal = np.sqrt(-2 * np.log1p(-one)) * np.cos(2 * np.float32(math.pi) * other)
    return sigmoid(normal).reshape(shape)


def _without_bits(update: ClientUpdate) -> ClientUpdate:
    """Return the tensors of an update that are averaged."""
    tensors = {name: payload for name, payload in update.tensors.items() if not isinstance(payload, Bits)}
    return replace(update, tensors=tensors)

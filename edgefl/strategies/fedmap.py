"""Strategy `fedmap`: learns a probabilistic mask that yields a submodel of any size and, in turns, its weights.

"One Training Fits All: Addressing Model-Heterogeneity Federated Learning via Architecture Probing" (FedMAP), Algorithms
1 and 3. (Another paper is called FedMap: it prunes by magnitude.) Rounds come in phases, a mask phase first:

mask phase: the weights do not change. Devices get a probability for every entry of the mask, learn on their own data
which entries they want (rule `probabilistic_masks`), and send how often they drew each. `mask_posterior.py` is what the
coordinator makes of it (Eq. 9).

weight phase: the probabilities do not change. Every device gets a mask of its own, drawn from them to fit its capacity,
trains what the mask holds, and each coordinate is averaged over the devices that held it (section 3, `Agg`).

With granularity "weight", the paper's, a mask leaves single weights out. Engines still work on whole arrays, so a
device must be able to train the whole model in time, and its capacity is the `weight_density` of its budget. With
"channel", ours, masks are over channels, and what a device trains is cut out and really smaller.

What the paper leaves open, and what is done here:
- lambda, tau and eta_m are not given. They are the settings `prior`, `mask_rounds` with `weight_rounds`, and
  `mask_rate`; K, the number of a device's steps, is the federation's work. Devices report their rate and capacity.
- Algorithm 1 resets alpha and beta every tau rounds, and Algorithm 3 calls it for tau rounds at a time. So they are
  reset in the first round of every mask phase, after devices have learned from the p before it: p continues, and the
  counts start again.
- A device of capacity 1 never draws. It counts as one draw of all ones.
- Section 3 subtracts the average of (new - old), which would climb the loss; Algorithm 3 has the right sign.
- Eq. 2's global rates need to know all devices' masks; `server_rate` is one number.
- A drawn submodel that a device cannot train in time, because its channels are expensive ones, is replaced by the most
  probable one of its capacity.
- Equally probable entries are ranked alike in all rounds, so the most probable submodels are the same until p changes.

Ours, and better than learned masks in our measurements (docs/papers.md): `first_weight_rounds` of drawn submodels
before any mask is learned, and `first_probabilities` by the magnitude of the weights instead of one half.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from edgefl.errors import MaskError
from edgefl.local_rules import Descent, ProbabilisticMasks, rule_of
from edgefl.local_rules.descent import Positive
from edgefl.local_rules.mask_generation import Gradient
from edgefl.local_rules.probabilistic_masks import (
    Draws,
    Extraction,
    Granularity,
    entry_shapes,
    extract,
    magnitudes,
)
from edgefl.local_rules.sgd import Codec
from edgefl.masks import Array, Mask, Weights, full_mask
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.noise import derive
from edgefl.strategies.aggregation import AggregationSettings, UpdateWeighting
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.capacities import CapacitySubmodels, parse_capacities
from edgefl.strategies.mask_posterior import (
    FirstProbabilities,
    add_counts,
    check_counts,
    initial_belief,
    magnitude_belief,
    probabilities,
    sent_probabilities,
)
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.running_mean import apply_change
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model, Participant, PlannedTask, RoundContext
from edgefl.strategies.update_checks import check_mask_kept
from edgefl.strategies.uplink import Uplink, ValuesUplink, rule_settings
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.values import LARGEST_INTEGER, Count, Dimension, FieldError, PositiveCount, Prediction, Quantity

__all__ = ["FedMAP"]

_MASK_RATES = {Granularity.WEIGHT: 1e5, Granularity.CHANNEL: 1e4}
"""The best rates of `benchmarks/fedmap_masks.py`. The gradient of a weight's score is tiny, that of a channel's a sum
over hundreds of weights. With rates a hundred times smaller, masks change by their draws alone."""
_TIES = derive(0, "ties")
"""Ranks equally probable entries."""
Prior = Annotated[float, Quantity(Dimension.NUMBER, "a number above 1", "2", low=1.001, high=1e6)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedMAP(FineTunedStrategy):
    """Probabilistic masks and weights, in turns."""

    name: ClassVar[str] = "fedmap"
    descent: Descent = field(default_factory=Descent)
    """How weights are trained."""
    granularity: Granularity = Granularity.WEIGHT
    capacities: str = "1, 0.25, 0.0625, 0.015625"
    """The share of the model that a device may have: the largest of these that fits it, or 'any'."""
    mask_rounds: Count = 5
    """tau: the number of rounds of a mask phase. 0 learns no masks: every entry stays as probable as at first."""
    weight_rounds: PositiveCount = 5
    """The number of rounds of a weight phase."""
    first_weight_rounds: Count = 0
    """The number of rounds of weights before the first mask phase; their submodels are drawn, every entry alike."""
    first_probabilities: FirstProbabilities = FirstProbabilities.HALF
    """What p is before masks are learned, and where every mask phase begins to count."""
    prior: Prior = 2.0
    """lambda: the initial alpha and beta; with other probabilities than one half, their mean."""
    mask_rate: Positive | None = field(default=None, metadata={"absent": "by granularity"})
    """eta_m: the learning rate of the scores behind the probabilities."""
    gradient: Gradient = Gradient.PAPER
    max_draws: Draws = 64
    """After this many draws that do not fit, the most probable entries are taken."""
    drawing: Extraction = Extraction.SAMPLE
    """How the submodels of a weight phase are extracted from the probabilities (Algorithm 3, line 6)."""
    extraction: Extraction = Extraction.TOP
    """How a submodel is extracted from the last model (section 5.2)."""
    server_rate: Positive = 1.0
    """eta_s: how far the model moves towards the average."""
    sent: UplinkKind = UplinkKind.VALUES
    averaging: AggregationSettings = field(default_factory=lambda: AggregationSettings(weighing=UpdateWeighting.EQUAL))

    def check_settings(self) -> None:
        """Check the capacities, and refuse any other uplink."""
        parse_capacities(self.capacities)
        if self.sent is not UplinkKind.VALUES:
            raise FieldError(
                f"is {self.sent.value!r}, but FedMAP's devices send counts in a mask phase and new values in a weight "
                "phase: its masks are drawn again every round, and no other uplink supports that",
                fix="Leave it out",
                path=("sent",),
            )

    @property
    def uplink(self) -> Uplink:
        """The uplink of a weight phase; with masks over single weights, only the held ones are sent."""
        weights = self.granularity is Granularity.WEIGHT
        return ValuesUplink.by_descent(self.descent, Codec.SPARSE if weights else Codec.DENSE)

    def learns_masks(self, number: int) -> bool:
        """Return whether a round is in a mask phase."""
        return number >= self.first_weight_rounds and self._since_phase_began(number) < self.mask_rounds

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are, and with the first probabilities."""
        model = FineTunedStrategy.begin(self, graph, weights)
        if not entry_shapes(full_mask(graph), self.granularity):
            raise MaskError(
                f"model {graph.name!r} has no entries for a mask of granularity {self.granularity.value!r}",
                fix="Choose the other granularity, or another strategy.",
            )
        return replace(model, state=self._first_belief(model))

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Let devices learn masks, or give each a submodel to train."""
        if not self.learns_masks(round_context.round):
            return FineTunedStrategy.plan(self, model, participants, round_context)
        estimates = self._estimates(model, participants, round_context)
        by_capacity = self._capacity_submodels(model)
        extras = sent_probabilities(by_capacity.p)
        planned_tasks: dict[str, PlannedTask] = {}
        for device, capacity in self._capacities(by_capacity, estimates).items():
            rule = self._rule(capacity)
            predicted = _mask_phase_prediction(estimates[device], by_capacity, capacity, rule)
            limit = estimates[device].participant.budget.peak_bytes
            if limit is None or predicted.peak_bytes is None or predicted.peak_bytes <= limit:
                top = by_capacity.top(capacity)
                planned_tasks[device] = PlannedTask(
                    by_capacity.whole, rule_settings(rule), round_context.work, extras, predicted, top
                )
        return planned_tasks

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Draw a submodel of its capacity for every device; at the end, extract the one to keep."""
        method = self.drawing if round_context.round < round_context.rounds else self.extraction
        if round_context.round < min(self.first_weight_rounds, round_context.rounds):
            method, model = Extraction.SAMPLE, replace(model, state=self._even_belief(model.graph))
        by_capacity = self._capacity_submodels(model)
        chosen: dict[str, Mask] = {}
        for device, capacity in self._capacities(by_capacity, estimates).items():
            top = by_capacity.top(capacity)
            if method is Extraction.SAMPLE:
                drawn = by_capacity.draw(capacity, derive(round_context.seed, "part", device), max_draws=self.max_draws)
                top = drawn if by_capacity.fits(estimates[device], drawn, capacity) else top
            if top is not None:
                chosen[device] = top
        return chosen

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but counts from a device that learned a mask, or new values from one that trained."""
        rule = _mask_rule(update)
        if rule is None:
            return FineTunedStrategy.check(self, update)
        check_mask_kept(update)
        most = 1 if rule.capacity == 1 else rule.max_draws + 1
        check_counts(update.tensors, rule.sends(update.mask), most)
        return None

    def movement(self, update: ClientUpdate) -> float:
        """Return how far the weights move: counts do not move them."""
        return 0.0 if _mask_rule(update) is not None else FineTunedStrategy.movement(self, update)

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Add counts to the belief about masks, and average new values.

        In a buffered federation a round may get both: late counts of the mask phase, early values of the next.
        """
        learned = sum(update.rule.name == ProbabilisticMasks.name for update in updates)
        counts = _PhaseUpdates(updates, learned, masks=True)
        values = _PhaseUpdates(updates, len(updates) - learned, masks=False)
        if len(counts):
            model = replace(model, state=self._updated_belief(model, counts, round_context))
        if len(values):
            averaged = FineTunedStrategy.combine(self, model, values, round_context).weights
            model = replace(model, weights=self._server_step(model, averaged))
            if round_context.round < self.first_weight_rounds:
                model = replace(model, state=self._first_belief(model))
        return model

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the most probable submodel of at most this share of the parameters, whether it was trained or not."""
        whole, p = full_mask(model.graph), probabilities(model.state)
        if fraction >= 1:
            return whole
        capacity = fraction
        if self.granularity is Granularity.WEIGHT:
            masked = sum(array.size for array in p.values())
            always = model.graph.parameters - masked
            capacity = (fraction * model.graph.parameters - always) / masked
            if capacity * masked < 1:
                raise MaskError(
                    f"norms and biases alone are {always / model.graph.parameters:.2%} of the parameters, but "
                    f"{fraction:.2%} was requested",
                    fix="Request a larger share.",
                )
        return extract(
            whole,
            p,
            capacity,
            _TIES if self.extraction is Extraction.TOP else seed,
            granularity=self.granularity,
            method=self.extraction,
            max_draws=self.max_draws,
        )

    def _rule(self, capacity: float) -> ProbabilisticMasks:
        rate = self.mask_rate or _MASK_RATES[self.granularity]
        return ProbabilisticMasks(
            learning_rate=rate,
            capacity=capacity,
            granularity=self.granularity,
            gradient=self.gradient,
            max_draws=self.max_draws,
        )

    def _since_phase_began(self, number: int) -> int:
        """Return the number of rounds since the last mask phase began."""
        return (number - self.first_weight_rounds) % (self.mask_rounds + self.weight_rounds)

    def _even_belief(self, graph: ModelGraph) -> dict[str, Array]:
        return initial_belief(entry_shapes(full_mask(graph), self.granularity), self.prior)

    def _first_belief(self, model: Model) -> dict[str, Array]:
        """Return the belief before any draw."""
        if self.first_probabilities is FirstProbabilities.HALF:
            return self._even_belief(model.graph)
        found = magnitudes(full_mask(model.graph), model.weights, self.granularity)
        if self.granularity is Granularity.WEIGHT:
            return magnitude_belief(found, self.prior)
        # Norms of channels of different layers do not compare: each group is ranked for itself.
        beliefs = [magnitude_belief({name: array}, self.prior) for name, array in found.items()]
        return {name: array for belief in beliefs for name, array in belief.items()}

    def _capacity_submodels(self, model: Model) -> CapacitySubmodels:
        return CapacitySubmodels(full_mask(model.graph), probabilities(model.state), self.granularity, _TIES)

    def _capacities(self, by_capacity: CapacitySubmodels, estimates: Mapping[str, RoundEstimate]) -> dict[str, float]:
        levels = parse_capacities(self.capacities)
        found = {device: by_capacity.largest(estimate, levels) for device, estimate in estimates.items()}
        return {device: capacity for device, capacity in found.items() if capacity is not None}

    def _updated_belief(self, model: Model, counts: "_PhaseUpdates", round_context: RoundContext) -> dict[str, Array]:
        """Return the belief after a round (Algorithm 1, lines 14 to 17)."""
        if self._since_phase_began(round_context.round) == 0:
            belief = self._first_belief(model)
        else:
            belief = {name: array.copy() for name, array in model.state.items()}
        for update in counts:
            add_counts(belief, update.tensors, update.trust)
        return belief

    def _server_step(self, model: Model, averaged: Weights) -> Weights:
        """Return the weights after a step of `server_rate` (Algorithm 3, line 15); statistics are the average."""
        if self.server_rate == 1:
            return averaged
        weights = dict(averaged)
        for tensor in model.graph.tensors:
            now = model.weights[tensor.name]
            if tensor.role is not TensorRole.STATISTIC and tensor.dtype.startswith("float"):
                change = (averaged[tensor.name] - now) * now.dtype.type(self.server_rate)
                weights[tensor.name] = apply_change(tensor, now, change)
        return weights


@dataclass(frozen=True, slots=True)
class _PhaseUpdates:
    """The updates of one phase, one at a time."""

    client_updates: ClientUpdates
    count: int
    masks: bool

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[ClientUpdate]:
        for update in self.client_updates:
            if (update.rule.name == ProbabilisticMasks.name) == self.masks:
                yield update
            del update  # or it would be in memory together with the next one


def _mask_rule(update: ClientUpdate) -> ProbabilisticMasks | None:
    """Return the rule of a device that learned a mask; None for one that trained weights."""
    if update.rule.name != ProbabilisticMasks.name:
        return None
    rule = rule_of(update.rule)
    return rule if isinstance(rule, ProbabilisticMasks) else None


def _mask_phase_prediction(
    estimate: RoundEstimate, by_capacity: CapacitySubmodels, capacity: float, rule: ProbabilisticMasks
) -> Prediction:
    """Return the prediction for learning a mask: steps with submodels of a capacity, and the whole model in memory."""
    whole, top = by_capacity.whole, by_capacity.top(capacity) or by_capacity.whole
    predicted = estimate.prediction(top)
    if predicted.peak_bytes is None:
        return predicted
    beside = whole.cost.parameter_bytes - estimate.cost(top).parameter_bytes + rule.extra_bytes(whole)
    return replace(predicted, peak_bytes=min(predicted.peak_bytes + beside, LARGEST_INTEGER))

"""Strategy `fedsparsify`: the model becomes sparser from round to round, by the magnitude of its weights.

Stripelis et al., "Federated Progressive Sparsification (Purge, Merge, Tune)+", 2022 (arXiv 2204.12430). Devices train
the weights that are not pruned yet (tune), the smallest are pruned (purge), and the models are averaged (merge). After
round t, counted from 1, the sparsity is

    s_t = S_T + (S_0 - S_T) (1 - (F floor(t / F) - t_0) / (T - t_0))^3

Two forms, by `purge_at`:
- local (FedSparsify-Local): each device prunes what it has trained (`magnitude_pruning`) and sends the rest. The
  coordinator averages all models, with zeros for what was pruned, and keeps the weights that the majority kept.
- global (FedSparsify-Global): devices send all that they trained, and the coordinator prunes the average.

FedMRN compares with it (its section 5.1.3): devices prune, and 97 % sparsity is one bit per weight, positions left out.
That is the default; positions are sent here, and counted. The learning rate is that of FedAvg in the same comparison.

What is open, and what is done here:
- The authors start at t_0 = 1 and prune in every round, so that the first round sends a dense model. FedMRN does not
  say whether sparsity grew in its comparison. `initial_sparsity` = `final_sparsity` is one that does not.
- The majority is at least half of the devices that had the weight, each with one vote. (The authors' code rounds half
  of an odd number down, so that of three devices one is enough.)
- As in the authors' code, a pruned weight is one that is zero, and stays so. Only matrices and kernels are pruned.
- Missing weights save bytes, but no time. A device that cannot train the whole model gets its leading channels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError, WireFormatError
from edgefl.local_rules import Descent, MagnitudePruning, rule_of
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.magnitude_pruning import largest_weights, weights_left
from edgefl.local_rules.sgd import Codec
from edgefl.masks import Array, BoolArray, Mask, Weights, full_mask
from edgefl.model_graph import ModelGraph, cost_of
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model, Participant, PlannedTask, RoundContext
from edgefl.strategies.update_checks import check_mask_kept, check_values, values_of
from edgefl.strategies.uplink import ValuesUplink, rule_settings
from edgefl.values import FieldError, Fraction, PositiveCount, RuleSettings
from edgefl.wire import Dense, Payload, Sparse

__all__ = ["FedSparsify", "PurgeAt"]


class PurgeAt(StrEnum):
    """Where weights are pruned."""

    LOCAL = "local"
    """On each device; the majority decides."""
    GLOBAL = "global"
    """On the coordinator, after averaging."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FedSparsify(FineTunedStrategy):
    """Federated averaging with progressive pruning."""

    name: ClassVar[str] = "fedsparsify"
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.03))
    purge_at: PurgeAt = PurgeAt.LOCAL
    final_sparsity: Fraction = 0.97
    """S_T: the share of the weights that is pruned in the end."""
    initial_sparsity: Fraction = 0.0
    """S_0: the share that is pruned first."""
    first_purge: PositiveCount = 1
    """t_0: the round, counted from 1, in which pruning starts, with `initial_sparsity`."""
    purge_every: PositiveCount = 1
    """F: the number of rounds after which sparsity grows."""

    def check_settings(self) -> None:
        """Refuse sparsity that shrinks, and a model without weights."""
        if not self.initial_sparsity <= self.final_sparsity < 1:
            raise FieldError(
                f"is {self.final_sparsity}, but must be below 1, and initial_sparsity is {self.initial_sparsity}",
                fix="Write for example final_sparsity = 0.97",
                path=("final_sparsity",),
            )

    @property
    def uplink(self) -> "LargestWeightsUplink":
        """New values: of the weights that are left, and of everything else."""
        return LargestWeightsUplink(ValuesUplink.by_descent(self.descent, Codec.SPARSE))

    def sparsity(self, number: int, rounds: int) -> float:
        """Return the share of weights that are pruned after a round, counted from 0."""
        done = number + 1
        if done < self.first_purge:
            return 0.0
        steps, span = done // self.purge_every * self.purge_every - self.first_purge, rounds - self.first_purge
        progress = min(max(steps / span, 0.0), 1.0) if span > 0 else 1.0
        left: float = (1 - progress) ** 3
        return self.final_sparsity + (self.initial_sparsity - self.final_sparsity) * left

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Plan training of the remaining weights, and how many devices leave over."""
        planned_tasks = FineTunedStrategy.plan(self, model, participants, round_context)
        pruned = self.sparsity(round_context.round, round_context.rounds)
        if not pruned or self.purge_at is PurgeAt.GLOBAL:
            return planned_tasks
        rule = rule_settings(MagnitudePruning(descent=self.descent, kept=1 - pruned))
        return {device: replace(planned, rule=rule) for device, planned in planned_tasks.items()}

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device the remaining weights of the widest submodel that it can train."""
        number, rounds = round_context.round, round_context.rounds
        pruned = number > 0 and self.sparsity(min(number, rounds) - 1, rounds) > 0
        remaining = _remaining(model.graph, model.weights) if pruned else full_mask(model.graph)
        density = remaining.cost.parameters / max(model.graph.parameters, 1)
        found = {device: estimate.widest(density=density) for device, estimate in estimates.items()}
        cut = {device: _cut(remaining, widest) for device, widest in found.items() if widest is not None}
        return {device: mask for device, mask in cut.items() if estimates[device].can_train(mask, _density(mask))}

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Average, and prune: what the majority pruned, or the smallest weights of the average."""
        merged = FineTunedStrategy.combine(self, model, updates, round_context)
        if self.purge_at is PurgeAt.LOCAL:
            return replace(merged, weights=_by_majority(merged, updates))
        pruned = self.sparsity(round_context.round, round_context.rounds)
        if not pruned or not len(updates):
            return merged
        whole = full_mask(model.graph)
        flags = largest_weights(whole, merged.weights, weights_left(whole, 1 - pruned))
        left = {name: _where(flag, merged.weights[name]) for name, flag in flags.items()}
        return replace(merged, weights={**merged.weights, **left})

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the largest weights, of all layers together; norms and biases are held whole."""
        whole = full_mask(model.graph)
        sizes = sum(model.graph.tensor[name].size for name in weight_tensors(whole))
        most = fraction * model.graph.parameters
        count = int(most) - (model.graph.parameters - sizes)
        if count < 1:
            raise MaskError(
                f"norms and biases alone have {model.graph.parameters - sizes:,} of at most {most:,.0f} parameters",
                fix="Request a larger fraction.",
            )
        flags = largest_weights(whole, model.weights, count)
        return Mask(
            model.graph, whole.trained, whole.kept, {name: flag for name, flag in flags.items() if not flag.all()}
        )


@dataclass(frozen=True, slots=True)
class LargestWeightsUplink:
    """Devices send new values, and those that prune only the weights that are left."""

    dense: ValuesUplink
    """The uplink of rounds in which devices do not prune."""

    @property
    def rule(self) -> RuleSettings:
        """The rule of rounds in which devices do not prune."""
        return self.dense.rule

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but the planned number of remaining weights, all of them from the mask."""
        rule = rule_of(update.rule)
        if not isinstance(rule, MagnitudePruning):
            self.dense.check(update)
            return
        mask, pruned = update.mask, weight_tensors(update.mask)
        check_mask_kept(update)
        check_values(rule, mask, update.tensors, compressed=pruned)
        sent = {name: payload for name, payload in update.tensors.items() if isinstance(payload, Sparse)}
        count, expected = sum(payload.values.size for payload in sent.values()), weights_left(mask, rule.kept)
        if count != expected:
            raise WireFormatError(
                f"the update has {count:,} weights, but {expected:,} are left by the plan",
                fix="Send the share of weights that the plan names.",
            )
        for name, payload in sent.items():
            if name in mask.held and not mask.held[name].reshape(-1)[payload.indices()].all():
                raise WireFormatError(
                    f"tensor {name!r} has weights that the mask of the plan does not hold",
                    fix="Send weights that the mask holds: what was pruned stays pruned.",
                )

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Fill in zeros for what was pruned."""
        return replace(update, tensors={name: Dense(values_of(p)) for name, p in update.tensors.items()})


def _by_majority(merged: Model, updates: ClientUpdates) -> Weights:
    """Return the averages of the weights that at least half of their devices kept, and zeros for the others.

    Who does not count in the average has no vote. A device whose plan did not let it prune kept all that it had.
    """
    graph = merged.graph
    had, votes = (
        {name: np.zeros(graph.tensor[name].shape, np.int32) for name in weight_tensors(full_mask(graph))}
        for _ in range(2)
    )
    for update in updates:
        if not update.result.samples or not update.trust:
            continue
        for name in had.keys() & update.tensors.keys():
            held = update.mask.held.get(name, np.ones(update.mask.shapes[name], bool))
            had[name][update.mask.index(name)] += held
            votes[name][update.mask.index(name)] += _kept(update.tensors[name], held)
    left = {name: _where(2 * votes[name] >= count, merged.weights[name]) for name, count in had.items()}
    return {**merged.weights, **left}


def _kept(payload: Payload, held: BoolArray) -> BoolArray:
    """Return which of the weights that a device had it kept."""
    if not isinstance(payload, Sparse):
        return held
    kept = np.zeros(held.shape, bool)
    kept.reshape(-1)[payload.indices()] = True
    return kept


def _where(flags: Array, weights: Array) -> Array:
    left: Array = np.where(flags, weights, weights.dtype.type(0))
    left.flags.writeable = False
    return left


def _remaining(graph: ModelGraph, weights: Weights) -> Mask:
    """Return the mask of the weights that are not zero."""
    whole = full_mask(graph)
    return Mask(graph, whole.trained, whole.kept, {name: weights[name] != 0 for name in weight_tensors(whole)})


def _cut(remaining: Mask, widest: Mask) -> Mask:
    """Return what remains of a submodel."""
    held = {name: where[widest.index(name)] for name, where in remaining.held.items()}
    return Mask(widest.graph, widest.trained, widest.kept, held)


def _density(mask: Mask) -> float:
    return mask.cost.parameters / max(cost_of(mask.graph, mask.widths).parameters, 1)

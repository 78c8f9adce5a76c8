"""An exact head: a phase that every strategy can have. The last layer is not averaged, but fitted to all devices' data.

What is wrong with a model whose parts were trained by unequal devices is mostly its head, which fits nobody's classes.
So, at the end or after every few rounds, all devices pass their samples once through the model as it is and send sums
(`edgefl.local_rules.feature_sums`); the coordinator solves them for the head that a central fit on all samples would
find (`head_fit.py`). It needs forward passes only, so a device too weak to train anything takes part.

A round of this phase takes the place of a round of training: of R rounds, the last ones are the phase, and with
`head_every` = k there is one after every k rounds of training too. The strategy sees its own rounds alone.

    ridge       one round: the sums
    logistic    the sums, and then `head_rounds` rounds of exact gradients of the cross-entropy

Devices evaluate the part of the model that they hold together (`held_part.py`): features of other channels would be
noise. Every available device is asked, however few train in a round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from edgefl.errors import SchemaError
from edgefl.local_rules import SHARES, ClassPrior, FeatureSums, HeadGradients, head_of, only_forward, rule_of
from edgefl.local_rules.feature_sums import MOST_FEATURES, head_size
from edgefl.local_rules.head_gradients import GRADIENT_SUM
from edgefl.masks import Array, IndexArray, Mask, Weights, axis_positions, freeze, scatter
from edgefl.model_graph import ModelGraph
from edgefl.strategies.exact_head_settings import ExactHeadSettings, PersonalHead, Place
from edgefl.strategies.forward_work import for_all
from edgefl.strategies.head_fit import (
    Doubles,
    Moments,
    best_penalty,
    extrapolated,
    folded,
    logistic_step,
    ridge,
    total_of,
)
from edgefl.strategies.head_sums import (
    are_classes,
    check_sums,
    counted_samples,
    device_moments,
    largest_gradient,
    samples_summed,
    sum_array,
)
from edgefl.strategies.held_part import judged_part
from edgefl.strategies.strategy import (
    ClientUpdate,
    ClientUpdates,
    Model,
    Participant,
    PlannedTask,
    RoundContext,
    Strategy,
)
from edgefl.strategies.update_checks import check_mask_kept
from edgefl.strategies.uplink import rule_settings
from edgefl.values import Budget, LocalWork
from edgefl.wire import check_tensors

__all__ = ["ExactHead"]

_STORED_AS = "exact_head/"
"""Prefix of the arrays that the phase keeps beside the weights."""
_HEAD, _BEFORE, _GIVEN = "head", "before", "given/"


@dataclass(frozen=True, slots=True)
class ExactHead:
    """A strategy with the phase. What is not said here is the strategy's own."""

    name: ClassVar[str] = "exact_head"
    strategy: Strategy
    settings: ExactHeadSettings

    def __getattr__(self, name: str) -> Any:
        """Return what the strategy has, such as `judged` or `load`; what it lacks is missing here too."""
        if name in ("strategy", "settings"):  # not set yet, while a copy is made
            raise AttributeError(name)
        return getattr(self.strategy, name)

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start as the strategy does, if the model's last layer is linear and its only one."""
        model = self.strategy.begin(graph, weights)
        part = judged_part(self.strategy, model)
        head = head_of(part)
        if head_size(part) > MOST_FEATURES:
            raise SchemaError(
                f"the last layer of model {graph.name!r} reads {head_size(part):,} numbers, and an exact head at most "
                f"{MOST_FEATURES:,}: sums of their products would be too large",
                fix="Use a model that reduces its features first, such as by their means, or leave out exact_head.",
            )
        if head.bias is None and self.settings.personal_head is PersonalHead.PRIOR:
            raise SchemaError(
                f"the last layer of model {graph.name!r} has no bias, into which personal_head = 'prior' puts shares",
                fix="Use a model whose last layer has a bias, or leave out personal_head.",
            )
        return model

    def selects_all(self, round_context: RoundContext) -> bool:
        """Return whether a round is for every available device."""
        return self._place(round_context).step is not None

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Plan the strategy's round, or a pass over the samples of every device that can make it."""
        place = self._place(round_context)
        if place.step is None:
            return self.strategy.plan(_without_phase(model), participants, self._inner(round_context))
        part = judged_part(self.strategy, model)
        mask = freeze(part, part.trained)
        work = LocalWork(epochs=1, batch_size=round_context.work.batch_size)
        sums = PlannedTask(mask, rule_settings(self._sums), work, networks=self._networks(part))
        task = self._task(model, part, place.step, sums)
        return for_all(task, model.graph, participants)

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but sums that samples can have, or what the strategy refuses."""
        rule = rule_of(update.rule)
        if not only_forward(rule):
            self.strategy.check(update)
            return
        check_mask_kept(update)
        check_tensors(update.tensors, rule.sends(update.mask))
        check_sums(update)

    def movement(self, update: ClientUpdate) -> float:
        """Return how far an update moves its submodel; sums move nothing."""
        return 0.0 if only_forward(rule_of(update.rule)) else self.strategy.movement(update)

    def next_mask(self, update: ClientUpdate) -> Mask | None:
        """Return a device's mask after an update; after sums it is what it was before."""
        decide = getattr(self.strategy, "next_mask", None)
        if decide is None or only_forward(rule_of(update.rule)):
            return update.next_mask
        found: Mask | None = decide(update)
        return found

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Aggregate the strategy's round, or fit the head."""
        place = self._place(round_context)
        if place.step is None:
            return self.strategy.combine(_without_phase(model), updates, self._inner(round_context))
        part = judged_part(self.strategy, model)
        if not place.step:
            return self._with_sums(model, part, updates, round_context)
        return self._with_step(model, part, updates, round_context)

    def explain(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, float]:
        """Return the strategy's figures about its plan; a phase has none."""
        explain = getattr(self.strategy, "explain", None)
        if explain is None or self.selects_all(round_context):
            return {}
        found: Mapping[str, float] = explain(_without_phase(model), participants, self._inner(round_context))
        return found

    def personalise(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Return what the strategy lets devices do with the last model, or let them change its bias."""
        if self.settings.personal_head is PersonalHead.PRIOR:
            return self._priors(model, participants, round_context)
        rounds = self.settings.trained(round_context.rounds)
        tasks = self.strategy.personalise(
            _without_phase(model), participants, replace(round_context, round=rounds, rounds=rounds)
        )
        if not self._networks(judged_part(self.strategy, model)):
            return tasks
        weights = {task.mask.digest: self.weights_of(model, task.mask) for task in tasks.values()}
        return {device: replace(task, weights=weights[task.mask.digest]) for device, task in tasks.items()}

    def _priors(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Give every device that can hold it the model, and the shares of the classes of all devices together."""
        state = _phase_of(model)
        if "squares" not in state:
            return {}
        part = judged_part(self.strategy, model)
        counts = np.maximum(state["squares"], 0.0)
        shares = (counts / max(float(counts.sum()), 1.0)).astype(np.float32)
        work = LocalWork(epochs=1, batch_size=round_context.work.batch_size)
        task = PlannedTask(freeze(part, part.trained), rule_settings(ClassPrior()), work, {SHARES: shares})
        # Labels are counted in no time, so memory alone is a limit.
        limits = {one.device_id: Budget(peak_bytes=one.budget.peak_bytes) for one in participants}
        able = [replace(one, budget=limits[one.device_id]) for one in participants]
        return for_all(task, model.graph, able)

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the strategy's submodel of a size."""
        return self.strategy.extract(_without_phase(model), fraction, seed)

    # Rounds

    def last_trained(self, rounds: int) -> int:
        """Return the number of the last round in which the strategy trains."""
        return max(number for number in range(rounds) if self.settings.place(number, rounds).own is not None)

    def check_rounds(self, rounds: int, *, buffered: bool) -> None:
        """Refuse a federation that has no round for the phase, or none for anything else."""
        kind = f"exact_head = {self.settings.exact_head.value!r}"
        if buffered:
            raise SchemaError(
                f"{kind} needs rounds in which all devices have the same model, and mode = 'buffered' has none",
                fix="Use mode = 'rounds', or leave out exact_head.",
            )
        if rounds <= self.settings.rounds:
            raise SchemaError(
                f"{kind} takes {self.settings.rounds} of the {rounds} rounds, and none is left to train in",
                fix="Give the federation more rounds, or lower head_rounds.",
            )

    def _place(self, round_context: RoundContext) -> Place:
        return self.settings.place(round_context.round, round_context.rounds)

    def _inner(self, round_context: RoundContext) -> RoundContext:
        """Return the context of one of the strategy's rounds, which counts these alone."""
        own = self._place(round_context).own
        return replace(round_context, round=own or 0, rounds=self.settings.trained(round_context.rounds))

    # The fit

    @property
    def _sums(self) -> FeatureSums:
        return FeatureSums(clip=self.settings.head_clip, noise=self.settings.head_noise)

    @property
    def _gradients(self) -> HeadGradients:
        return HeadGradients(clip=self.settings.head_clip, noise=self.settings.head_noise)

    def _with_sums(self, model: Model, part: Mask, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Return the model with the head that the sums of all devices have."""
        folds = folded(device_moments(updates, round_context.work.batch_size))
        if not folds:
            return model
        total, bias = total_of(folds), head_of(part).bias is not None
        chosen = self.settings.head_penalty
        penalty = best_penalty(folds, bias=bias) if chosen is None else chosen
        classes = are_classes(updates, total.products.shape[1])
        solved = ridge(total, penalty, bias=bias, classes=classes)
        given = {_GIVEN + name: model.weights[name] for name in _head_tensors(part, solved)}
        state = given | {
            "gram": total.gram,
            "products": total.products,
            "squares": total.squares,
            "samples": np.array(total.samples),
            "classes": np.array(int(classes)),
            "penalty": np.array(penalty),
            _HEAD: solved,
            _BEFORE: solved,
        }
        return self._with_head(model, part, solved, state)

    def _with_step(self, model: Model, part: Mask, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Return the model after one step of logistic regression."""
        state, weights = _phase_of(model), counted_samples(updates)
        if _HEAD not in state:  # nobody sent sums
            return self._with_sums(model, part, updates, round_context)
        gradient, samples = np.zeros_like(state[_HEAD]), 0.0
        known = Moments(state["gram"], state["products"], state["squares"], float(state["samples"]))
        largest = largest_gradient(known)
        for update, weight in zip(updates, weights, strict=True):
            if weight:
                summed = samples_summed(update, round_context.work.batch_size)
                own = sum_array(update, GRADIENT_SUM) / summed
                gradient += weight * largest / max(float(np.linalg.norm(own)), largest) * own
                samples += weight
        if not samples:
            return model
        step = self._place(round_context).step or 1
        at = extrapolated(state[_HEAD], state[_BEFORE], step - 1)
        # Devices that did not answer this time are stood for by those that did.
        everyone, penalty = gradient * (known.samples / samples), float(state["penalty"])
        found = logistic_step(known, at, everyone, penalty, bias=head_of(part).bias is not None)
        return self._with_head(model, part, found, {**state, _HEAD: found, _BEFORE: state[_HEAD]})

    def _networks(self, part: Mask) -> tuple[Mask, ...]:
        """Return the networks whose features stand side by side before the head; none if the model is one network."""
        networks = getattr(self.strategy, "networks", None)
        found: tuple[Mask, ...] = () if networks is None else tuple(networks(part))
        return found if len(found) > 1 else ()

    def _with_head(self, model: Model, part: Mask, solved: Doubles, state: Mapping[str, Array]) -> Model:
        """Return the model with a head.

        Several networks predict with the mean of their logits, so each has its columns times their number.
        """
        shown = solved * _factors(part, len(self._networks(part)) or 1)
        weights = scatter(part, _head_tensors(part, shown), model.weights)
        kept = {_STORED_AS + name: np.asarray(array) for name, array in state.items()}
        return replace(model, weights=weights, state={**_without_phase(model).state, **kept})

    def weights_of(self, model: Model, mask: Mask) -> Weights:
        """Return the weights with which a submodel predicts: some of several networks have an exact head of their own.

        The sums of their features are a block of the sums of all.
        """
        state, part = _phase_of(model), judged_part(self.strategy, model)
        own, every = self._networks(mask) or (mask,), self._networks(part)
        if not every or "gram" not in state or len(own) >= len(every) or not _are_among(own, every):
            return model.weights
        head = head_of(part)
        columns = np.unique(np.concatenate([_columns(part, one) for one in own]))
        features = columns if head.bias is None else np.append(columns, len(state["gram"]) - 1)
        moments = Moments(state["gram"], state["products"], state["squares"], float(state["samples"])).part(features)
        bias, classes = head.bias is not None, bool(state["classes"])
        solved = ridge(moments, float(state["penalty"]), bias=bias, classes=classes)
        return scatter(mask, _head_tensors(mask, solved * _factors(mask, len(own))), model.weights)

    def _task(self, model: Model, part: Mask, step: int, sums: PlannedTask) -> PlannedTask:
        """Return the task of a round of the phase.

        Devices have the body already when they are asked for gradients: they get the model as it was for the sums, to
        the byte, and the head beside it. The head is extrapolated.
        """
        state = _phase_of(model)
        if not step or _HEAD not in state:
            return sums
        given = {name.removeprefix(_GIVEN): array for name, array in state.items() if name.startswith(_GIVEN)}
        head = _head_tensors(part, extrapolated(state[_HEAD], state[_BEFORE], step - 1))
        return replace(sums, rule=rule_settings(self._gradients), extras=head, weights={**model.weights, **given})


def _head_tensors(part: Mask, solved: Doubles) -> dict[str, Array]:
    """Return a solution as the tensors of the head, at the widths of a part."""
    head = head_of(part)
    matrix = solved if head.bias is None else solved[:-1]
    tensors = {head.weight: matrix.T.astype(np.float32)}
    if head.bias is not None:
        tensors[head.bias] = solved[-1].astype(np.float32)
    return tensors


def _factors(part: Mask, networks: int) -> Doubles:
    """Return what the rows of a solution are multiplied by, for so many networks whose logits are averaged."""
    head = head_of(part)
    factors = np.full((part.shapes[head.weight][1], 1), float(networks))
    return factors if head.bias is None else np.vstack([factors, np.ones((1, 1))])


def _columns(part: Mask, network: Mask) -> IndexArray:
    """Return which of the part's features a network has."""
    name = head_of(part).weight
    found = axis_positions(part, network, name)[1]
    return np.arange(part.shapes[name][1]) if found is None else found


def _are_among(networks: Sequence[Mask], every: Sequence[Mask]) -> bool:
    known = {tuple(channels.tobytes() for channels in one.kept.values()) for one in every}
    return all(tuple(channels.tobytes() for channels in one.kept.values()) in known for one in networks)


def _phase_of(model: Model) -> dict[str, Array]:
    """Return the arrays that the phase keeps, by their names within it."""
    return {name.removeprefix(_STORED_AS): array for name, array in model.state.items() if name.startswith(_STORED_AS)}


def _without_phase(model: Model) -> Model:
    """Return the model as the strategy knows it."""
    own = {name: array for name, array in model.state.items() if not name.startswith(_STORED_AS)}
    return model if len(own) == len(model.state) else replace(model, state=own)

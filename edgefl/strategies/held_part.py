"""The part of the global model that devices hold: it is what a federation judges and exports by default.

A channel that no device was given kept the value that it began with, and the rest never learned to work with it. Where
devices lose channels, as with Hermes, it is the same with those that nobody has any more. So the part is

    every channel that a device held whose update counted in the second half of the rounds so far.

Not "ever held": Hermes' first submodels are nearly the whole model. Nor "held in the last round": where few devices are
selected, that changes with who was. Half of the rounds forgets what was lost, keeps the channels of rare wide devices,
and contains all windows of FedRolex after enough rounds. docs/decisions/0029 has the figures.

What counts is the mask that the coordinator planned, whatever a device claims, of an update that was aggregated and
trained something: not FedMAP's mask phases, no device without samples, nobody with `local`. Channels alone matter:
frozen layers and single weights that a mask leaves out belong to the model, unless the strategy's `judged` says that
nobody trains them, as Split-Mix does of those between its networks. Before the first such update the part is the whole
model.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from edgefl.local_rules import changes_model
from edgefl.masks import IndexArray, Mask, Weights, full_mask
from edgefl.model_graph import ChannelGroup, ModelGraph
from edgefl.strategies.strategy import Model, Strategy
from edgefl.values import RuleSettings

__all__ = ["arrays_beside", "begun", "held_part", "judged_part", "model_with", "note_held", "trains_model"]

_STORED_AS = "edgefl.last_held/"
"""Prefix of the arrays of `last_held` among those that are stored beside the weights."""


def begun(model: Model) -> Model:
    """Return a model before its first round: nobody held any channel yet."""
    return replace(model, last_held={group.name: _constant(group, 0) for group in model.graph.groups})


def trains_model(rule: RuleSettings, samples: int) -> bool:
    """Return whether a device that reports so many samples trained what its plan gave it."""
    return changes_model(rule) and samples > 0


def note_held(before: Model, after: Model, masks: Iterable[Mask], number: int) -> Model:
    """Return the model `after` a round, with what the devices held that trained it.

    A model that a version before this one stored does not say what was held until now: then all of it was.
    """
    last_held = before.last_held or {group.name: _constant(group, number) for group in before.graph.groups}
    if after.weights is not before.weights:
        noted = {name: rounds.copy() for name, rounds in last_held.items()}
        for mask in masks:
            for name, channels in mask.kept.items():
                noted[name][channels] = number + 1
        for rounds in noted.values():
            rounds.flags.writeable = False
        last_held = noted
    return replace(after, last_held=last_held)


def held_part(model: Model) -> Mask:
    """Return the part of a model that devices hold; the whole model until somebody trained it."""
    latest = max((int(rounds.max()) for rounds in model.last_held.values()), default=0)
    if not latest:
        return full_mask(model.graph)
    kept = {group.name: _recent(group, model.last_held[group.name], latest) for group in model.graph.groups}
    return Mask.of(model.graph, kept=kept)


def judged_part(strategy: Strategy, model: Model) -> Mask:
    """Return what of the part that devices hold is judged and exported: all, unless the strategy leaves some out."""
    part, judged = held_part(model), getattr(strategy, "judged", None)
    return part if judged is None else judged(part)


def _recent(group: ChannelGroup, rounds: IndexArray, latest: int) -> IndexArray:
    """Return the channels that were held last, in the multiple that the group's norms need."""
    count = int(np.count_nonzero(2 * rounds > latest))
    count += -count % group.multiple_of
    return np.sort(np.argsort(-rounds, kind="stable")[:count])


def arrays_beside(model: Model) -> Weights:
    """Return what is stored of a model beside its weights: the strategy's arrays, and when channels were held."""
    return {**model.state, **{_STORED_AS + name: rounds for name, rounds in model.last_held.items()}}


def model_with(graph: ModelGraph, weights: Weights, arrays: Weights) -> Model:
    """Return the model that was stored as these weights, and these arrays beside them."""
    state = {name: array for name, array in arrays.items() if not name.startswith(_STORED_AS)}
    held = {name.removeprefix(_STORED_AS): array for name, array in arrays.items() if name.startswith(_STORED_AS)}
    return Model(graph, weights, state, held)


def _constant(group: ChannelGroup, number: int) -> IndexArray:
    rounds = np.full(group.width, number, np.int64)
    rounds.flags.writeable = False
    return rounds

"""Rule `base_networks`: every step trains several small networks that lie side by side in one model. Split-Mix.

Hong et al., "Efficient Split-Mix Federated Learning for On-Demand and In-Situ Customization", ICLR 2022. A
model is split into k base networks of 1/k of its width that share no weights: network j has the j-th block of channels
of every group, and of a tensor only the entries within its own block on every axis. Each has its own loss on the batch,
and the sum of all losses is descended; as no weight is in two networks, that trains each by itself.

What the paper leaves open, and what is done here:
- A block has floor(W / k) of the W channels of a group, rounded down to what its norm allows. Channels that are left
  over are in no network.
- Entries that no channel group cuts, such as the bias of the head, are shared; the paper's networks have their own.
  Their gradient here is the mean over the networks, so that they move as far as those of one network alone.
- A sample counts as classified correctly if more than half of the networks do so.
- Clipping is of the gradients of all networks together.

The networks of a submodel follow from its channels, so a plan needs nothing beside its mask and k.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.descent import DescentRule, train
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update, trained_parameters
from edgefl.local_rules.sent_tensors import held_values
from edgefl.local_rules.submodel_channels import narrow, positions_within
from edgefl.masks import Array, Mask, Weights
from edgefl.model_graph import ChannelGroup, Cost, ModelGraph, cost_of
from edgefl.values import PositiveCount
from edgefl.wire import Dense, Expected

__all__ = [
    "BaseNetworks",
    "arrays_cost",
    "base_networks",
    "joined_networks",
    "mean_logits",
    "network_widths",
    "networks_step",
    "only_networks",
    "within_networks",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseNetworks(DescentRule):
    """Gradient descent on several networks side by side."""

    name: ClassVar[str] = "base_networks"
    networks: PositiveCount = 8
    """k: how many base networks the whole model is split into."""
    sent: bool = True
    """Whether the new values are sent; those of fine-tuning stay on the device."""

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the new values of the networks' own entries, or nothing."""
        return held_values(mask) if self.sent else {}

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Run every network on the batch, and move all of them down their gradients."""
        return train(self.descent, inputs, state, batch, networks_step(state.mask, self.networks, run))

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Send the new values of the networks."""
        held = state.mask.held
        tensors = {
            name: Dense(state.weights[name][held[name]] if name in held else state.weights[name])
            for name in self.sends(state.mask)
        }
        metrics = {"learning_rate": self.descent.last_rate(inputs, state)}
        return Update(tensors, state.weights, state.mask, metrics)


def joined_networks(graph: ModelGraph, numbers: Iterable[int], of: int) -> Mask:
    """Return the mask of some of a model's `of` base networks: their channels, and their own entries alone."""
    chosen = sorted(set(numbers))
    kept = {
        name: [number * width + channel for number in chosen for channel in range(width)]
        for name, width in network_widths(graph, of).items()
    }
    return only_networks(Mask.of(graph, kept=kept), of)


def network_widths(graph: ModelGraph, of: int) -> Mapping[str, int]:
    """Return how many channels one of `of` networks has of each group that is divided."""
    return {group.name: _block(group, of) for group in graph.groups if group.fixed is None}


def only_networks(mask: Mask, of: int) -> Mask:
    """Return a mask without what is in none of its base networks: other channels, and the entries between networks."""
    return within_networks(mask, base_networks(mask, of))


def within_networks(mask: Mask, networks: tuple[Mask, ...]) -> Mask:
    """Return a mask without what is in none of some networks, which share no channels of groups that can be cut."""
    if len(networks) == 1:
        return networks[0]
    kept = {name: np.unique(np.concatenate([one.kept[name] for one in networks])) for name in mask.kept}
    whole = Mask(mask.graph, mask.trained, kept, {})
    held = {name: _owners(whole, name, networks) > 0 for name in whole.shapes}
    return Mask(mask.graph, mask.trained, kept, held)


@lru_cache(maxsize=64)
def base_networks(mask: Mask, of: int) -> tuple[Mask, ...]:
    """Return the base networks that a mask contains whole, in their order; a mask without any is its own network.

    So is that of a model without channels to divide, however many networks a plan asks for; of any other there are at
    most as many as its narrowest group has channels.
    """
    cut = network_widths(mask.graph, of)
    if not cut:
        return (mask,)
    found = []
    for number in range(of):
        blocks = {name: np.arange(number * width, (number + 1) * width) for name, width in cut.items()}
        if all(np.isin(block, mask.kept[name]).all() for name, block in blocks.items()):
            found.append(Mask(mask.graph, mask.trained, {**mask.kept, **blocks}, {}))
    return tuple(found) or (mask,)


@lru_cache(maxsize=64)
def arrays_cost(mask: Mask) -> Cost:
    """Return the cost of a mask's whole arrays: weights, momenta and gradients also have room between the networks."""
    return cost_of(mask.graph, mask.widths, mask.trained)


def networks_step(mask: Mask, of: int, run: TrainStep) -> TrainStep:
    """Return a training step of the networks that a mask contains, from one of a single network."""
    networks = base_networks(mask, of)
    return run if networks == (mask,) else _NetworksStep(mask, networks, run)


def mean_logits(predict: Callable[[Weights, Array], Array], networks: Sequence[Weights], x: Array) -> Array:
    """Return the logits of one network for some inputs, or the mean of those of several."""
    total = predict(networks[0], x)
    for weights in networks[1:]:
        total = total + predict(weights, x)
    return total / len(networks) if len(networks) > 1 else total


@dataclass(frozen=True, slots=True, eq=False)
class _NetworksStep:
    """A training step of several networks, one after the other, as a step of the mask that contains them."""

    whole: Mask
    networks: tuple[Mask, ...]
    run: TrainStep

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        loss, correct = 0.0, np.zeros(len(batch.y), np.int64)
        gradients: dict[str, Array] = {}
        statistics: dict[str, Array] = {}
        for network in self.networks:
            result = self.run(narrow(self.whole, network, weights), batch)
            loss, correct = loss + result.loss, correct + result.correct
            for name, gradient in result.gradients.items():
                into = gradients.setdefault(name, np.zeros(self.whole.shapes[name], gradient.dtype))
                into[positions_within(self.whole, network, name)] += gradient
            for name, new in result.statistics.items():
                into = statistics.setdefault(name, weights[name].copy())
                into[positions_within(self.whole, network, name)] = new
        for name, divisor in _shared(self.whole, self.networks).items():
            if name in gradients:
                gradients[name] /= divisor.astype(gradients[name].dtype)
        return StepResult(loss / len(self.networks), 2 * correct > len(self.networks), gradients, statistics)


@lru_cache(maxsize=8)
def _shared(whole: Mask, networks: tuple[Mask, ...]) -> dict[str, Array]:
    """Return by how much the summed gradient of an entry is divided, for tensors with entries of several networks."""
    owners = {name: _owners(whole, name, networks) for name in trained_parameters(whole)}
    return {name: np.maximum(count, 1) for name, count in owners.items() if np.any(count > 1)}


def _owners(whole: Mask, name: str, networks: tuple[Mask, ...]) -> Array:
    """Return how many of the networks have each entry of a tensor of the mask that contains them."""
    count = np.zeros(whole.shapes[name], np.int64)
    for network in networks:
        count[positions_within(whole, network, name)] += 1
    return count


def _block(group: ChannelGroup, of: int) -> int:
    """Return how many channels of a group each network has."""
    width = group.width // of // group.multiple_of * group.multiple_of
    if not width:
        raise MaskError(
            f"channel group {group.name!r} has {group.width} channels, too few for {of} networks of at least "
            f"{group.multiple_of}",
            fix=f"Split the model into at most {group.width // group.multiple_of} networks, or use a wider one.",
        )
    return width

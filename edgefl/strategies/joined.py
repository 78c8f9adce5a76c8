"""Strategy `joined`: small networks side by side, each trained by its own group of devices, under one exact head.

Parts of one model that devices of unequal width share fit nobody well; networks that are not shared do. Every device
trains one narrow network that it can afford, and averages it with the devices of its group alone. The features of all
networks stand side by side, and the last layer is fitted to the data of all devices (`exact_head.py`): use it with
`exact_head = "ridge"`. Without one, the model predicts with the mean of the networks' logits, each of which knows its
own group. Relative: FedConcat (Diao et al., "Exploiting Label Skews in Federated Learning with Model Concatenation",
AAAI 2024), which clusters devices by labels and fits the head by averaging.

The networks are blocks of channels of the model, one after the other, of the widths in `nets`; nobody trains the
entries between them. So the model has to be as wide as all of them together, and is not trained as a whole by anyone. A
device gets one of the widest networks that fit its budget, of these the one with the fewest devices so far, and keeps
it; a device that joins late gets one at once. Which device has which network is kept beside the model.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.base_networks import within_networks
from edgefl.masks import Mask, Weights, kept_width
from edgefl.model_graph import ModelGraph
from edgefl.noise import derive
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import ClientUpdates, Model, RoundContext
from edgefl.strategies.uplink import Uplink
from edgefl.strategies.uplink_choice import UplinkChoice
from edgefl.values import FieldError

__all__ = ["Joined"]

_DEVICES, _NETWORKS = "joined/devices", "joined/networks"
"""The arrays beside the model: the devices that trained, by their hashes, and the number of each one's network."""
_MOST_NETS = 64
_NET = re.compile(r"\s*([0-9.eE-]+)\s*(?:x\s*(\d+))?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(FineTunedStrategy):
    """Networks side by side, one for each group of devices."""

    name: ClassVar[str] = "joined"
    nets: str = "0.125 x 8"
    """The widths of the networks, as fractions of the model's width, such as '0.2 x 3, 0.1 x 4'."""
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)

    def check_settings(self) -> None:
        """Refuse widths that are no fractions, or of more than the whole model."""
        widths = _widths(self.nets)
        if not widths or not all(0 < width <= 1 for width in widths) or sum(widths) > 1 + 1e-9:
            raise FieldError(
                f"must be the widths of networks, fractions that are 1 together at most, got {self.nets[:60]!r}",
                fix="Write for example '0.2 x 3, 0.1 x 4', and export a model as wide as all networks together",
                path=("nets",),
            )

    @property
    def uplink(self) -> Uplink:
        """The uplink that the settings choose."""
        return self.uplinks.build(self.descent)

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are, if the model has channels for all networks."""
        _blocks(graph, self.nets)
        return FineTunedStrategy.begin(self, graph, weights)

    def networks(self, mask: Mask) -> tuple[Mask, ...]:
        """Return the networks that a mask contains whole; a mask without any is its own network."""
        whole = _blocks(mask.graph, self.nets)
        found = (one for one in whole if all(np.isin(one.kept[name], mask.kept[name]).all() for name in one.kept))
        return tuple(Mask(mask.graph, mask.trained, one.kept, {}) for one in found) or (mask,)

    def judged(self, mask: Mask) -> Mask:
        """Return what the networks of a submodel have: nobody trains the entries between them."""
        return within_networks(mask, self.networks(mask))

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device its network; leave out devices that none fits."""
        blocks, known = _blocks(model.graph, self.nets), _known(model)
        taken, found = Counter(known.values()), dict[str, Mask]()
        for device in sorted(estimates, key=lambda name: (_hash(name) not in known, derive(0, name), name)):
            number = known.get(_hash(device))
            if number is None or not estimates[device].can_train(blocks[number]):
                number = _widest(blocks, estimates[device], taken)
                if number is None:
                    continue
                taken[number] += 1
            found[device] = blocks[number]
        return {device: found[device] for device in estimates if device in found}

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Average every network over its devices, and note whose it is."""
        after = FineTunedStrategy.combine(self, model, updates, round_context)
        numbers = {_key(one): number for number, one in enumerate(_blocks(model.graph, self.nets))}
        known = _known(model)
        for update in updates:
            known[_hash(update.device_id)] = numbers[_key(update.mask)]
        devices = sorted(known)
        state = {
            _DEVICES: np.array(devices, np.int64),
            _NETWORKS: np.array([known[device] for device in devices], np.int64),
        }
        return replace(after, state={**after.state, **state})

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return as many networks as there are within this share of the parameters, the first ones."""
        most = fraction * model.graph.parameters
        blocks = _blocks(model.graph, self.nets)
        for count in range(len(blocks), 0, -1):
            joined = self._together(blocks[:count])
            if joined.cost.parameters <= most:
                return joined
        raise MaskError(
            f"not even one of the {len(blocks)} networks has at most {most:,.0f} parameters",
            fix="Request a larger fraction, or narrower networks.",
        )

    def _together(self, networks: Sequence[Mask]) -> Mask:
        kept = {name: np.concatenate([one.kept[name] for one in networks]) for name in networks[0].kept}
        graph = networks[0].graph
        fixed = {group.name: np.arange(group.width) for group in graph.groups if group.fixed is not None}
        return self.judged(Mask.of(graph, kept={**kept, **fixed}))


def _widths(text: str) -> list[float]:
    """Return the widths in a text; none if it cannot be read."""
    found: list[float] = []
    for part in text.split(","):
        match = _NET.fullmatch(part)
        try:
            width, count = (float(match[1]), int(match[2] or 1)) if match else (0.0, 0)
        except ValueError:
            return []
        if not 0 < count <= _MOST_NETS - len(found):
            return []
        found += [width] * count
    return found


@lru_cache(maxsize=16)
def _blocks(graph: ModelGraph, nets: str) -> tuple[Mask, ...]:
    """Return the networks of a model, widest first: blocks of channels, one after the other."""
    cut = [group for group in graph.groups if group.fixed is None]
    begin, found = dict.fromkeys((group.name for group in cut), 0), []
    for width in sorted(_widths(nets), reverse=True):
        kept = {}
        for group in cut:
            first, size = begin[group.name], kept_width(group, width)
            kept[group.name] = range(first, first + size)
            begin[group.name] = first + size
            if first + size > group.width:
                raise MaskError(
                    f"channel group {group.name!r} has {group.width} channels, too few for the networks of {nets!r}",
                    fix="Choose fewer or narrower networks, or export a wider model.",
                )
        found.append(Mask.of(graph, kept=kept))
    if not cut:
        raise MaskError(f"model {graph.name!r} has no channels to divide", fix="Use a model with a hidden layer.")
    return tuple(found)


def _widest(blocks: Sequence[Mask], estimate: RoundEstimate, taken: Counter[int]) -> int | None:
    """Return the number of the network with the fewest devices among the widest that a device can train."""
    fitting = next((one for one in blocks if estimate.can_train(one)), None)
    if fitting is None:
        return None
    equal = [number for number, one in enumerate(blocks) if one.widths == fitting.widths]
    return min(equal, key=lambda number: (taken[number], number))


def _known(model: Model) -> dict[int, int]:
    """Return the network of every device that trained one, by its hash."""
    devices, networks = (model.state.get(name, np.zeros(0, np.int64)).tolist() for name in (_DEVICES, _NETWORKS))
    return dict(zip(devices, networks, strict=True))


def _hash(device: str) -> int:
    """Return a signed number of 64 bits for a device's id."""
    return int(np.uint64(derive(0, "joined", device)).view(np.int64))


def _key(mask: Mask) -> tuple[bytes, ...]:
    return tuple(channels.tobytes() for channels in mask.kept.values())

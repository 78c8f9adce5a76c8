"""The methods: plain answers to unequal devices, methods that give each a part, and networks side by side.

All have the same exact head at the end, unless a method's name says "averaged". Widths follow from what the weakest
kind of device can train in a round, so they are no choice; rates are tuned.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.masks import leading_channels
from edgefl.model_graph import ModelGraph
from edgefl.planning import predict
from edgefl.simulation import DeviceClass
from edgefl.simulation.device_class import simulated_profile
from edgefl.values import Setting

__all__ = ["METHODS", "RATES", "Method", "fitting_width", "round_seconds"]

RATES = (0.03, 0.1, 0.3)
_HEAD: Mapping[str, Setting] = {"exact_head": "ridge"}
_DESCENT: Mapping[str, Setting] = {"momentum": 0.9, "weight_decay": 0.0, "schedule": "constant", "clip_norm": 5.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method, whose settings may depend on the widths that kinds of devices can train."""

    label: str
    strategy: str
    settings: Mapping[str, Setting] = field(default_factory=lambda: _HEAD)
    waits: bool = False
    """Whether a round lasts until the slowest device has trained the whole model."""
    widths: str = ""
    """Which setting gets widths: 'levels' of all kinds, 'smallest' as the only level, 'nets' side by side."""
    head: bool = True
    rate: float = RATES[1]

    def told(self, fitting: Sequence[float], clients: int) -> dict[str, Setting]:
        """Return the strategy's settings; `fitting` are the widths of the kinds of devices."""
        told = {**_DESCENT, **self.settings, "learning_rate": self.rate}
        if self.widths == "levels":
            told["levels"] = ", ".join(f"{width:g}" for width in sorted(set(fitting), reverse=True))
        elif self.widths == "smallest":
            told["levels"] = f"{min(fitting):g}"
        elif self.widths == "nets":
            wide, nets = self.widen(fitting, clients), self._nets(fitting, clients)
            told["nets"] = ", ".join(f"{width / wide:.6g}" for width in nets)
        return told

    def widen(self, fitting: Sequence[float], clients: int) -> float:
        """Return how many times as wide the model is made, so that all networks have room in it."""
        if self.widths != "nets":
            return 1.0
        return max(1.0, math.ceil(100 * sum(self._nets(fitting, clients)) + len(fitting)) / 100 + 0.2)

    def _nets(self, fitting: Sequence[float], clients: int) -> list[float]:
        narrow = min(fitting)
        widest = [min(max(width, narrow), 1.5 * narrow) for width in fitting]
        return [width for width in widest for _ in range(clients // len(fitting))]


METHODS: Mapping[str, Method] = {
    one.label: one
    for one in (
        Method(label="wait", strategy="fedavg", settings={**_HEAD, "width": "full"}, waits=True),
        Method(label="drop", strategy="fedavg", settings={**_HEAD, "width": "full"}),
        Method(label="batches", strategy="fedavg", settings={**_HEAD, "width": "full", "fit_by": "batch"}),
        Method(label="steps", strategy="fedavg", settings={**_HEAD, "width": "full", "fit_by": "steps"}),
        Method(label="small for all", strategy="heterofl", widths="smallest"),
        Method(label="heterofl", strategy="heterofl", widths="levels"),
        Method(label="fedrolex", strategy="fedrolex", widths="levels", settings={**_HEAD, "width": "levels"}),
        Method(label="freezing", strategy="perfedmask", settings={**_HEAD, "fine_tune_epochs": 0}),
        Method(label="split_mix", strategy="split_mix", settings={**_HEAD, "base_networks": 4}),
        Method(label="joined", strategy="joined", widths="nets"),
        Method(label="batches averaged", strategy="fedavg", settings={"width": "full", "fit_by": "batch"}, head=False),
        Method(label="heterofl averaged", strategy="heterofl", settings={}, widths="levels", head=False),
    )
}
"""By label."""


def round_seconds(graph: ModelGraph, kind: DeviceClass, steps: int, batch: int, width: float = 1.0) -> float:
    """Return what training a submodel of this width for a round takes on a kind of device."""
    cost = leading_channels(graph, width).cost
    return predict(simulated_profile(kind), cost, batch=batch, steps=steps).round_seconds or 0.0


def fitting_width(fits: Callable[[float], bool]) -> float:
    """Return the widest submodel that fits, in hundredths of the width."""
    return next((width / 100 for width in range(100, 0, -1) if fits(width / 100)), 0.01)

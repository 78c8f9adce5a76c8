"""Rule `shared_layers`: the device keeps some layers from round to round, and shares the others. LG-FedAvg.

Liang et al., "Think Locally, Act Globally: Federated Learning with Local and Global Representations", 2020, Algorithm
1. The model is a representation l(x) of the device's own and, on top of it, a global model g. Each step moves both by
the gradient of the same loss; g is sent, and l stays:

    g <- g - rate * gradient              from the averaged g; what is sent
    l <- l - rate * gradient              from the device's own l of its last task

Layers are counted as the authors' code does, by their matrices and kernels: a norm belongs to the layer before it.
Where their code shares the first layers and keeps the last ones (its convolutional network for CIFAR-10), `end` is
"first".

The shared layers arrive in `extras`, as `shared/NAME`, so that the weights of a task stay the same from round to
round, and a device downloads them once. They are all there, in the submodel's shapes; only without any `extras` does
everything come from the weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.descent import DescentRule, start
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.local_rules.sent_tensors import new_values
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.values import PositiveCount
from edgefl.wire import Dense, Expected

__all__ = ["SHARED", "SharedEnd", "SharedLayers", "layer_units", "shared_tensors"]

SHARED = "shared/"
"""How the names of shared tensors begin in `extras`."""


class SharedEnd(StrEnum):
    """Which end of the model is shared."""

    LAST = "last"
    FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLayers(DescentRule):
    """Gradient descent on layers of the device's own and shared ones."""

    name: ClassVar[str] = "shared_layers"
    layers: PositiveCount = 2
    """The number of shared layers."""
    end: SharedEnd = SharedEnd.LAST

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the new values of the shared layers."""
        shared = shared_tensors(mask.graph, self.layers, self.end)
        return {name: form for name, form in new_values(mask).items() if name in shared}

    def begin(self, inputs: TrainingInput) -> State:
        """Continue with the device's own layers, if it has some, below or above the shared ones as they were sent."""
        shared = shared_tensors(inputs.mask.graph, self.layers, self.end)
        _check_sent(inputs, shared)
        given, own = self._given(inputs), inputs.own()
        if own is None:
            return start(given)
        weights = {name: array if name in shared else own[name] for name, array in given.weights.items()}
        return start(replace(given, weights=weights))

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Move every trained tensor down its gradient."""
        return DescentRule.step(self, self._given(inputs), state, batch, run)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Send the shared layers; keep everything."""
        tensors = {name: Dense(state.weights[name]) for name in self.sends(state.mask)}
        metrics = {"learning_rate": self.descent.last_rate(inputs, state)}
        return Update(tensors, state.weights, state.mask, metrics)

    def _given(self, inputs: TrainingInput) -> TrainingInput:
        """Return the inputs with the shared layers, wherever they came from, among the weights."""
        sent = {name.removeprefix(SHARED): array for name, array in inputs.extras.items()}
        return replace(inputs, weights={**inputs.weights, **sent}) if sent else inputs


def layer_units(graph: ModelGraph) -> tuple[tuple[str, ...], ...]:
    """Return the trainable layers from the input on, each with the norms that follow it."""
    units: list[list[str]] = []
    for layer in graph.trainable_layers:
        if not units or any(_multiplies(graph, tensor) for tensor in graph.layer[layer].tensors):
            units.append([])
        units[-1].append(layer)
    return tuple(map(tuple, units))


def shared_tensors(graph: ModelGraph, layers: int, end: SharedEnd) -> frozenset[str]:
    """Return the names of the tensors, statistics among them, of the first or last layers of a model."""
    units = layer_units(graph)
    chosen = units[:layers] if end is SharedEnd.FIRST else units[-layers:]
    return frozenset(tensor for unit in chosen for layer in unit for tensor in graph.layer[layer].tensors)


def _check_sent(inputs: TrainingInput, shared: frozenset[str]) -> None:
    """Raise a `MaskError` unless the device was sent all shared layers, and nothing else, or none."""
    expected, mask = {SHARED + name: name for name in shared}, inputs.mask
    wrong = sorted(inputs.extras.keys() ^ expected.keys())
    if inputs.extras and wrong:
        raise MaskError(
            f"the device was sent {', '.join(sorted(inputs.extras))}: {wrong[0]!r} is "
            f"{'missing' if wrong[0] in expected else 'not shared'}",
            fix=f"Send {', '.join(sorted(expected))}, or nothing if everything is in the weights.",
        )
    for key, array in inputs.extras.items():
        shape, dtype = mask.shapes[expected[key]], mask.graph.tensor[expected[key]].dtype.value
        if array.shape != shape or array.dtype != dtype or not bool(np.all(np.isfinite(array))):
            raise MaskError(
                f"the shared tensor {key!r} is {array.dtype} of shape {array.shape}, or not all of it is finite",
                fix=f"Send finite numbers of type {dtype} and shape {shape}.",
            )


def _multiplies(graph: ModelGraph, name: str) -> bool:
    tensor = graph.tensor[name]
    return tensor.role in (TensorRole.WEIGHT, TensorRole.HEAD) and len(tensor.shape) > 1

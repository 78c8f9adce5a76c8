"""Cost of a submodel: parameters, bytes, multiply-adds and activations, from widths alone.

Planners call it for thousands of candidate masks, so it needs no mask: only the kept channels of each group, the
trained layers, and the number of held weights. Compute and activations are counted for one sample.

A layer's backward pass has two halves of about the forward's cost each. The gradient of its weights is needed if
it is trained; the gradient of its input is needed if anything before it is trained. So freezing the first layers
removes their whole backward pass, and freezing a layer in the middle saves only half of its own.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from edgefl.errors import MaskError
from edgefl.model_graph.elements import Layer, TensorRole, TensorSpec, Term
from edgefl.model_graph.graph import ModelGraph

__all__ = ["Cost", "cost_in_turn", "cost_of", "kept_shape"]

_ACTIVATION_BYTES = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one submodel; compute and activations are for one sample."""

    parameters: int
    """Parameters on the device, without running statistics."""
    trained_parameters: int
    """Parameters in trained layers."""
    parameter_bytes: int
    """Bytes of all tensors on the device, including running statistics."""
    forward_multiply_adds: int
    """Multiply-adds that an engine executes: dense arithmetic within the kept channels."""
    backward_multiply_adds: int
    held_multiply_adds: int
    """Forward multiply-adds of held weights only: what an engine that skips zeros would execute."""
    saved_activations: int
    """Elements that the forward pass saves for the backward pass."""
    transient_activations: int
    """Elements of the largest input and output that exist at the same time."""

    def activation_bytes(self, batch: int) -> int:
        """Return the bytes of activations in one training step on a batch."""
        return _ACTIVATION_BYTES * batch * (self.saved_activations + self.transient_activations)


def cost_in_turn(costs: Sequence[Cost]) -> Cost:
    """Return the cost of several submodels that run one after the other: activations of one at a time."""
    last = max(costs, key=lambda cost: cost.saved_activations + cost.transient_activations)
    return Cost(
        parameters=sum(cost.parameters for cost in costs),
        trained_parameters=sum(cost.trained_parameters for cost in costs),
        parameter_bytes=sum(cost.parameter_bytes for cost in costs),
        forward_multiply_adds=sum(cost.forward_multiply_adds for cost in costs),
        backward_multiply_adds=sum(cost.backward_multiply_adds for cost in costs),
        held_multiply_adds=sum(cost.held_multiply_adds for cost in costs),
        saved_activations=last.saved_activations,
        transient_activations=last.transient_activations,
    )


def cost_of(
    graph: ModelGraph,
    widths: Mapping[str, int] | None = None,
    trained: Collection[str] | None = None,
    held: Mapping[str, int] | None = None,
) -> Cost:
    """Return the cost of a submodel.

    `widths` gives the kept channels of groups (a group that is missing is whole), `trained` the trained layers
    (None means all), `held` the number of held weights of tensors (a tensor that is missing is held whole).
    """
    kept_widths = {group.name: group.width for group in graph.groups} | dict(widths or {})
    training = set(graph.trainable_layers if trained is None else trained)
    _check(graph, widths or {}, training, held or {})
    sizes = {tensor.name: math.prod(kept_shape(graph, tensor, kept_widths)) for tensor in graph.tensors}
    holding = sizes | dict(held or {})
    parameters = [tensor for tensor in graph.tensors if tensor.role is not TensorRole.STATISTIC]
    backward, saved = _backward(graph, training, sizes, kept_widths)
    return Cost(
        parameters=sum(holding[tensor.name] for tensor in parameters),
        trained_parameters=sum(holding[t.name] for t in parameters if graph.layer_of[t.name] in training),
        parameter_bytes=sum(holding[tensor.name] * tensor.item_bytes for tensor in graph.tensors),
        forward_multiply_adds=_forward(graph, sizes, kept_widths),
        backward_multiply_adds=backward,
        held_multiply_adds=_forward(graph, holding, kept_widths),
        saved_activations=saved,
        transient_activations=max((_alive(graph, layer, kept_widths) for layer in graph.layers), default=0),
    )


def kept_shape(graph: ModelGraph, tensor: TensorSpec, widths: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of a tensor in the submodel with the given group widths."""
    shape = list(tensor.shape)
    for group, span in graph.spans_of.get(tensor.name, ()):
        shape[span.axis] -= (group.width - widths[group.name]) * span.per_channel
    return tuple(shape)


def _forward(graph: ModelGraph, sizes: Mapping[str, int], widths: Mapping[str, int]) -> int:
    return sum(_by_weights(graph, layer, sizes) + _total(layer.products, widths) for layer in graph.layers)


def _by_weights(graph: ModelGraph, layer: Layer, sizes: Mapping[str, int]) -> int:
    return sum(sizes[name] * graph.tensor[name].uses for name in layer.tensors)


def _backward(
    graph: ModelGraph, training: set[str], sizes: Mapping[str, int], widths: Mapping[str, int]
) -> tuple[int, int]:
    """Return the multiply-adds of the backward pass and the elements saved for it."""
    reached: set[str] = set()
    remembered: set[str] = set()
    multiply_adds = 0
    saved_input = 0
    for layer in graph.layers:
        weights_wanted, input_wanted = layer.name in training, not reached.isdisjoint(layer.inputs)
        if not (weights_wanted or input_wanted):
            continue
        multiply_adds += (weights_wanted + input_wanted) * _by_weights(graph, layer, sizes)
        # A product of two activations has a gradient for each of them that needs one.
        wanted_sides = 2 if weights_wanted else min(2, len(reached.intersection(layer.inputs)))
        multiply_adds += wanted_sides * _total(layer.products, widths)
        reached.add(layer.name)
        if weights_wanted or layer.products:
            remembered.update(layer.inputs)
            saved_input = graph.input_elements if _reads_input(layer) else saved_input
    saved = sum(_total(graph.layer[name].activations, widths) for name in reached | remembered)
    return multiply_adds, saved + saved_input


def _alive(graph: ModelGraph, layer: Layer, widths: Mapping[str, int]) -> int:
    before = sum(_total(graph.layer[name].activations, widths) for name in layer.inputs)
    return before + _reads_input(layer) * graph.input_elements + _total(layer.activations, widths)


def _reads_input(layer: Layer) -> bool:
    return layer.reads_input or not layer.inputs


def _check(graph: ModelGraph, widths: Mapping[str, int], training: set[str], held: Mapping[str, int]) -> None:
    """Reject names that are not in this model: a typo must not look like a cheap submodel."""
    for name, width in widths.items():
        if name not in graph.group or not 1 <= width <= graph.group[name].width:
            raise MaskError(
                f"group {name!r} cannot keep {width} channels", fix="Name groups of the model and their widths."
            )
    unknown = training - set(graph.trainable_layers)
    if unknown:
        raise MaskError(f"unknown trainable layer {min(unknown)!r}", fix="Name trainable layers of the model.")
    for name, count in held.items():
        if name not in graph.tensor or not 0 <= count <= graph.tensor[name].size:
            raise MaskError(
                f"tensor {name!r} cannot hold {count} weights", fix="Name tensors and counts up to their sizes."
            )


def _total(terms: tuple[Term, ...], widths: Mapping[str, int]) -> int:
    return sum(term.coefficient * math.prod(widths[group] for group in term.groups) for term in terms)

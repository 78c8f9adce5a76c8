"""A wider model of the same form: every group of channels that can be cut has more of them.

An exported graph runs any width, so a model of several narrow networks side by side needs no export of its own, only a
description with room for all of them. Costs of a submodel follow from its widths, and do not change.
"""

from collections.abc import Mapping
from dataclasses import replace

from edgefl.errors import MaskError
from edgefl.model_graph.elements import MAX_SIZE, ChannelGroup, Span, TensorSpec
from edgefl.model_graph.graph import ModelGraph

__all__ = ["widened"]


def widened(graph: ModelGraph, factor: float) -> ModelGraph:
    """Return the model with this many times as many channels, in multiples that norms allow."""
    if not 1 <= factor <= MAX_SIZE:
        raise MaskError(f"a model cannot be made {factor:g} times as wide", fix="Give a factor of 1 or more.")
    widths = {group.name: _wider(group, factor) for group in graph.groups}
    sizes: dict[str, list[int]] = {tensor.name: list(tensor.shape) for tensor in graph.tensors}
    spans: dict[Span, Span] = {}
    for tensor in graph.tensors:
        for axis in range(len(tensor.shape)):
            sizes[tensor.name][axis], found = _laid_out(graph, tensor, axis, widths)
            spans |= found
    return ModelGraph(
        name=graph.name,
        tensors=tuple(replace(tensor, shape=tuple(sizes[tensor.name])) for tensor in graph.tensors),
        layers=graph.layers,
        groups=tuple(
            replace(group, width=widths[group.name], spans=tuple(spans[span] for span in group.spans))
            for group in graph.groups
        ),
        input_elements=graph.input_elements,
    )


def _wider(group: ChannelGroup, factor: float) -> int:
    if group.fixed is not None:
        return group.width
    return max(group.width, round(group.width * factor / group.multiple_of) * group.multiple_of)


def _laid_out(
    graph: ModelGraph, tensor: TensorSpec, axis: int, widths: Mapping[str, int]
) -> tuple[int, dict[Span, Span]]:
    """Return the new size of an axis, and its spans: what lies behind channels that were added moves back."""
    here = [(group, span) for group, span in graph.spans_of.get(tensor.name, ()) if span.axis == axis]
    blocks = sorted(
        (span.offset + stack * span.stride, span.repeat * (widths[group.name] - group.width))
        for group, span in here
        for stack in range(span.stacks)
    )

    def moved(index: int) -> int:
        return index + sum(more for begin, more in blocks if begin < index)

    found = {}
    for _, span in here:
        offset = moved(span.offset)
        stride = moved(span.offset + span.stride) - offset if span.stacks > 1 else span.stride
        found[span] = replace(span, offset=offset, stride=stride)
    return moved(tensor.shape[axis]), found

"""Builds the `ModelGraph` of a traced model: its channel groups, its layers, and their cost."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from edgefl.model_graph import ChannelGroup, Dtype, Layer, ModelGraph, Span, TensorRole, TensorSpec, Term
from export.axes import Axis, BatchFactor, ChannelFactor, ConcatFactor, ConstantFactor, bind, resolve, spans
from export.trace import INPUT, LayerRecord, Value, layer_name
from export.trace_model import TracedModel

__all__ = ["describe"]

Terms = list[tuple[int, tuple[ChannelFactor, ...]]]


def describe(traced: TracedModel, name: str, block_of: Callable[[str], str] | None = None) -> ModelGraph:
    """Return the graph of a traced model. `block_of` returns the block of a layer; by default, its first name."""
    for factor in resolve(traced.output.axes[-1]):
        if isinstance(factor, ChannelFactor):
            bind(factor, (ConstantFactor(factor.size),))  # the classes are never cut
    stored = traced.parameters | traced.buffers
    places = _stable_spans(stored)
    names = _group_names(places)
    records = dict(traced.trace.records)
    heads = set(traced.output.layers)
    tensors = tuple(_tensor(key, value, records, heads) for key, value in stored.items())
    groups = tuple(
        ChannelGroup(names[channels], channels.size, tuple(found), channels.multiple_of)
        for channels, found in places.items()
    )
    layers = tuple(_layers(records, stored, names))
    input_elements = 1
    for size in traced.input.shape[1:]:
        input_elements *= size
    return ModelGraph(name, tensors, _in_blocks(layers, block_of), groups, input_elements)


def _stable_spans(stored: dict[str, Value]) -> dict[ChannelFactor, list[Span]]:
    """Return the positions of all channels. Two kinds in one product become constant, so repeat until nothing
    changes."""
    before = -1
    while True:
        places: dict[ChannelFactor, list[Span]] = {}
        for name, value in stored.items():
            for place, axis in enumerate(value.axes):
                for channels, span in spans(name, place, axis):
                    places.setdefault(channels, []).append(span)
        if len(places) == before:
            return places
        before = len(places)


def _group_names(places: dict[ChannelFactor, list[Span]]) -> dict[ChannelFactor, str]:
    """Name every group after the layer that writes it: the first of which it is an output axis."""
    names: dict[ChannelFactor, str] = {}
    for channels, found in places.items():
        writer = next((span.tensor for span in found if span.axis == 0), found[0].tensor)
        name = layer_name(writer)
        names[channels] = name if name not in names.values() else f"{writer}.{found[0].axis}.{found[0].offset}"
    return names


def _tensor(name: str, value: Value, records: dict[str, LayerRecord], heads: set[str]) -> TensorSpec:
    layer = layer_name(name)
    record = records.get(layer)
    uses = record.uses.get(name, 0) if record else 0
    if not value.trains:
        role = TensorRole.STATISTIC
    elif layer in heads:
        role = TensorRole.HEAD
    elif record and record.kind == "norm":
        role = TensorRole.NORM
    else:
        role = TensorRole.BIAS if len(value.axes) == 1 else TensorRole.WEIGHT
    return TensorSpec(name, value.shape, role, uses, Dtype(value.dtype))


def _layers(
    records: dict[str, LayerRecord], stored: dict[str, Value], names: dict[ChannelFactor, str]
) -> Iterator[Layer]:
    owned: dict[str, list[str]] = {name: [] for name in records}
    for tensor in stored:
        owned.setdefault(layer_name(tensor), []).append(tensor)
    for name, tensors in owned.items():
        record = records.get(name)
        if record is None:  # never used in the forward pass
            yield Layer(name, "unused", name, tuple(tensors))
            continue
        activations = _terms(record.output.axes, names)
        products = tuple(
            Term(count * term.coefficient, term.groups)
            for count, axes in record.products
            for term in _terms(axes, names)
        )
        inputs = tuple(layer for layer in record.inputs if layer != INPUT)
        from_input = INPUT in record.inputs
        yield Layer(name, record.kind, name, tuple(tensors), inputs, activations, products, from_input)


def _terms(axes: tuple[Axis, ...], names: dict[ChannelFactor, str]) -> tuple[Term, ...]:
    """Return the number of entries of a sample as a sum of products of widths."""
    total: Terms = [(1, ())]
    for axis in axes:
        total = _multiplied(total, _axis_terms(axis))
    return tuple(Term(count, tuple(names[c] for c in channels)) for count, channels in total)


def _axis_terms(axis: Axis) -> Terms:
    total: Terms = [(1, ())]
    for factor in resolve(axis):
        match factor:
            case ConstantFactor():
                terms: Terms = [(factor.size, ())]
            case BatchFactor():
                terms = [(1, ())]
            case ChannelFactor():
                terms = [(1, (factor,))]
            case ConcatFactor():
                terms = [term for part in factor.parts for term in _axis_terms(part)]
        total = _multiplied(total, terms)
    return total


def _multiplied(left: Terms, right: Terms) -> Terms:
    return [(a * b, (*c, *d)) for (a, c), (b, d) in itertools.product(left, right)]


def _in_blocks(layers: tuple[Layer, ...], block_of: Callable[[str], str] | None) -> tuple[Layer, ...]:
    """Give every layer its block; a block that another one interrupts is numbered."""
    chosen = block_of or (lambda name: name.partition(".")[0])
    result: list[Layer] = []
    seen: dict[str, int] = {}
    previous = ""
    for layer in layers:
        block = chosen(layer.name)
        if block != previous:
            seen[block] = seen.get(block, 0) + 1
            previous = block
        label = block if seen[block] == 1 else f"{block} ({seen[block]})"
        result.append(replace(layer, block=label))
    return tuple(result)

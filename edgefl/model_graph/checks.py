"""Consistency checks of a model graph, called only by `ModelGraph`."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from edgefl.errors import MaskError
from edgefl.model_graph.elements import MAX_STACKS, ChannelGroup, Layer, Span, TensorSpec

__all__ = ["check_groups", "check_layers", "check_tensors"]


def check_tensors(model: str, tensors: Sequence[TensorSpec], layers: Sequence[Layer]) -> None:
    """Check that every tensor is described once and belongs to one layer."""
    _refuse_twins("tensor", (tensor.name for tensor in tensors))
    owned = [name for layer in layers for name in layer.tensors]
    _refuse_twins("tensor among the layers", owned)
    missing = {tensor.name for tensor in tensors} ^ set(owned)
    if missing:
        raise MaskError(
            f"model {model!r}: tensor {min(missing)!r} is not both described and owned by a layer",
            fix="List every tensor once in `tensors` and once in the layer it belongs to.",
        )


def check_layers(layers: Sequence[Layer], groups: Sequence[ChannelGroup]) -> None:
    """Check that layers are in the order of the forward pass, block by block, and name existing groups."""
    _refuse_twins("layer", (layer.name for layer in layers))
    known = {group.name for group in groups}
    before: set[str] = set()
    closed: set[str] = set()
    current = ""
    for layer in layers:
        if layer.block != current:
            closed.add(current)
            current = layer.block
        if current in closed:
            raise MaskError(
                f"block {current!r} continues at layer {layer.name!r} after another block began",
                fix="Put the layers of a block next to each other.",
            )
        if not before.issuperset(layer.inputs):
            raise MaskError(
                f"layer {layer.name!r} reads {sorted(set(layer.inputs) - before)}, which do not come before it",
                fix="List layers in the order of the forward pass.",
            )
        named = {group for term in (*layer.activations, *layer.products) for group in term.groups}
        if not named <= known:
            raise MaskError(
                f"layer {layer.name!r} refers to the unknown channel group {min(named - known)!r}",
                fix="Name groups of this model.",
            )
        before.add(layer.name)


def check_groups(tensors: Mapping[str, TensorSpec], groups: Sequence[ChannelGroup]) -> None:
    """Check that groups lie on existing axes, and that no two of them claim the same indices."""
    _refuse_twins("channel group", (group.name for group in groups))
    if sum(span.stacks for group in groups for span in group.spans) > MAX_STACKS:
        raise MaskError("the spans of the groups have too many stacks", fix=f"Use at most {MAX_STACKS:,} in all.")
    runs: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for group in groups:
        if group.width % group.multiple_of:
            raise MaskError(
                f"channel group {group.name!r} has {group.width} channels in multiples of {group.multiple_of}",
                fix="Its width must be a multiple of the number of groups of its norm.",
            )
        for span in group.spans:
            _check_span(tensors, group, span)
            starts = (span.offset + stack * span.stride for stack in range(span.stacks))
            taken = runs.setdefault((span.tensor, span.axis), [])
            taken.extend((start, start + group.width * span.repeat) for start in starts)
    for (tensor, axis), taken in runs.items():
        taken.sort()
        if any(end > start for (_, end), (start, _) in itertools.pairwise(taken)):
            raise MaskError(
                f"channels of axis {axis} of tensor {tensor!r} are claimed twice",
                fix="Spans of one axis must not overlap: check offset, repeat, stacks and stride.",
            )


def _check_span(tensors: Mapping[str, TensorSpec], group: ChannelGroup, span: Span) -> None:
    shape = tensors[span.tensor].shape if span.tensor in tensors else ()
    if not 0 <= span.axis < len(shape):
        raise MaskError(
            f"group {group.name!r} names axis {span.axis} of tensor {span.tensor!r}, which does not exist",
            fix="Name an axis of a tensor of this model.",
        )
    if span.last_index(group.width) >= shape[span.axis]:
        raise MaskError(
            f"group {group.name!r} does not fit axis {span.axis} of {span.tensor!r}, which has {shape[span.axis]}",
            fix="Check the group's width and the span's offset, repeat, stacks and stride.",
        )


def _refuse_twins(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen or "#" in name:
            raise MaskError(
                f"the {what} {name!r} is listed twice or has a '#' in its name",
                fix="Give each its own name; '#' is reserved for parts of tensors on the wire.",
            )
        seen.add(name)

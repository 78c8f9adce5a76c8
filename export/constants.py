"""Tensors that a model makes itself: zero states, masks, positions. They depend on no parameter and no sample.

torch computes them while the model is walked, so every operation works on them. What other tensors meet is stored in
the graph with every repeated axis at length 1. How long such an axis really is follows from what it meets: the zeros
that an LSTM starts from were made for the example's batch and full width, and must fit every other.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import fx

from edgefl.errors import ExportError
from export.axes import Axis, BatchFactor, ChannelFactor, bind, resolve
from export.axes import ConstantFactor as ConstantSize
from export.trace import Trace, Value

__all__ = ["Made", "computed", "is_computable", "made_value", "settles", "settles_constants", "whole"]

_Operation = TypeVar("_Operation", bound=Callable[..., Any])
_SETTLING: set[Callable[..., Any]] = set()
_BY_SHAPE = {f"aten.{name}" for name in ["zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"]}


class Made(Value):
    """A constant whose repeated axes have length 1 in the graph; ONNX broadcasts them."""

    __slots__ = ()


def settles(operation: _Operation) -> _Operation:
    """Mark an operation that takes `Made` values as they are; all others get them `whole`."""
    _SETTLING.add(operation)
    return operation


def settles_constants(operation: Callable[..., Any]) -> bool:
    """Tell whether an operation takes `Made` values."""
    return operation in _SETTLING


def is_computable(node: fx.Node, constants: Mapping[fx.Node, Any]) -> bool:
    """Tell whether torch can compute a node now: it sees constants or only the shape of others, and nothing random."""
    random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    by_shape = str(node.target).rpartition(".")[0] in _BY_SHAPE
    return not random and (by_shape or all(source in constants for source in node.all_input_nodes))


def computed(node: fx.Node, constants: Mapping[fx.Node, Any]) -> Any:
    """Compute a node."""

    def given(source: fx.Node) -> Any:
        shown = source.meta["val"]
        return constants[source] if source in constants else torch.zeros(tuple(shown.shape), dtype=shown.dtype)

    args, kwargs = fx.map_arg((node.args, node.kwargs), given)
    assert callable(node.target)
    with torch.no_grad():
        return node.target(*args, **kwargs)


def made_value(t: Trace, tensor: torch.Tensor, dtype: str) -> Value:
    """Store a constant in the graph."""
    batch = t.batch_size
    array = tensor.detach().numpy()
    axes: list[Axis] = []
    for place, size in enumerate(tensor.shape):
        first = array.take([0], place) if size else array
        if size > 1 and bool((array == first).all()):
            array = first
            axes.append((BatchFactor(batch),) if size == batch else (ChannelFactor(size),))
        elif size in (0, batch):
            raise ExportError(
                f"a constant of shape {tuple(tensor.shape)} depends on the number of samples, or is empty",
                fix="Make it the same for every sample: of size 1 along the batch.",
            )
        else:
            axes.append((ConstantSize(size),))
    return Made(t.emit.constant(array, dtype), tuple(axes), dtype)


def whole(t: Trace, value: Any) -> Any:
    """Return a value in its full shape. Axes that met nothing yet are what they were in the example."""
    if not isinstance(value, Made):
        return value
    for axis in value.axes:
        for factor in resolve(axis):
            if isinstance(factor, ChannelFactor) and factor.source is None:
                bind(factor, (ConstantSize(factor.size),))
    if all(size == 1 for size in value.shape):
        return Value(value.name, value.axes, value.dtype)
    name = t.emit.one("Expand", value.name, t.shape(value.axes))
    return Value(name, value.axes, value.dtype)

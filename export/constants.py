"""Constant tensors that a model creates itself: zero states, masks, positions; they depend on no parameter or sample.

torch computes them while the model is traced, so every operation works on them. Those that meet other tensors are
stored in the graph with every repeated axis at length 1. The real length of such an axis follows from what it meets:
the zeros that an LSTM starts from were created for the example's batch and full width, but must fit any other.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import fx

from edgefl.errors import ExportError
from export.axes import Axis, BatchFactor, ChannelFactor, bind, resolve
from export.axes import ConstantFactor as ConstantSize
from export.trace import Trace, Value

__all__ = [
    "BroadcastConstant",
    "computed",
    "is_computable",
    "constant_value",
    "accepts_broadcast",
    "accepts_broadcast_constants",
    "expanded",
]

_Operation = TypeVar("_Operation", bound=Callable[..., Any])
_ACCEPTING: set[Callable[..., Any]] = set()
_BY_SHAPE = {f"aten.{name}" for name in ["zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"]}


class BroadcastConstant(Value):
    """A constant whose repeated axes have length 1 in the graph; ONNX broadcasts them."""

    __slots__ = ()


def accepts_broadcast(operation: _Operation) -> _Operation:
    """Mark an operation that takes `BroadcastConstant` values as they are; all others get them `expanded`."""
    _ACCEPTING.add(operation)
    return operation


def accepts_broadcast_constants(operation: Callable[..., Any]) -> bool:
    """Return whether an operation takes `BroadcastConstant` values."""
    return operation in _ACCEPTING


def is_computable(node: fx.Node, constants: Mapping[fx.Node, Any]) -> bool:
    """Return whether torch can compute a node now: from constants or shapes alone, with nothing random."""
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


def constant_value(t: Trace, tensor: torch.Tensor, dtype: str) -> Value:
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
                fix="Make it the same for every sample: size 1 along the batch.",
            )
        else:
            axes.append((ConstantSize(size),))
    return BroadcastConstant(t.emit.constant(array, dtype), tuple(axes), dtype)


def expanded(t: Trace, value: Any) -> Any:
    """Return a value in its full shape. Axes that have met nothing yet keep their length in the example."""
    if not isinstance(value, BroadcastConstant):
        return value
    for axis in value.axes:
        for factor in resolve(axis):
            if isinstance(factor, ChannelFactor) and factor.source is None:
                bind(factor, (ConstantSize(factor.size),))
    if all(size == 1 for size in value.shape):
        return Value(value.name, value.axes, value.dtype)
    name = t.emit.one("Expand", value.name, t.shape(value.axes))
    return Value(name, value.axes, value.dtype)

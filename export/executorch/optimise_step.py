"""Simplifies a traced step: removes copies that are not needed, and makes the others fast.

ExecuTorch has no views: each permute, slice or expand is a copy, made by a kernel that computes the coordinates of
every element. All tensors of its programs are contiguous, so any such copy can be written as `as_strided_copy` (see
`export.executorch.strided`), or as a free reshape if the order in memory stays the same.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from export.executorch.strided import contiguous_strides

__all__ = ["eliminate_copies"]

aten = torch.ops.aten

LARGE = 2**16
"""Number of entries above which memory matters more than the time of a copy."""

Layout = tuple[list[int], int]
"""The strides and the offset of a view's entries in the tensor that it views."""


def _permuted(shape: Sequence[int], axes: Sequence[int]) -> Layout:
    strides = contiguous_strides(shape)
    return [strides[axis] for axis in axes], 0


def _transposed(shape: Sequence[int], first: int = 0, second: int = 1) -> Layout:
    axes = list(range(len(shape)))
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return _permuted(shape, axes)


def _expanded(shape: Sequence[int], out: Sequence[int]) -> Layout:
    strides = [0 if size == 1 else stride for size, stride in zip(shape, contiguous_strides(shape), strict=True)]
    return [0] * (len(out) - len(shape)) + strides, 0


def _sliced(
    shape: Sequence[int], axis: int = 0, start: int | None = None, _end: int | None = None, step: int = 1
) -> Layout:
    strides = list(contiguous_strides(shape))
    size = shape[axis]
    begin = min(max(start + size if start and start < 0 else start or 0, 0), size)
    offset = begin * strides[axis]
    strides[axis] *= step
    return strides, offset


def _selected(shape: Sequence[int], axis: int, index: int) -> Layout:
    strides = list(contiguous_strides(shape))
    offset = (index % shape[axis]) * strides.pop(axis)
    return strides, offset


def _same(shape: Sequence[int], *_: Any) -> Layout:
    return list(contiguous_strides(shape)), 0


_COPIES: Mapping[Any, Callable[..., Layout]] = {
    aten.t_copy.default: _transposed,
    aten.transpose_copy.int: _transposed,
    aten.permute_copy.default: _permuted,
    aten.expand_copy.default: _expanded,
    aten.slice_copy.Tensor: _sliced,
    aten.select_copy.int: _selected,
}
_RESHAPES = {
    aten.view_copy.default,
    aten.unsqueeze_copy.default,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
}
_NOTHING = {
    aten.alias_copy.default,
    aten.detach.default,
    aten.detach_copy.default,
    aten.clone.default,
    aten.lift_fresh_copy.default,
}


def eliminate_copies(module: fx.GraphModule) -> fx.GraphModule:
    """Simplify a graph that has neither views nor mutations, in place, and return it."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.target in _NOTHING:
            _replace(node, node.args[0])
        elif node.target is aten.copy.default and _alike(node, node.args[1]):  # what is left of `a.copy_(b)`
            _replace(node, node.args[1])
        elif node.target is aten.t_copy.default and node.args[0].target is aten.t_copy.default:
            _replace(node, node.args[0].args[0])
    graph.eliminate_dead_code()
    for node in list(graph.nodes):
        if node.target in _COPIES:
            _copy(graph, node)
    for node in list(graph.nodes):
        if node.target in _RESHAPES:
            _reshape(graph, node)
        elif node.target is aten.as_strided_copy.default:  # it reads memory, whatever its shape
            node.args = (_behind_reshapes(node.args[0]), *node.args[1:])
    _share(graph)
    graph.eliminate_dead_code()
    graph.lint()
    module.recompile()
    return module


def _alike(first: fx.Node, second: fx.Node) -> bool:
    one, other = first.meta["val"], second.meta["val"]
    return bool(one.shape == other.shape and one.dtype == other.dtype)


def _replace(node: fx.Node, by: Any) -> None:
    node.replace_all_uses_with(by)
    node.graph.erase_node(node)


def _copy(graph: fx.Graph, node: fx.Node) -> None:
    """Write a view as one strided copy, or as a reshape if it does not change the order of the entries."""
    source, *arguments = node.args
    assert isinstance(source, fx.Node)  # every view is of a tensor
    before, shape = list(source.meta["val"].shape), list(node.meta["val"].shape)
    strides, offset = _COPIES[node.target](before, *arguments)
    plain = contiguous_strides(shape)
    same = node.meta["val"].numel() == source.meta["val"].numel() and all(
        size == 1 or stride == wanted for stride, wanted, size in zip(strides, plain, shape, strict=True)
    )
    with graph.inserting_before(node):
        if same:
            new = graph.call_function(aten.view_copy.default, (source, shape))
        else:
            new = graph.call_function(aten.as_strided_copy.default, (source, shape, strides, offset))
    new.meta = dict(node.meta)
    _replace(node, new)


def _reshape(graph: fx.Graph, node: fx.Node) -> None:
    """Skip reshapes of reshapes, and drop those that change nothing."""
    source = _behind_reshapes(node.args[0])
    shape = list(node.meta["val"].shape)
    if shape == list(source.meta["val"].shape):
        _replace(node, source)
        return
    with graph.inserting_before(node):
        new = graph.call_function(aten.view_copy.default, (source, shape))
    new.meta = dict(node.meta)
    _replace(node, new)


def _behind_reshapes(node: Any) -> fx.Node:
    while node.target in _RESHAPES:
        node = node.args[0]
    assert isinstance(node, fx.Node)  # only tensors are reshaped
    return node


def _share(graph: fx.Graph) -> None:
    """Compute equal values once, except large copies of smaller tensors: patches are cheaper to recompute than to
    keep."""
    seen: dict[Any, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        size = node.meta["val"].numel() if isinstance(node.meta["val"], torch.Tensor) else 0
        blown_up = size > LARGE and size > max((n.meta["val"].numel() for n in node.all_input_nodes), default=size)
        if blown_up and node.target is aten.as_strided_copy.default:
            continue
        key = (node.target, _frozen(node.args), _frozen(node.kwargs))
        if key in seen:
            _replace(node, seen[key])
        else:
            seen[key] = node


def _frozen(value: Any) -> Any:
    """Return arguments in a hashable form; 1, 1.0 and True differ."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(inner) for inner in value)
    if isinstance(value, dict):
        return tuple((key, _frozen(inner)) for key, inner in sorted(value.items()))
    return type(value), value

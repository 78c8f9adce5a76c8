"""Gather and scatter: cut a submodel out of a model's weights, and put it back.

A submodel is slices of the global weights, so cutting one costs only a few numpy takes. The coordinator gathers before
it sends, and scatters when it aggregates. Arrays in, new arrays out.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.errors import MaskError
from edgefl.masks.mask import IndexArray, Mask, Selector
from edgefl.model_graph import ModelGraph

__all__ = ["Array", "Weights", "add_at", "axis_positions", "check_weights", "gather", "scatter"]

Array = npt.NDArray[Any]
"""A tensor of any dtype."""
Weights = Mapping[str, Array]
"""Tensors by name."""


def gather(mask: Mask, weights: Weights, names: Iterable[str] | None = None) -> dict[str, Array]:
    """Return the submodel's tensors: the kept channels, with zeros where weights are not held.

    `names` selects some tensors, such as `mask.trained_tensors`; the default is all.
    """
    part: dict[str, Array] = {}
    for name in _names(mask, names):
        whole = _checked(weights, name, mask.graph.tensor[name].shape, "the model")
        part[name] = _take(whole, mask.selectors[name])
        if name in mask.held:
            part[name][~mask.held[name]] = 0
    return part


def scatter(mask: Mask, part: Weights, base: Weights) -> dict[str, Array]:
    """Return `base` with the entries that the mask holds replaced by those of `part`; `base` itself is unchanged.

    Tensors that are not in `part` are shared with `base`, so an update of the trained layers alone is cheap.
    """
    names = list(_names(mask, part))
    result = dict(base)
    for name in names:
        shape = mask.graph.tensor[name].shape
        result[name] = np.array(_checked(base, name, shape, "the model"), order="C")
        _assign(mask, name, result[name], _checked(part, name, mask.shapes[name], "the submodel"))
    return result


def add_at(mask: Mask, name: str, whole: Array, part: Array | np.generic) -> None:
    """Add `part` in place to the entries of tensor `name` that the mask holds: one step of a running sum."""
    if isinstance(part, np.ndarray) and part.shape != mask.shapes[name]:
        raise MaskError(
            f"tensor {name!r} has shape {part.shape}, but the submodel needs {mask.shapes[name]}",
            fix="Give the tensor as it was gathered with this mask.",
        )
    whole[mask.index(name)] += np.where(mask.held[name], part, 0) if name in mask.held else part


def axis_positions(mask: Mask, narrower: Mask, tensor: str) -> list[IndexArray | None]:
    """Return which indices of each axis of a tensor of `mask` those of `narrower` are; None if they are all."""
    found: list[IndexArray | None] = []
    for axis, size in enumerate(mask.graph.tensor[tensor].shape):
        if narrower.shapes[tensor][axis] == mask.shapes[tensor][axis]:
            found.append(None)
        else:
            outer, inner = (np.arange(size)[each.selectors[tensor][axis]] for each in (mask, narrower))
            found.append(np.searchsorted(outer, inner))
    return found


def check_weights(graph: ModelGraph, weights: Weights) -> None:
    """Raise unless these are the weights of a model: every tensor, in its shape and dtype, and no other."""
    additional = set(weights) - set(graph.tensor)
    if additional:
        raise MaskError(
            f"model {graph.name!r} has no tensor {min(additional)!r}, but the weights do",
            fix="Give the weights that were exported with this model.",
        )
    for tensor in graph.tensors:
        found = _checked(weights, tensor.name, tensor.shape, "the model").dtype
        if found != tensor.dtype.value:
            raise MaskError(
                f"tensor {tensor.name!r} is of dtype {found}, but the model needs {tensor.dtype.value}",
                fix="Convert it, or export the model again.",
            )


def _assign(mask: Mask, name: str, whole: Array, part: Array) -> None:
    if name in mask.held:
        part = np.where(mask.held[name], part, _take(whole, mask.selectors[name]))
    whole[mask.index(name)] = part


def _take(whole: Array, selectors: tuple[Selector, ...]) -> Array:
    """Return a copy of the outer product of the selectors; slices come first, because they cost nothing."""
    view = whole[tuple(s if isinstance(s, slice) else slice(None) for s in selectors)]
    for axis, selector in enumerate(selectors):
        if isinstance(selector, np.ndarray):
            view = view.take(selector, axis=axis)
    return np.array(view, order="C", copy=None if view.base is None else True)


def _names(mask: Mask, names: Iterable[str] | None) -> Iterable[str]:
    if names is None:
        return mask.graph.tensor
    chosen = list(names)
    unknown = set(chosen) - set(mask.graph.tensor)
    if unknown:
        raise MaskError(f"model {mask.graph.name!r} has no tensor {min(unknown)!r}", fix="Name tensors of the model.")
    return chosen


def _checked(weights: Weights, name: str, shape: tuple[int, ...], owner: str) -> Array:
    if name not in weights:
        raise MaskError(f"tensor {name!r} is missing from the weights", fix=f"Give every tensor of {owner}.")
    if weights[name].shape != shape:
        raise MaskError(
            f"tensor {name!r} has shape {weights[name].shape}, but {owner} needs {shape}",
            fix="Give the weights that this mask was made for.",
        )
    return weights[name]

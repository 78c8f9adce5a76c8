"""Checks of updates with new values: whether one is what the plan asked for, how far it moves, and its arrays.

What a rule sends is said by the rule itself (`LocalRule.sends`). Tensors come from strangers: everything else in this
package relies on `check_values`.
"""

import math
from collections.abc import Collection, Mapping

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules import LocalRule
from edgefl.masks import Array, Mask, Weights, changes, gather
from edgefl.model_graph import TensorRole, TensorSpec
from edgefl.strategies.strategy import ClientUpdate
from edgefl.wire import Dense, Payload, Sparse, check_tensors

__all__ = [
    "LARGEST",
    "base_of",
    "check_mask_kept",
    "check_values",
    "movement",
    "submodel_norm",
    "sum_dtype",
    "values_at",
    "values_of",
]

LARGEST = 1e18
"""No weight of a working network is this large, and sums of such weights still fit 32 bits."""
_PIECE = 1 << 16


def check_values(
    rule: LocalRule, mask: Mask, tensors: Mapping[str, Payload], *, compressed: Collection[str] = ()
) -> None:
    """Refuse tensors that are not what the rule sends of the mask: names, codecs, shapes, dtypes, size.

    A sparse tensor has exactly the entries that the mask holds, unless it is `compressed`.
    """
    check_tensors(tensors, rule.sends(mask))
    for name, payload in tensors.items():
        if isinstance(payload, Sparse) and name not in compressed:
            _check_positions(name, payload, mask)
        if isinstance(payload, Dense | Sparse):
            _check_size(name, payload.array if isinstance(payload, Dense) else payload.values)
        if isinstance(payload, Dense) and _is_variance(mask, name) and bool(np.any(payload.array < 0)):
            raise WireFormatError(
                f"tensor {name!r} holds a negative variance", fix="Send the running statistics as training left them."
            )


def _is_variance(mask: Mask, name: str) -> bool:
    """Return whether a tensor is a norm's running variance: PyTorch names it so, and the exporter keeps its names."""
    tensor = mask.graph.tensor.get(name)
    return tensor is not None and tensor.role is TensorRole.STATISTIC and name.endswith("running_var")


def check_mask_kept(update: ClientUpdate) -> None:
    """Refuse a new mask from a device whose rule changes no mask."""
    found = update.next_mask
    if found is not None and found.digest != update.mask.digest:
        raise WireFormatError(
            f"the result brings the new mask {found.digest}, but the rule {update.rule.name!r} changes no mask",
            fix="Send no mask: the device keeps the mask of the plan.",
        )


def values_of(payload: Payload) -> Array:
    """Return new values at the size of the submodel; what a sparse upload does not hold is zero."""
    if isinstance(payload, Dense):
        return payload.array
    if isinstance(payload, Sparse):
        return payload.to_dense()
    raise TypeError(f"values cannot come as {payload.codec}: check_values was not called")


def values_at(mask: Mask, name: str, payload: Payload) -> Array:
    """Return new values at the size of the submodel that may have come as a row of those that the mask holds."""
    if not isinstance(payload, Dense) or name not in mask.held:
        return values_of(payload)
    whole = np.zeros(mask.shapes[name], payload.array.dtype)
    whole[mask.held[name]] = payload.array
    return whole


def base_of(tensor: TensorSpec, base: Weights, now: Weights) -> Array:
    """Return what the change of a tensor is measured from.

    For weights it is the model that the device was given, so that an old one contributes only what it learned.
    Statistics and counts are averaged as values, which is measuring from the current model: the change of an old
    variance could make the current variance negative.
    """
    as_value = tensor.role is TensorRole.STATISTIC or tensor.dtype.startswith("int")
    return now[tensor.name] if as_value else base[tensor.name]


def sum_dtype(tensor: TensorSpec) -> np.dtype[np.floating]:
    """Return the dtype in which changes of a tensor are summed: 32 bits, or 64 if the entries themselves need them."""
    return np.dtype(np.float64 if tensor.item_bytes > 4 or tensor.dtype.startswith("int") else np.float32)


def movement(update: ClientUpdate) -> float:
    """Return the norm of the change of all floating-point tensors, including running statistics.

    Integers are counts that nothing computes with; after a first round they would be most of the norm.
    """
    total, mask = 0.0, update.mask
    for name in _floating(mask, update.tensors):
        tensor, base = mask.graph.tensor[name], update.base[name]
        unused = np.empty(base.shape, sum_dtype(tensor))  # not written to where that would be a tensor's memory
        for _, change in changes(mask, name, values_of(update.tensors[name]), base, unused):
            total += float(np.vdot(change, change))
    return math.sqrt(total)


def submodel_norm(mask: Mask, weights: Weights) -> float:
    """Return the norm of what `movement` is over: the floating-point tensors that the mask trains."""
    total = 0.0
    for name in _floating(mask, mask.trained_tensors):
        values = gather(mask, weights, [name])[name]
        total += float(np.vdot(values, values))
    return math.sqrt(total)


def _floating(mask: Mask, names: Mapping[str, Payload] | tuple[str, ...]) -> list[str]:
    return [name for name in names if mask.graph.tensor[name].dtype.startswith("float")]


def _check_positions(name: str, payload: Sparse, mask: Mask) -> None:
    if not np.array_equal(payload.indices(), np.flatnonzero(mask.held[name])):
        raise WireFormatError(
            f"tensor {name!r} does not have exactly the entries that the mask of the plan holds",
            fix="Send exactly the entries that the mask holds.",
        )


def _check_size(name: str, values: Array) -> None:
    flat = values.reshape(-1)
    if not np.issubdtype(flat.dtype, np.floating):
        return
    for begin in range(0, flat.size, _PIECE):
        piece = flat[begin : begin + _PIECE]
        if not (float(piece.min()) >= -LARGEST and float(piece.max()) <= LARGEST):
            raise WireFormatError(
                f"tensor {name!r} holds a number beyond {LARGEST:g}",
                fix="Training diverged on the device: lower the learning rate or clip the gradients.",
            )

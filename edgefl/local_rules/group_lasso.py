"""The structured sparsity penalty of Hermes and its gradient.

Li et al., "Hermes", MobiCom 2021, Eq. 2: R(W) is the sum of the L2 norms of every filter and every input channel of
every convolution, and of every row and every column of every linear layer. Indices that one channel occupies together
are one group here, because they are pruned together: the columns that a flattened channel fans out to, the rows of an
LSTM unit's gates. On plain axes this is exactly Eq. 2, including the model's inputs and classes.

Eq. 3 adds lambda R(W) to the loss. The gradient of a norm is w / ||w||, and zero where the norm is zero: a group that
is gone stays gone.
"""

from collections.abc import Iterator

import numpy as np

from edgefl.local_rules.submodel_channels import Magnitude, channel_positions
from edgefl.local_rules.summation import squares_by_bin
from edgefl.masks import Array, Mask, Weights

__all__ = ["group_lasso", "group_lasso_gradient", "penalised"]


def penalised(mask: Mask, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tensors that multiply activations; a lookup table has no filters or rows."""
    return tuple(name for name in names if mask.graph.tensor[name].uses > 0)


def group_lasso(mask: Mask, weights: Weights, names: tuple[str, ...]) -> float:
    """Return R(W) of Eq. 2 over the named tensors."""
    return sum(
        float((norms / members).sum())
        for name in names
        for norms, members in _norms_by_index(mask, name, weights[name])
    )


def group_lasso_gradient(mask: Mask, name: str, array: Array) -> Array:
    """Return the gradient of R(W) for one tensor."""
    factor = np.zeros(array.shape[:2] + (1,) * (array.ndim - 2), np.float32)
    for axis, (norms, _) in enumerate(_norms_by_index(mask, name, array)):
        inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0).astype(np.float32)
        factor += inverse.reshape([-1 if other == axis else 1 for other in range(array.ndim)])
    return array * factor


def _norms_by_index(mask: Mask, name: str, array: Array) -> Iterator[tuple[Magnitude, Magnitude]]:
    """Yield for outputs and inputs, index by index, the norm of its group and the number of indices that share it.

    The axes after these two are positions in a kernel.
    """
    for axis in (0, 1):
        bins, members = np.arange(array.shape[axis]), np.ones(array.shape[axis])
        for group, span in mask.graph.spans_of.get(name, ()):
            if span.axis == axis:
                positions = channel_positions(mask, group, span)
                bins[positions] = positions[:, :1]  # a channel's indices share the bin of the first
                members[positions] = span.per_channel
        totals = np.zeros(bins.size)
        squares_by_bin(array, axis, bins, totals)
        yield np.sqrt(totals[bins]), members

"""What the update of a rule holds: names, codecs, shapes and dtypes, known before anything is trained.

Every rule says it in `LocalRule.sends`, from the forms here. It is the one place to ask: strategies check updates
against it, and the plan tells devices (`edgefl.federation.submodel_document`).
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from edgefl.masks import Mask
from edgefl.wire import Bits, Dense, Expected, Sparse

__all__ = ["bits_and_values", "held_values", "new_values"]


def new_values(mask: Mask, *, sparse: bool = False) -> dict[str, Expected]:
    """Return the forms of the values of everything that the mask trains.

    With `sparse`, a tensor that the mask does not hold whole comes with its held entries only.
    """
    return {
        name: Expected(
            shape=mask.shapes[name],
            codec=Sparse.codec if sparse and name in mask.held else Dense.codec,
            dtype=mask.graph.tensor[name].dtype.value,
        )
        for name in mask.trained_tensors
    }


def held_values(mask: Mask) -> dict[str, Expected]:
    """Return the forms of the values of everything that the mask trains, held entries as rows without positions."""
    counts = {name: int(np.count_nonzero(where)) for name, where in mask.held.items()}
    return {
        name: replace(form, shape=(counts[name],)) if name in counts else form
        for name, form in new_values(mask).items()
    }


def bits_and_values(mask: Mask, masked: Iterable[str]) -> dict[str, Expected]:
    """Return the forms of one bit per entry of the `masked` tensors, and of the values of the other trained ones."""
    return new_values(mask) | {name: Expected(mask.shapes[name], Bits.codec) for name in masked}

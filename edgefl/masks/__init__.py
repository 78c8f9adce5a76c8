"""Masks: which part of a model a device keeps and trains, and how submodels are cut, put back and combined.

mask.py            the value and its digest
checks.py          the rules that a mask must satisfy
constructors.py    simple masks: full, leading channels, random channels, frozen layers
gather_scatter.py  cut a submodel out of the weights, and put it back
block_changes.py   the weight changes of a submodel, block by block
algebra.py         holders, overlap and union of masks
"""

from edgefl.masks.algebra import holders, overlap, union
from edgefl.masks.block_changes import Box, add_changes, boxes, changes
from edgefl.masks.constructors import freeze, full_mask, kept_width, leading_channels, random_channels
from edgefl.masks.gather_scatter import Array, Weights, add_at, axis_positions, check_weights, gather, scatter
from edgefl.masks.mask import BoolArray, IndexArray, Mask

__all__ = [
    "Mask",
    "Array",
    "Weights",
    "BoolArray",
    "IndexArray",
    "gather",
    "scatter",
    "add_at",
    "axis_positions",
    "changes",
    "add_changes",
    "boxes",
    "Box",
    "check_weights",
    "holders",
    "overlap",
    "union",
    "full_mask",
    "leading_channels",
    "random_channels",
    "freeze",
    "kept_width",
]

"""Masks: which part of a model a device has and trains, and how parts are cut, put back and combined.

mask.py      the value and its digest
checks.py    what a mask must obey
slicing.py   gather a submodel, scatter it back
blocks.py    what a submodel changes of the whole model, block by block
algebra.py   holders, overlap and union of many masks
choice.py    the plain ways to choose a mask
"""

from edgefl.masks.algebra import holders, overlap, union
from edgefl.masks.block_changes import Box, add_changes, boxes, changes
from edgefl.masks.constructors import freeze, full_mask, kept_width, leading_channels, random_channels
from edgefl.masks.gather_scatter import Array, Weights, add_at, check_weights, gather, scatter
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

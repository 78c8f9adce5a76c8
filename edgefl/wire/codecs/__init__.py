"""Codecs: how one tensor becomes parts of a body, and back.

checks.py           checks on what a codec reads: shapes, packed bits, finite numbers
dense.py            whole tensors
slices.py           the kept channels of a tensor
sparse.py           single entries and their positions
sparse_indices.py   positions as a bitmap or as index deltas
bits.py             one bit per entry
counts.py           small whole numbers
"""

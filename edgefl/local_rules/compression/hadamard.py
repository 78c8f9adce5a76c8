"""A random rotation that costs n log n: random signs, then the Walsh-Hadamard transform, block by block.

The transform needs a power of two. Padding a tensor up to the next one would nearly double it at worst, so a tensor is
cut into blocks instead: as many of `LARGEST` entries as fit, then one for every binary digit of the rest, and only the
rest below `SMALLEST` is padded. Every block is a rotation of its own.
"""

from collections.abc import Iterator

import numpy as np

from edgefl.local_rules.compression.compressor import FloatArray
from edgefl.noise import bits

__all__ = ["LARGEST", "SMALLEST", "blocks_of", "rotate", "rotate_back", "rotated_size"]

LARGEST = 1 << 13
SMALLEST = 1 << 6


def blocks_of(size: int) -> list[tuple[int, int]]:
    """Return (count, width) of the blocks of a flat array, in order; widths are decreasing powers of two."""
    blocks = [(size // LARGEST, LARGEST)] if size >= LARGEST else []
    left, width = size % LARGEST, LARGEST // 2
    while width >= SMALLEST:
        if left >= width:
            blocks.append((1, width))
            left -= width
        width //= 2
    if left:
        blocks.append((1, 1 << (left - 1).bit_length()))
    return blocks


def rotated_size(size: int) -> int:
    """Return the number of entries after rotation, including padding."""
    return sum(count * width for count, width in blocks_of(size))


def rotate(flat: FloatArray, stream: int) -> FloatArray:
    """Return the array rotated, with its padding."""
    turned = np.zeros(rotated_size(flat.size), np.float32)
    turned[: flat.size] = flat
    turned *= _signs(stream, turned.size)
    for rows in _rows(turned, flat.size):
        _transform(rows)
    return turned


def rotate_back(turned: FloatArray, size: int, stream: int) -> FloatArray:
    """Return the array of `size` entries that `rotate` was given."""
    flat = turned.copy()
    for rows in _rows(flat, size):
        _transform(rows)
    flat *= _signs(stream, flat.size)
    return flat[:size]


def _signs(stream: int, size: int) -> FloatArray:
    """Return random signs: sign i is bit i % 64 of word i // 64 of the stream, set for plus."""
    words = bits(stream, 0, -(-size // 64)).astype("<u8")
    flags = np.unpackbits(words.view(np.uint8), count=size, bitorder="little")
    signs = flags.astype(np.float32)
    signs *= 2
    signs -= 1
    return signs


def _rows(flat: FloatArray, size: int) -> Iterator[FloatArray]:
    begin = 0
    for count, width in blocks_of(size):
        yield flat[begin : begin + count * width].reshape(count, width)
        begin += count * width


def _transform(rows: FloatArray) -> None:
    """Apply the orthonormal Walsh-Hadamard transform to every row, in place. It is its own inverse."""
    count, width = rows.shape
    half = 1
    while half < width:
        pairs = rows.reshape(count, -1, 2, half)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        difference = low - high
        low += high
        high[...] = difference
        half *= 2
    rows *= np.float32(width**-0.5)

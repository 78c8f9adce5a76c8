"""Positions of a sparse tensor's entries: a bitmap or index deltas, whichever is smaller.

`bitmap`  one bit per entry of the whole tensor, packed as in the codec `bits`.
`deltas`  for every entry in ascending order, how many entries were skipped since the one before (for the first:
          its index), as a variable-length number: 7 bits per byte, lowest first, the top bit set on all but the
          last byte, in the fewest bytes that hold it. A gap below 128 is one byte, so deltas win below a density
          of about 1/8.

Used only by the codec `sparse`. Checks work in pieces and never unpack all positions.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from edgefl.wire.body_parts import count_ones
from edgefl.wire.codecs.checks import Packed, check_packed, refuse

__all__ = ["BITMAP", "DELTAS", "check_positions", "encode_positions", "indices_of"]

BITMAP = "bitmap"
DELTAS = "deltas"

Indices = npt.NDArray[np.int64]
_MAX_BYTES = 5
"""Bytes of the longest number: five times seven bits hold any gap in a tensor of up to 2^31 - 1 entries."""


def encode_positions(indices: Indices, size: int) -> tuple[str, Packed]:
    """Encode ascending, distinct indices below `size` in the smaller of the two forms."""
    gaps = np.diff(indices, prepend=-1) - 1
    lengths = np.ones(gaps.size, np.int64)
    for extra in range(1, _MAX_BYTES):
        lengths += gaps >> (7 * extra) > 0
    if int(lengths.sum()) < -(-size // 8):
        return DELTAS, _encode_gaps(gaps, lengths)
    flags = np.zeros(size, np.bool_)
    flags[indices] = True
    return BITMAP, np.packbits(flags, bitorder="little")


def indices_of(form: str, packed: Packed, size: int) -> Indices:
    """Return the ascending indices of valid positions."""
    if form == BITMAP:
        return np.flatnonzero(np.unpackbits(packed, count=size, bitorder="little"))
    blocks = list(_gaps(packed))
    gaps = np.concatenate(blocks) if blocks else np.empty(0, np.int64)
    return np.cumsum(gaps + 1) - 1


def check_positions(name: str, form: str, packed: Packed, size: int, count: int) -> None:
    """Check that positions are `count` ascending indices below `size`, in canonical form."""
    if form == BITMAP:
        check_packed(name, packed, size)
        found = count_ones(packed)
    else:
        found = _checked_deltas(name, packed, size)
    if found != count:
        raise refuse(name, f"it has {found} positions for {count} values")


def _checked_deltas(name: str, packed: Packed, size: int) -> int:
    if packed.size and packed[-1] & 0x80:
        raise refuse(name, "its last index is cut off")
    count = reached = 0
    for gaps in _gaps(packed):
        if gaps.min() < 0:
            raise refuse(name, "an index is not in its shortest form")
        count += gaps.size
        reached += int(gaps.sum()) + gaps.size
        if reached > size:
            raise refuse(name, f"an index lies beyond its {size} entries")
    return count


def _encode_gaps(gaps: Indices, lengths: Indices) -> Packed:
    ends = np.cumsum(lengths)
    packed = np.zeros(int(ends[-1]) if ends.size else 0, np.uint8)
    for byte in range(_MAX_BYTES):
        here = lengths > byte
        more = np.where(lengths[here] > byte + 1, 0x80, 0)
        packed[(ends - lengths)[here] + byte] = (gaps[here] >> (7 * byte) & 0x7F) | more
    return packed


def _gaps(packed: Packed) -> Iterator[Indices]:
    """Yield the numbers of a packed sequence in blocks; -1 marks one that is not in its shortest form."""
    step = min(max(packed.size // 32, 512), 1 << 16)
    begin = 0
    while begin < packed.size:
        block = packed[begin : begin + step + _MAX_BYTES]
        last = np.flatnonzero(block < 0x80)
        if not last.size:
            yield np.array([-1])
            return
        if last.size > 1 and begin + block.size < packed.size:
            last = last[last < step] if (last < step).any() else last[:1]
        yield _decode_block(block, last)
        begin += int(last[-1]) + 1


def _decode_block(block: Packed, last: Indices) -> Indices:
    first = np.concatenate([[0], last[:-1] + 1])
    lengths = last - first + 1
    gaps = np.zeros(last.size, np.int64)
    for byte in range(min(int(lengths.max()), _MAX_BYTES)):
        here = lengths > byte
        gaps[here] |= (block[first[here] + byte].astype(np.int64) & 0x7F) << (7 * byte)
    overlong = (lengths > _MAX_BYTES) | ((lengths > 1) & (block[last] == 0))
    gaps[overlong] = -1
    return gaps

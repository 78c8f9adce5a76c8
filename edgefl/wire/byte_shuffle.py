"""Lossless compression of bodies: bytes grouped by their position in 4-byte words, then gzip.

Of trained 32-bit floats, the byte with sign and exponent compresses to a third, and the other three do not compress at
all. Interleaved, they hide this from gzip; grouped, each gets a code of its own.

`group` turns a body of n bytes, of which h are not data (8, plus the length that these 8 encode; at most n), into n
other bytes:

    h bytes         unchanged
    4 x w bytes     of all words, w = (n - h) // 4 of them, the first bytes, then the second, the third, the fourth
    0 to 3 bytes    the rest, unchanged

Any bytes can be grouped and ungrouped, whatever their dtypes. In HTTP this is the content coding `edgefl-planes`, sent
with gzip around it: `Content-Encoding: edgefl-planes, gzip`. `pack` writes one gzip member whose blocks end where
planes do; any other gzip of grouped bytes is equivalent. `unpack` accepts at most `MOST_BYTES`, so larger bodies are
not packed.

The device's agent and the coordinator use this. It is independent of the content of a body.
"""

import struct
import zlib

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.wire.envelope import header_bytes

__all__ = ["CODING", "CODINGS", "MOST_BYTES", "codings_in", "group", "pack", "ungroup", "unpack"]

CODING = "edgefl-planes"
"""The HTTP content coding of `group`."""
CODINGS = f"{CODING}, gzip"
"""The HTTP content codings of `pack`, as in headers."""
MOST_BYTES = 4 * 2**20
"""Largest packed body: a larger one would take a small device seconds, and must be complete to be unpacked."""

_WORD = 4
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_SAMPLE = 4096
_NOISE = 0.98
_PACK_AGAIN = "Pack it again, or send it uncompressed."


def codings_in(text: str) -> list[str]:
    """Return the codings in a header, in order, without those that change nothing."""
    codings = (coding.strip().lower() for coding in text.split(","))
    return ["gzip" if coding == "x-gzip" else coding for coding in codings if coding not in ("", "identity")]


def group(body: bytes) -> bytes:
    """Return the bytes of a body grouped by their position in its words."""
    start, end = _words(body)
    words = np.frombuffer(body, np.uint8, end - start, start).reshape(-1, _WORD)
    return b"".join((body[:start], words.T.tobytes(), body[end:]))


def ungroup(grouped: bytes) -> bytes:
    """Return the body of grouped bytes."""
    start, end = _words(grouped)
    planes = np.frombuffer(grouped, np.uint8, end - start, start).reshape(_WORD, -1)
    return b"".join((grouped[:start], planes.T.tobytes(), grouped[end:]))


def pack(body: bytes) -> bytes:
    """Return a body grouped and compressed with gzip, deterministically."""
    start, end = _words(body)
    grouped = group(body)
    view, plane = memoryview(grouped), (end - start) // _WORD
    blocks = [_deflated(view[:start], 6, zlib.Z_DEFAULT_STRATEGY)]  # text with repetitions
    if plane:
        blocks += [_packed_plane(view[begin : begin + plane]) for begin in range(start, end, plane)]
    last = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    sums = struct.pack("<II", zlib.crc32(grouped), len(grouped) & 0xFFFFFFFF)
    return b"".join((_HEAD, *blocks, last.compress(view[end:]), last.flush(), sums))


def unpack(packed: bytes, most: int = MOST_BYTES) -> bytes:
    """Return the packed body; raise as soon as it exceeds `most` bytes."""
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        grouped = inflater.decompress(packed, most + 1)
    except zlib.error as error:
        raise WireFormatError(f"the body is not valid gzip ({error})", fix=_PACK_AGAIN) from None
    if len(grouped) > most:
        raise WireFormatError(f"the body unpacks to more than {most:,} bytes", fix="Send it uncompressed.")
    if not inflater.eof or inflater.unused_data:
        raise WireFormatError("the gzip body is truncated, or followed by other data", fix=_PACK_AGAIN)
    return ungroup(grouped)


def _words(body: bytes) -> tuple[int, int]:
    """Return the start and end of the words of a body."""
    start = min(len(body), header_bytes(body))
    return start, len(body) - (len(body) - start) % _WORD


def _packed_plane(plane: memoryview) -> bytes:
    """Compress a plane with Huffman codes only: it has no repeated sequences. A plane of noise, recognised by a sample,
    is stored."""
    level = 1
    if len(plane) > 4 * _SAMPLE:
        sample = bytes(plane[:: len(plane) // _SAMPLE])
        level = 0 if len(_deflated(sample, 1, zlib.Z_HUFFMAN_ONLY)) > _NOISE * len(sample) else 1
    return _deflated(plane, level, zlib.Z_HUFFMAN_ONLY)


def _deflated(piece: bytes | memoryview, level: int, strategy: int) -> bytes:
    """Return deflate blocks that end at a byte boundary, so that others can follow."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
    return packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)

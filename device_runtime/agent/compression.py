"""How bodies are packed on their way: what the agent sends, and what it unpacks of what it gets.

Used by the HTTP transport alone. A reply is a stranger's: nothing is unpacked to more than `planes.MOST_BYTES`.
"""

import zlib
from collections.abc import Iterable, Iterator

from edgefl.errors import WireFormatError
from edgefl.wire import byte_shuffle

__all__ = ["packed", "takes_planes", "unpacked"]

_SMALL = 64 * 1024
_PACKED_FRACTION = 0.9
_PIECE = 256 * 1024
_GZIP = zlib.MAX_WBITS | 16
_AGAIN = "Ask again."


def packed(body: bytes, *, by_planes: bool = False) -> tuple[bytes, str]:
    """Return a body packed where that saves something worth having, and its content coding; else as it is, and ''.

    Bits of masked noise are fewer ones than zeros, and no sequence of them comes twice: short codes for frequent bytes
    alone are faster and smaller there than a search for repetitions. In a small body the header counts, which is text.
    Floats are packed by planes, for who takes that; where bytes do not differ by their place, it does no harm.
    """
    if len(body) > byte_shuffle.MOST_BYTES:
        return body, ""
    is_small = len(body) <= _SMALL
    tried = [(byte_shuffle.pack(body), byte_shuffle.CODINGS)] if by_planes else []
    if is_small or not by_planes:
        tried.append((_gzip(body, zlib.Z_HUFFMAN_ONLY), "gzip"))
    if is_small:
        tried.append((_gzip(body, zlib.Z_DEFAULT_STRATEGY), "gzip"))
    smallest = min(tried, key=lambda one: len(one[0]))
    return smallest if len(smallest[0]) <= _PACKED_FRACTION * len(body) else (body, "")


def takes_planes(codings: str | None) -> bool:
    """Whether the codings of an Accept-Encoding header are those of `planes.pack`, and perhaps others."""
    return set(byte_shuffle.codings_in(codings or "")) >= set(byte_shuffle.codings_in(byte_shuffle.CODINGS))


def unpacked(pieces: Iterable[bytes], coding: str | None) -> Iterator[bytes]:
    """Give the pieces of a reply as they were before they were packed; by planes, all at the end. A `WireFormatError`
    says that they cannot be unpacked, or that they are packed as nobody asked for."""
    codings = byte_shuffle.codings_in(coding or "")
    if not codings:
        return iter(pieces)
    if codings == ["gzip"]:
        return _inflated(pieces)
    if codings == byte_shuffle.codings_in(byte_shuffle.CODINGS):
        return _ungrouped(pieces)
    raise WireFormatError(f"the reply is packed with {coding!r}", fix="Send it as it is, or packed with gzip.")


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    inflater, size = zlib.decompressobj(wbits=_GZIP), 0
    for piece in pieces:
        rest, inflated = piece, b""
        while rest or len(inflated) == _PIECE:  # a full one may leave something inside of zlib
            try:
                inflated = inflater.decompress(rest, _PIECE)
            except zlib.error as error:
                raise WireFormatError(f"the reply is no sound gzip ({error})", fix=_AGAIN) from None
            if inflater.unused_data:
                raise WireFormatError("something follows the end of a packed reply", fix=_AGAIN)
            rest, size = inflater.unconsumed_tail, size + len(inflated)
            if size > byte_shuffle.MOST_BYTES:
                raise WireFormatError(f"a packed reply has more than {byte_shuffle.MOST_BYTES:,} bytes", fix=_AGAIN)
            if inflated:
                yield inflated
    if not inflater.eof:
        raise WireFormatError("a packed reply is cut short", fix=_AGAIN)


def _ungrouped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    arrived = bytearray()
    for piece in pieces:
        arrived += piece
        if len(arrived) > byte_shuffle.MOST_BYTES:
            raise WireFormatError(f"a packed reply has more than {byte_shuffle.MOST_BYTES:,} bytes", fix=_AGAIN)
    yield byte_shuffle.unpack(bytes(arrived))


def _gzip(body: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP, zlib.DEF_MEM_LEVEL, strategy)  # with gzip's head, and no time
    return packer.compress(body) + packer.flush()

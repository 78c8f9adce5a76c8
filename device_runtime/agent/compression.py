"""Compression of bodies on the network: what the agent sends, and what it receives.

Only the HTTP transport uses it. Replies are not trusted: nothing is decompressed to more than
`byte_shuffle.MOST_BYTES`.
"""

import zlib
from collections.abc import Iterable, Iterator

from edgefl.errors import WireFormatError
from edgefl.wire import byte_shuffle

__all__ = ["compressed", "accepts_byte_shuffle", "decompressed"]

_SMALL = 64 * 1024
_WORTHWHILE_FRACTION = 0.9
_PIECE = 256 * 1024
_GZIP = zlib.MAX_WBITS | 16
_AGAIN = "Ask again."


def compressed(body: bytes, *, byte_shuffled: bool = False) -> tuple[bytes, str]:
    """Return a body compressed if that saves enough, and its content coding; else the body itself, and ''.

    Bits of masked noise have fewer ones than zeros, and no sequence of them repeats: Huffman coding alone is faster and
    smaller there than a search for repetitions. In a small body the header counts, which is text. Floats are
    byte-shuffled for a coordinator that accepts that; it does no harm to other data.
    """
    if len(body) > byte_shuffle.MOST_BYTES:
        return body, ""
    is_small = len(body) <= _SMALL
    tried = [(byte_shuffle.pack(body), byte_shuffle.CODINGS)] if byte_shuffled else []
    if is_small or not byte_shuffled:
        tried.append((_gzip(body, zlib.Z_HUFFMAN_ONLY), "gzip"))
    if is_small:
        tried.append((_gzip(body, zlib.Z_DEFAULT_STRATEGY), "gzip"))
    smallest = min(tried, key=lambda one: len(one[0]))
    return smallest if len(smallest[0]) <= _WORTHWHILE_FRACTION * len(body) else (body, "")


def accepts_byte_shuffle(codings: str | None) -> bool:
    """Return whether an Accept-Encoding header includes the codings of `byte_shuffle.pack`."""
    return set(byte_shuffle.codings_in(codings or "")) >= set(byte_shuffle.codings_in(byte_shuffle.CODINGS))


def decompressed(pieces: Iterable[bytes], coding: str | None) -> Iterator[bytes]:
    """Yield the pieces of a reply decompressed; byte-shuffled ones all at the end.

    Raise `WireFormatError` if they cannot be decompressed, or use a coding that was not requested.
    """
    codings = byte_shuffle.codings_in(coding or "")
    if not codings:
        return iter(pieces)
    if codings == ["gzip"]:
        return _gunzipped(pieces)
    if codings == byte_shuffle.codings_in(byte_shuffle.CODINGS):
        return _unshuffled(pieces)
    raise WireFormatError(f"the reply is compressed with {coding!r}", fix="Send it uncompressed, or with gzip.")


def _gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    inflater, size = zlib.decompressobj(wbits=_GZIP), 0
    for piece in pieces:
        rest, inflated = piece, b""
        while rest or len(inflated) == _PIECE:  # a full piece may leave output inside zlib
            try:
                inflated = inflater.decompress(rest, _PIECE)
            except zlib.error as error:
                raise WireFormatError(f"the reply is not valid gzip ({error})", fix=_AGAIN) from None
            if inflater.unused_data:
                raise WireFormatError("there is data after the end of a compressed reply", fix=_AGAIN)
            rest, size = inflater.unconsumed_tail, size + len(inflated)
            if size > byte_shuffle.MOST_BYTES:
                raise WireFormatError(f"a compressed reply has more than {byte_shuffle.MOST_BYTES:,} bytes", fix=_AGAIN)
            if inflated:
                yield inflated
    if not inflater.eof:
        raise WireFormatError("a compressed reply is truncated", fix=_AGAIN)


def _unshuffled(pieces: Iterable[bytes]) -> Iterator[bytes]:
    arrived = bytearray()
    for piece in pieces:
        arrived += piece
        if len(arrived) > byte_shuffle.MOST_BYTES:
            raise WireFormatError(f"a compressed reply has more than {byte_shuffle.MOST_BYTES:,} bytes", fix=_AGAIN)
    yield byte_shuffle.unpack(bytes(arrived))


def _gzip(body: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP, zlib.DEF_MEM_LEVEL, strategy)  # no timestamp
    return packer.compress(body) + packer.flush()

"""Counter-based random numbers: the same bits in Python, in Java and on every processor.

FedMRN sends a seed and one bit per weight instead of the weights, so both ends must generate the same noise, bit for
bit. A counter-based generator has no state: number `index` of stream `seed` is a pure function of the two, so any part
of a stream can be generated anywhere, in any order. Local rules and the coordinator call this; it knows nothing of
models or masks.

Specification (sufficient to reimplement it, and the same as in docs/wire.md; `tests/golden/noise.json` holds values to
check against)

All arithmetic is on unsigned 64-bit integers and wraps around. `>>>` is a logical shift to the right.

    finalise(z):   z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9
                   z = (z ^ (z >>> 27)) * 0x94D049BB133111EB
                   return z ^ (z >>> 31)                          (the finaliser of SplitMix64)

    bits(seed, index)      = finalise(seed + (index + 1) * 0x9E3779B97F4A7C15)        index = 0, 1, 2, ...
    unit(seed, index)      = float32(bits >>> 40) * 2^-24                             in [0, 1)
    symmetric(seed, index) = (float32(bits >>> 40) - 2^23) * 2^-23 * float32(a)       in [-a, a)

`bits >>> 40` are the top 24 bits. A float32 holds every integer up to 2^24 and every multiple of 2^-24 below 1 exactly,
so `unit` never rounds, and `symmetric` rounds once, in its last product (to nearest, ties to even: IEEE 754). That
product stays below a, because a * 2^-23 is at least one unit in the last place of a. `a` must be a finite normal
float32 above zero.

    derive(seed, part, ...)   a new seed for a named purpose: for every part in turn
                                  seed = bits(seed, word)
                              where word is the part itself if it is an integer from 0 to 2^64 - 1, and if it is a
                              text, the first 8 bytes of the SHA-256 of its UTF-8 form, read as little-endian.
"""

import hashlib
import operator
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from edgefl.errors import SchemaError

__all__ = ["bits", "bits_at", "derive", "symmetric", "unit"]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)
_WORD = 1 << 64
# The number of words per block: a block and its scratch space fit a small processor's cache.
_BLOCK = 1 << 14


def bits(seed: int, start: int, count: int) -> npt.NDArray[np.uint64]:
    """Return `count` consecutive 64-bit words of the stream `seed`, from index `start` on."""
    out = np.empty(_checked_count(count), np.uint64)
    for begin, words in _blocks(seed, start, count):
        out[begin : begin + words.size] = words
    return out


def bits_at(seed: int, indices: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Return the 64-bit words of the stream `seed` at the given indices, in the shape of `indices`."""
    if indices.size and int(indices.min()) < 0:
        raise SchemaError(f"a noise index is {int(indices.min())}", fix="Indices count from 0.")
    words = np.array(indices, np.uint64)  # always an array: a scalar could not be changed in place
    _finalise(words, _checked_word(seed, "seed"))
    return words


def unit(seed: int, start: int, count: int) -> npt.NDArray[np.float32]:
    """Return `count` numbers in [0, 1) from index `start` of the stream `seed` on."""
    out = np.empty(_checked_count(count), np.float32)
    for begin, words in _blocks(seed, start, count):
        np.multiply(_top_24_bits(words), np.float32(2**-24), out=out[begin : begin + words.size])
    return out


def symmetric(seed: int, start: int, count: int, bound: float) -> npt.NDArray[np.float32]:
    """Return `count` numbers in [-bound, bound) from index `start` of the stream `seed` on."""
    scale = _checked_bound(bound)
    out = np.empty(_checked_count(count), np.float32)
    for begin, words in _blocks(seed, start, count):
        centred = (_top_24_bits(words) - np.float32(2**23)) * np.float32(2**-23)
        np.multiply(centred, scale, out=out[begin : begin + words.size])
    return out


def derive(seed: int, *parts: int | str) -> int:
    """Return the seed of a stream named by `parts`, such as `derive(seed, round, device_id, tensor_name)`."""
    for part in parts:
        if isinstance(part, str):
            word = int.from_bytes(hashlib.sha256(part.encode()).digest()[:8], "little")
        else:
            word = _checked_word(part, "part of a seed")
        seed = _one(_checked_word(seed, "seed"), word)
    return _checked_word(seed, "seed")


def _blocks(seed: int, start: int, count: int) -> Iterator[tuple[int, npt.NDArray[np.uint64]]]:
    """Yield (position, words) block by block; the words are overwritten by the next block."""
    seed, start = _checked_word(seed, "seed"), _checked_word(start, "index")
    counters = np.arange(min(count, _BLOCK), dtype=np.uint64)
    for begin in range(0, count, _BLOCK):
        words = counters[: count - begin] + np.uint64((start + begin) % _WORD)
        _finalise(words, seed)
        yield begin, words


def _finalise(words: npt.NDArray[np.uint64], seed: int) -> None:
    """Turn indices into the words of a stream, in place."""
    words += np.uint64(1)
    words *= _GAMMA
    words += np.uint64(seed)
    words ^= words >> np.uint64(30)
    words *= _FIRST_MULTIPLIER
    words ^= words >> np.uint64(27)
    words *= _SECOND_MULTIPLIER
    words ^= words >> np.uint64(31)


def _one(seed: int, index: int) -> int:
    """Return one word of a stream. Training needs a seed every step, and an array of one is fifty times slower."""
    z = (seed + (index + 1) * int(_GAMMA)) % _WORD
    z = (z ^ (z >> 30)) * int(_FIRST_MULTIPLIER) % _WORD
    z = (z ^ (z >> 27)) * int(_SECOND_MULTIPLIER) % _WORD
    return z ^ (z >> 31)


def _top_24_bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    return (words >> np.uint64(40)).astype(np.float32)


def _checked_word(value: int, what: str) -> int:
    try:
        word = operator.index(value)  # a plain integer from any kind of integer; 1.7 is refused
    except TypeError:
        raise SchemaError(f"a {what} is {value!r}", fix="It must be a whole number.") from None
    if not 0 <= word < _WORD:
        raise SchemaError(f"a {what} is {word}", fix="It must be from 0 to 2^64 - 1.")
    return word


def _checked_count(count: int) -> int:
    if count < 0:
        raise SchemaError(f"{count} random numbers were requested", fix="Request 0 or more.")
    return count


def _checked_bound(bound: float) -> np.float32:
    limits = np.finfo(np.float32)
    if not float(limits.tiny) <= bound <= float(limits.max):
        raise SchemaError(f"the bound of the noise is {bound}", fix="It must be a normal float32 above zero.")
    return np.float32(bound)

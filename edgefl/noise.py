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
float32 above zero, and for `normal` at most 2^124, because the largest |x| is 6.3.

    normal(seed, index)     = float32(x) * float32(a)              normal numbers of mean 0 and standard deviation a
    rademacher(seed, index) = a if bits >>> 63 is 1, else -a                        as float32

`x` is the quantile of the standard normal distribution at (k + 1/2) * 2^-32, where k = bits >>> 32. It is that of
Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), PPND7, in float64 (with the logarithm written out). Every
operation below is correctly rounded by itself, brackets first and then from left to right: no fused multiply-add, no
library function. So x is the same number on every machine.

    q = (k - 2147483647.5) * 2^-32                                  exact, from -1/2 to 1/2
    if |q| <= 0.425:
        r = 0.180625 - q * q
        x = q * (((A3 * r + A2) * r + A1) * r + A0) / (((B3 * r + B2) * r + B1) * r + 1)
    else:
        1/2 - |q| = m * 2^e,  0.75 <= m < 1.5                       exact
        s = (m - 1) / (m + 1),  z = s * s
        l = (((((2/11 * z + 2/9) * z + 2/7) * z + 2/5) * z + 2/3) * z + 2) * s
        r = sqrt(-(e * 0.6931471805599453 + l)) - 1.6
        x = (((C3 * r + C2) * r + C1) * r + C0) / ((D2 * r + D1) * r + 1), negative if q is

    A0 = 3.3871327179    A1 = 50.434271938    A2 = 159.29113202    A3 = 59.109374720
                         B1 = 17.895169469    B2 = 78.757757664    B3 = 67.187563600
    C0 = 1.4234372777    C1 = 2.7568153900    C2 = 1.3067284816    C3 = 0.17023821103
                         D1 = 0.73700164250   D2 = 0.12021132975

    derive(seed, part, ...)   a new seed for a named purpose: for every part in turn
                                  seed = bits(seed, word)
                              where word is the part itself if it is an integer from 0 to 2^64 - 1, and if it is a
                              text, the first 8 bytes of the SHA-256 of its UTF-8 form, read as little-endian.
"""

import hashlib
import operator
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from edgefl.errors import SchemaError

__all__ = ["bits", "bits_at", "derive", "normal", "rademacher", "symmetric", "unit"]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)
_WORD = 1 << 64
# The number of words per block: a block and its scratch space fit a small processor's cache.
_BLOCK = 1 << 14
_LARGEST_DEVIATION = 2.0**124
# Rational functions of the normal quantile, highest power first: around the median, and in the tails.
_CENTRE = (59.109374720, 159.29113202, 50.434271938, 3.3871327179), (67.187563600, 78.757757664, 17.895169469, 1.0)
_TAIL = (0.17023821103, 1.3067284816, 2.7568153900, 1.4234372777), (0.12021132975, 0.73700164250, 1.0)
_LOGARITHM = (2 / 11, 2 / 9, 2 / 7, 2 / 5, 2 / 3, 2.0)


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


def normal(seed: int, start: int, count: int, deviation: float) -> npt.NDArray[np.float32]:
    """Return `count` normal numbers of mean 0 and this standard deviation, from index `start` of the stream on."""
    scale = _checked_bound(deviation, _LARGEST_DEVIATION)
    out = np.empty(_checked_count(count), np.float32)
    for begin, words in _blocks(seed, start, count):
        centred = ((words >> np.uint64(32)).astype(np.float64) - 2147483647.5) * 2.0**-32
        np.multiply(_normal_quantiles(centred).astype(np.float32), scale, out=out[begin : begin + words.size])
    return out


def rademacher(seed: int, start: int, count: int, size: float) -> npt.NDArray[np.float32]:
    """Return `count` numbers that are `size` or `-size` with equal chances, from index `start` of the stream on."""
    scale = _checked_bound(size)
    out = np.empty(_checked_count(count), np.float32)
    for begin, words in _blocks(seed, start, count):
        out[begin : begin + words.size] = np.where(words >> np.uint64(63), scale, -scale)
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


def _normal_quantiles(centred: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return x for probabilities less 1/2, by the specification.

    Each operation is an array of its own, so that no compiler fuses two of them.
    """
    r = 0.180625 - centred * centred
    x = centred * _polynomial(_CENTRE[0], r) / _polynomial(_CENTRE[1], r)
    tails = np.flatnonzero(np.abs(centred) > 0.425)
    mantissa, exponent = np.frexp(0.5 - np.abs(centred[tails]))
    low = mantissa < 0.75
    mantissa, exponent = np.where(low, mantissa * 2, mantissa), exponent - low
    s = (mantissa - 1) / (mantissa + 1)
    logarithm = exponent * 0.6931471805599453 + _polynomial(_LOGARITHM, s * s) * s
    r = np.sqrt(-logarithm) - 1.6
    x[tails] = np.copysign(_polynomial(_TAIL[0], r) / _polynomial(_TAIL[1], r), centred[tails])
    return x


def _polynomial(coefficients: Sequence[float], x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    total = coefficients[0] * x
    for coefficient in coefficients[1:-1]:
        total += coefficient
        total *= x
    total += coefficients[-1]
    return total


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


def _checked_bound(bound: float, most: float = float(np.finfo(np.float32).max)) -> np.float32:
    if not float(np.finfo(np.float32).tiny) <= bound <= most:
        fix = f"It must be a normal float32 above zero, and at most {most:.3g}."
        raise SchemaError(f"the bound of the noise is {bound}", fix=fix)
    return np.float32(bound)

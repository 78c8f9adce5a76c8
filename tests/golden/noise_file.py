"""noise.json: words, numbers and derived seeds.

The words come from unbounded Python integers and the floats from `struct`, not from `edgefl.noise`, so that the file
checks the vectorised code and not itself.
"""

import hashlib
import json
import math
import struct

__all__ = ["text"]

MASK = 2**64 - 1


def word(seed: int, index: int) -> int:
    """One word of the stream, by the specification."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def float32(value: float) -> float:
    """Round to float32. Every product below is exact in float64 (24 bits times 24 bits), so it rounds once."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def hexadecimal(value: float) -> str:
    """The bits of a float32."""
    return f"{struct.unpack('<I', struct.pack('<f', value))[0]:08x}"


def normal_quantile(k: int) -> float:
    """x of the specification, one operation after the other."""
    q = (k - 2147483647.5) * 2.0**-32
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        above = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179
        below = ((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1
        return q * above / below
    m, e = math.frexp(0.5 - abs(q))
    if m < 0.75:
        m, e = m * 2, e - 1
    s = (m - 1) / (m + 1)
    z = s * s
    logarithm = (((((2 / 11 * z + 2 / 9) * z + 2 / 7) * z + 2 / 5) * z + 2 / 3) * z + 2) * s
    r = math.sqrt(-(e * 0.6931471805599453 + logarithm)) - 1.6
    above = ((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777
    below = (0.12021132975 * r + 0.73700164250) * r + 1
    return math.copysign(above / below, q)


EXTREMES = ((2**64 - 0x9E3779B97F4A7C15, 0), (3_558_559_446_808_474_027, 0))
"""Streams whose first words are 0 and 2^64 - 1: the largest normal numbers."""


def text() -> str:
    """Return the text of noise.json."""
    streams = [(0, 0), (1, 0), (1234567, 0), (MASK, MASK - 3), (0x0123456789ABCDEF, 10**12)]
    symmetric, unit = [], []
    for seed, start in streams:
        tops = [word(seed, (start + i) & MASK) >> 40 for i in range(8)]
        unit.append({"seed": str(seed), "start": str(start), "floats": [hexadecimal(top * 2**-24) for top in tops]})
        for bound in (0.01, 0.005, 1.0):
            floats = [hexadecimal((top - 2**23) * 2**-23 * float32(bound)) for top in tops]
            symmetric.append({"seed": str(seed), "start": str(start), "bound": bound, "floats": floats})
    normal, rademacher = [], []
    for seed, start in (*streams, *EXTREMES):
        words = [word(seed, (start + i) & MASK) for i in range(40)]
        for bound in (0.01, 1.0):
            where = {"seed": str(seed), "start": str(start), "bound": bound}
            numbers = [float32(normal_quantile(one >> 32)) * float32(bound) for one in words]
            normal.append({**where, "floats": [hexadecimal(number) for number in numbers]})
            signs = [float32(bound) if one >> 63 else -float32(bound) for one in words[:8]]
            rademacher.append({**where, "floats": [hexadecimal(number) for number in signs]})
    derived = []
    cases: list[tuple[int, list[int | str]]] = [
        (0, [0]),
        (7, [3, "device-1"]),
        (7, [3, "device-2", "conv1.weight"]),
        (1, ["ü"]),
    ]
    for seed, parts in cases:
        current = seed
        for part in parts:
            as_text = hashlib.sha256(str(part).encode()).digest()[:8]
            current = word(current, part if isinstance(part, int) else int.from_bytes(as_text, "little"))
        derived.append({"seed": str(seed), "parts": parts, "derived": str(current)})
    bits = [
        {"seed": str(seed), "start": str(start), "words": [f"{word(seed, (start + i) & MASK):016x}" for i in range(8)]}
        for seed, start in streams
    ]
    golden = {
        "bits": bits,
        "unit": unit,
        "symmetric": symmetric,
        "derive": derived,
        "normal": normal,
        "rademacher": rademacher,
    }
    return json.dumps(golden, indent=1, ensure_ascii=True) + "\n"

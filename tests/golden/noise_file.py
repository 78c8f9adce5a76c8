"""noise.json: words, numbers and derived seeds.

The words come from unbounded Python integers and the floats from `struct`, not from `edgefl.noise`, so that the file
checks the vectorised code and not itself.
"""

import hashlib
import json
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
    words = [
        {"seed": str(seed), "start": str(start), "words": [f"{word(seed, (start + i) & MASK):016x}" for i in range(8)]}
        for seed, start in streams
    ]
    golden = {"bits": words, "unit": unit, "symmetric": symmetric, "derive": derived}
    return json.dumps(golden, indent=1, ensure_ascii=True) + "\n"

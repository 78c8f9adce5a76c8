"""Checks that codecs make on their input: shapes, packed bits, finite numbers.

They do not copy, so checking a body takes little memory beyond the body itself.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.errors import WireFormatError
from edgefl.model_graph.elements import MAX_AXES, MAX_SIZE
from edgefl.wire.body_parts import Array, BodyParts

__all__ = [
    "Packed",
    "check_finite",
    "check_packed",
    "checked_shape",
    "claim",
    "frozen",
    "refuse",
]

Packed = npt.NDArray[np.uint8]


def refuse(name: str, problem: str) -> WireFormatError:
    """Return the error for a tensor that breaks its codec's rules."""
    return WireFormatError(f"tensor {name!r}: {problem}", fix="The sender's encoder is wrong, or the body is damaged.")


def checked_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape from untrusted JSON as a tuple of valid sizes."""
    if not isinstance(shape, list | tuple) or len(shape) > MAX_AXES:
        raise refuse(name, f"the shape {str(shape)[:80]} is not a list of at most {MAX_AXES} sizes")
    if any(type(size) is not int or not 0 <= size <= MAX_SIZE for size in shape):
        raise refuse(name, f"the shape {str(shape)[:80]} has a size that is not from 0 to {MAX_SIZE}")
    if math.prod(max(size, 1) for size in shape) > MAX_SIZE:
        raise refuse(name, f"the shape {shape} has more than {MAX_SIZE} entries")
    return tuple(shape)


def claim(name: str, part: str, parts: BodyParts, dtype: type[np.generic] | None = None) -> Array:
    """Take a one-dimensional part out of the parts that are still unread."""
    found = parts.pop(part, None)
    if found is None:
        raise refuse(name, f"its part {part!r} is missing")
    if dtype is not None and (found.dtype != dtype or found.ndim != 1):
        raise refuse(name, f"its part {part!r} is {found.dtype} with {found.ndim} axes")
    return found


def check_packed(name: str, packed: Packed, bits: int) -> None:
    """Check that packed bits have the right length and that the bits after the last are zero."""
    if packed.size != -(-bits // 8):
        raise refuse(name, f"{packed.size} bytes do not hold {bits} bits")
    if bits % 8 and int(packed[-1]) >> (bits % 8):
        raise refuse(name, "the bits after the last one are not zero")


def check_finite(name: str, array: Array) -> None:
    """Reject infinities and NaN. The minimum or maximum is not finite if any entry is not, without a copy."""
    if array.dtype.kind == "f" and array.size and not (math.isfinite(array.min()) and math.isfinite(array.max())):
        raise WireFormatError(
            f"tensor {name!r} contains a number that is not finite",
            fix="Training diverged on the sender: lower the learning rate or clip the gradients.",
        )


def frozen(array: Array) -> Array:
    """Return the array itself if nothing can write to it, else a read-only copy in row-major order."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if array.flags.writeable or owner.flags.writeable or not array.flags.c_contiguous:
        array = np.array(array, order="C")
        array.flags.writeable = False
    return array

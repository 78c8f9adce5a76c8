"""The interface of compressors, and what all of them share.

A compressor turns the update of one tensor, that is what training added to it, into wire payloads, and payloads back
into an approximation of the update. Both ends know the seed of the round, the tensor's name and its shape; everything
else is in the payloads. The main payload has the tensor's own name; further payloads, such as a scale, have a name that
begins with it (`payload_name`). Randomness is from `edgefl.noise`, one stream per seed and tensor.

Payloads come from strangers: before they are expanded, their forms are compared with `expected`, and their contents are
checked by `check`.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from edgefl.errors import WireFormatError
from edgefl.masks import Array
from edgefl.wire import Bits, Dense, Expected, Payload, Sparse
from edgefl.wire.codecs.checks import check_finite

__all__ = [
    "Compressor",
    "FloatArray",
    "bits_in",
    "check_scales",
    "checked_update",
    "dense_in",
    "expected_scales",
    "payload_name",
    "scale_payload",
    "sparse_in",
]

FloatArray = npt.NDArray[np.float32]

SCALE = "scale"


class Compressor(Protocol):
    """A way to express an update in fewer bits."""

    name: ClassVar[str]

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Return the payloads of an update, by name."""
        ...

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the forms of the payloads of a tensor, by name."""
        ...

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Raise a `WireFormatError` if payloads of the expected forms hold what `compress` never produces."""
        ...

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Return the update that payloads stand for. `payloads` may include those of other tensors."""
        ...


def payload_name(tensor: str, suffix: str = SCALE) -> str:
    """Return the name of a further payload of a tensor."""
    return f"{tensor}:{suffix}"


def checked_update(tensor: str, update: Array) -> FloatArray:
    """Return an update as a flat float32 array, if it is finite: signs would hide that training diverged."""
    check_finite(tensor, update)
    return np.asarray(update, np.float32).reshape(-1)


def scale_payload(*scales: float) -> Dense:
    """Return scales as a payload."""
    return Dense(np.array(scales, np.float32))


def expected_scales(tensor: str, count: int = 1) -> dict[str, Expected]:
    """Return the form of a tensor's scales."""
    return {payload_name(tensor): Expected((count,), Dense.codec, "float32")}


def check_scales(tensor: str, payloads: Mapping[str, Payload]) -> None:
    """Refuse scales below zero: a scale is a magnitude."""
    payload = payloads.get(payload_name(tensor))
    if isinstance(payload, Dense) and not bool(np.all(payload.array >= 0)):
        raise WireFormatError(
            f"tensor {payload_name(tensor)!r} holds a scale below zero", fix="A scale is a magnitude; signs are bits."
        )


def bits_in(payloads: Mapping[str, Payload], name: str, size: int) -> npt.NDArray[np.bool_]:
    """Return the flags of a payload of `size` bits."""
    payload = payloads.get(name)
    if not isinstance(payload, Bits) or math.prod(payload.shape) != size:
        raise _wrong(name, f"{size} bits", payload)
    return payload.to_bool().reshape(-1)


def dense_in(payloads: Mapping[str, Payload], name: str, size: int, dtype: type[np.generic] = np.float32) -> Array:
    """Return the numbers of a dense payload of `size` entries."""
    payload = payloads.get(name)
    if not isinstance(payload, Dense) or payload.array.shape != (size,) or payload.array.dtype != dtype:
        raise _wrong(name, f"{size} numbers of {np.dtype(dtype)}", payload)
    return payload.array


def sparse_in(payloads: Mapping[str, Payload], name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return the whole tensor of a sparse payload of the given shape."""
    payload = payloads.get(name)
    if not isinstance(payload, Sparse) or payload.shape != shape or payload.values.dtype != np.float32:
        raise _wrong(name, f"sparse numbers of float32 within {shape}", payload)
    return payload.to_dense()


def _wrong(name: str, wanted: str, payload: Any) -> WireFormatError:
    found = "nothing" if payload is None else f"{payload.codec} of shape {payload.shape}"
    return WireFormatError(
        f"tensor {name!r} is {found}, and its compressor needs {wanted}",
        fix="Expand with the compressor and the settings that the update was compressed with.",
    )

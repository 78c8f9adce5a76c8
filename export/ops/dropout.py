"""Dropout with noise from a seed: the graph stays a pure function, and a step can be repeated bit for bit.

A training graph with dropout has one more input, `seed`: a 64-bit scalar whose bits are those of an unsigned seed. It
is declared signed, because some bindings of onnxruntime cannot feed unsigned numbers, and cast inside. The dropouts of
a model are numbered 0, 1, 2, ... in the order of the forward pass, and number k draws from the stream

    edgefl.noise.derive(seed, k)

An entry is kept where `edgefl.noise.unit(stream, index) >= p`, where the index is its position in row-major order, in
the shape that the tensor has when the graph runs: so masks and batch sizes change which entry gets which number.
Dropout2d and Dropout1d draw one number for every channel of every sample. Seeds must differ from step to step.

Arithmetic on uint64 wraps around in ONNX too; onnxruntime has had its kernels since 1.21.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from export.trace import Trace, Value

__all__ = ["OPERATIONS", "SEED", "seed_input"]

SEED = "seed"
"""The input of a training graph from which dropout draws."""

# The constants of edgefl.noise, where their origin is documented.
GAMMA = 0x9E3779B97F4A7C15
FIRST_MULTIPLIER = 0xBF58476D1CE4E5B9
SECOND_MULTIPLIER = 0x94D049BB133111EB


def seed_input(seed: int) -> npt.NDArray[np.int64]:
    """Return an unsigned seed as the graph takes it."""
    return np.array(seed, np.uint64).view(np.int64)


def dropout(t: Trace, x: Value, p: float, train: bool) -> Value:
    """Drop entries with probability p and scale the others by 1 / (1 - p)."""
    if not train or p == 0:
        return x
    return _multiplied(t, x, _kept(t, t.emit.one("Shape", x.name), p))


def feature_dropout(t: Trace, x: Value, p: float, train: bool) -> Value:
    """Drop whole channels of samples with probability p and scale the others by 1 / (1 - p)."""
    if not train or p == 0:
        return x
    kept = _kept(t, t.emit.one("Shape", x.name, start=0, end=2), p)
    places = range(2, len(x.axes))
    return _multiplied(t, x, t.emit.one("Unsqueeze", kept, t.emit.integers(*places)) if places else kept)


def _multiplied(t: Trace, x: Value, factor: str) -> Value:
    out = t.value(t.emit.one("Mul", x.name, factor), x.axes, x)
    t.backward(out, lambda grads: t.add_gradient(x, t.emit.one("Mul", str(grads[0]), factor)))
    return out


def _kept(t: Trace, shape: str, p: float) -> str:
    """Return 1 / (1 - p) where an entry is kept, else 0."""
    t.inputs[SEED] = ("int64", [])
    step = (t.number("dropout") + 1) * GAMMA % 2**64
    seed = t.emit.one("Cast", SEED, to=TensorProto.UINT64)
    stream = _finalised(t, t.emit.one("Add", seed, _word(t, step)))
    count = t.emit.one("ReduceProd", shape, keepdims=0)
    one = t.emit.constant(1, "int64")
    places = t.emit.one("Range", one, t.emit.one("Add", count, one), one)
    steps = t.emit.one("Mul", t.emit.one("Cast", places, to=TensorProto.UINT64), _word(t, GAMMA))
    bits = _finalised(t, t.emit.one("Add", steps, stream))
    # The top 24 bits fit a float32, and so does p times 2^24: nothing is rounded.
    number = t.emit.one("Cast", _shifted(t, bits, 40), to=TensorProto.FLOAT)
    kept = t.emit.one("GreaterOrEqual", number, t.emit.constant(np.float32(p) * np.float32(2**24)))
    factor = t.emit.one(
        "Mul", t.emit.one("Cast", kept, to=TensorProto.FLOAT), t.emit.constant(1 / (1 - p) if p < 1 else 0)
    )
    return t.emit.one("Reshape", factor, shape)


def _finalised(t: Trace, z: str) -> str:
    z = t.emit.one("Mul", _mixed(t, z, 30), _word(t, FIRST_MULTIPLIER))
    z = t.emit.one("Mul", _mixed(t, z, 27), _word(t, SECOND_MULTIPLIER))
    return _mixed(t, z, 31)


def _mixed(t: Trace, z: str, places: int) -> str:
    return t.emit.one("BitwiseXor", z, _shifted(t, z, places))


def _shifted(t: Trace, z: str, places: int) -> str:
    return t.emit.one("BitShift", z, _word(t, places), direction="RIGHT")


def _word(t: Trace, number: int) -> str:
    return t.emit.constant(number, "uint64")


OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.dropout.default": dropout,
    "aten.dropout_.default": dropout,
    "aten.feature_dropout.default": feature_dropout,
    "aten.feature_dropout_.default": feature_dropout,
}

"""Sizes at a mask's widths: what a traced model's axes measure in a submodel."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from export.axes import Axis, BatchFactor, ChannelFactor, ConcatFactor, Factor, resolve
from export.constants import BroadcastConstant
from export.trace import Value

__all__ = ["Sizes"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The shapes of a submodel's tensors and its batch size, from which all others follow."""

    tensors: Mapping[str, Sequence[int]]
    batch: int

    def axis(self, axis: Axis) -> int:
        """Return the size of an axis."""
        return math.prod(self._factor(factor) for factor in resolve(axis))

    def shape(self, value: Value) -> tuple[int, ...]:
        """Return the shape of a value. Axes of a constant that met nothing are left to broadcasting."""
        if isinstance(value, BroadcastConstant):
            return tuple(1 if _is_free(axis) else self.axis(axis) for axis in value.axes)
        return tuple(self.axis(axis) for axis in value.axes)

    def _factor(self, factor: Factor) -> int:
        if isinstance(factor, BatchFactor):
            return self.batch
        if isinstance(factor, ConcatFactor):
            return sum(self.axis(part) for part in factor.parts)
        if isinstance(factor, ChannelFactor) and factor.source is not None:
            tensor, axis, divisor = factor.source
            return self.tensors[tensor][axis] // divisor
        return factor.size


def _is_free(axis: Axis) -> bool:
    return any(isinstance(factor, ChannelFactor) and factor.source is None for factor in resolve(axis))

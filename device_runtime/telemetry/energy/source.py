"""What every source of energy readings has in common.

A source is one file of this folder: it finds its instrument on this machine, or is absent. It says what its joules
cover and how they came about, and measures any number of times: `start` begins one measurement and `stop` ends it.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from edgefl.values import Provenance, Scope

__all__ = ["Label", "Amount", "Measurement", "EnergySource"]


@dataclass(frozen=True, slots=True)
class Label:
    """What an instrument is, what its joules cover, and whether it measures or estimates."""

    source: str
    scope: Scope
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Amount:
    """Energy over a time; with the rate of the samples where it was summed from power."""

    joules: float
    seconds: float
    sample_hertz: float | None = None

    @property
    def watts(self) -> float | None:
        """Mean power, or None for no time at all."""
        return self.joules / self.seconds if self.seconds > 0 else None


class Measurement(Protocol):
    """A measurement under way."""

    def stop(self) -> Amount | None:
        """End it. None if the instrument failed meanwhile: no number is better than a wrong one."""


@runtime_checkable
class EnergySource(Protocol):
    """An instrument for the energy of this machine, or an estimate of it."""

    @property
    def label(self) -> Label:
        """What the joules are."""

    def start(self) -> Measurement:
        """Begin a measurement."""

"""The interface of every source of energy readings.

Each source finds its instrument on this machine, or is absent. It states what its joules cover and how they were
obtained, and can measure any number of times: `start` begins a measurement and `stop` ends it.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from edgefl.values import Provenance, Scope

__all__ = ["SourceLabel", "EnergyAmount", "EnergyMeasurement", "EnergySource"]


@dataclass(frozen=True, slots=True)
class SourceLabel:
    """The name of an instrument, what its joules cover, and whether it measures or estimates."""

    source: str
    scope: Scope
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class EnergyAmount:
    """Energy over a period, with the sampling rate if it was integrated from power."""

    joules: float
    seconds: float
    sample_hertz: float | None = None

    @property
    def watts(self) -> float | None:
        """Mean power, or None for an empty period."""
        return self.joules / self.seconds if self.seconds > 0 else None


class EnergyMeasurement(Protocol):
    """A measurement in progress."""

    def stop(self) -> EnergyAmount | None:
        """End it. Return None if the instrument failed meanwhile: no number is better than a wrong one."""


@runtime_checkable
class EnergySource(Protocol):
    """An instrument for the energy of this machine, or an estimate of it."""

    @property
    def label(self) -> SourceLabel:
        """What the joules are."""

    def start(self) -> EnergyMeasurement:
        """Begin a measurement."""

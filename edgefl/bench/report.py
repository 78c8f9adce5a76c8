"""What a measurement found: rows of figures, what was missing and why, and what to keep in mind about them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from device_runtime.telemetry import device_name, machine, usable_cores

__all__ = ["BenchReport", "busy_note", "load_now", "machine_facts"]

_BUSY = 0.25
"""Of the cores, taken by others, and a measurement should say so."""


@dataclass(frozen=True, slots=True, eq=False)
class BenchReport:
    """One measurement."""

    bench: str
    """Which: the word after `edgefl bench`."""
    setting: Mapping[str, Any]
    """What was measured, and how."""
    rows: Sequence[Mapping[str, Any]]
    missing: Mapping[str, str] = field(default_factory=dict)
    """What could not run, with the reason."""
    notes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return all of it for a program."""
        return {
            "bench": self.bench,
            "machine": machine_facts(),
            "setting": dict(self.setting),
            "rows": [dict(row) for row in self.rows],
            "missing": [{"name": name, "reason": reason} for name, reason in self.missing.items()],
            "notes": list(self.notes),
        }


def machine_facts() -> dict[str, Any]:
    """Return which machine this is."""
    about = machine()
    return {"name": device_name(), "architecture": about.architecture, "system": about.system, "cores": usable_cores()}


def busy_note(load_before: float) -> list[str]:
    """Return a warning if others were at work: the load average from before the measurement is theirs."""
    cores = usable_cores()
    if load_before <= _BUSY * cores:
        return []
    return [f"others were at work here: the load average was {load_before:.1f} on {cores} cores before it began"]


def load_now() -> float:
    """Return the load average of the last minute; 0 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0

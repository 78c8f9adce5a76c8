"""Result of a benchmark: rows of figures, what is missing and why, and notes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from device_runtime.telemetry import device_name, machine, usable_cores

__all__ = ["BenchReport", "busy_note", "load_now", "machine_facts"]

_BUSY = 0.25
"""Fraction of the cores in use by other processes above which a report says so."""


@dataclass(frozen=True, slots=True, eq=False)
class BenchReport:
    """The result of one benchmark."""

    bench: str
    """The benchmark: the word after `edgefl bench`."""
    setting: Mapping[str, Any]
    """What was measured, and how."""
    rows: Sequence[Mapping[str, Any]]
    missing: Mapping[str, str] = field(default_factory=dict)
    """What could not run, with the reason."""
    notes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "bench": self.bench,
            "machine": machine_facts(),
            "setting": dict(self.setting),
            "rows": [dict(row) for row in self.rows],
            "missing": [{"name": name, "reason": reason} for name, reason in self.missing.items()],
            "notes": list(self.notes),
        }


def machine_facts() -> dict[str, Any]:
    """Return a description of this machine."""
    about = machine()
    return {"name": device_name(), "architecture": about.architecture, "system": about.system, "cores": usable_cores()}


def busy_note(load_before: float) -> list[str]:
    """Return a warning if the machine was busy before the measurement."""
    cores = usable_cores()
    if load_before <= _BUSY * cores:
        return []
    return [f"the machine was busy: the load average was {load_before:.1f} on {cores} cores before the measurement"]


def load_now() -> float:
    """Return the load average of the last minute, or 0 if the system does not provide it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0

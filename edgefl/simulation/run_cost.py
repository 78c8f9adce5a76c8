"""What a run has spent so far, and the limits at which it ends: simulated seconds, joules, bytes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from edgefl.simulation.results import RoundResult
from edgefl.values import Bytes, FieldError, Joules, Seconds
from edgefl.values.dataclass_fields import check_fields, field_type_of
from edgefl.values.field_error import shown
from edgefl.values.formatting import format_bytes, format_joules, format_seconds
from edgefl.values.units import UNITS, Dimension

__all__ = ["COSTS", "CostKind", "CostLimits", "RunCost", "costs_of", "limits_from"]


@dataclass(frozen=True, slots=True)
class RunCost:
    """What the rounds of a run have spent."""

    seconds: float = 0.0
    """Simulated, since the start; waiting for devices included."""
    joules: float | None = 0.0
    """Of all devices; None if a round had devices whose class has no power figures."""
    up_bytes: int = 0
    down_bytes: int = 0
    """Graphs not counted."""

    @property
    def total_bytes(self) -> int:
        """Bytes up and down."""
        return self.up_bytes + self.down_bytes

    def after(self, result: RoundResult) -> "RunCost":
        """Return the cost with that of the next round."""
        known = [one.joules for one in result.devices if one.joules is not None]
        joules = None if self.joules is None or len(known) < len(result.devices) else self.joules + sum(known)
        return RunCost(
            result.began_at + result.simulated_seconds,
            joules,
            self.up_bytes + result.up_bytes,
            self.down_bytes + result.down_bytes,
        )


@dataclass(frozen=True, slots=True)
class CostKind:
    """How a cost is written."""

    title: str
    format: Callable[[float | None], str]
    """The amount alone."""
    end: str = ""
    """What tells it from other amounts of the same unit."""

    def text(self, amount: float) -> str:
        """Return an amount that stands by itself, such as '5.1 MiB up'."""
        return f"{self.format(amount)}{self.end}"


COSTS: Mapping[str, CostKind] = {
    "seconds": CostKind("Time", format_seconds),
    "joules": CostKind("Energy", format_joules),
    "up_bytes": CostKind("Up", format_bytes, " up"),
    "down_bytes": CostKind("Down", format_bytes, " down"),
    "total_bytes": CostKind("Both ways", format_bytes, " both ways"),
}
"""By the names of the fields."""


def costs_of(rounds: Iterable[RoundResult]) -> Iterator[RunCost]:
    """Yield what had been spent by the end of each round."""
    cost = RunCost()
    for result in rounds:
        cost = cost.after(result)
        yield cost


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLimits:
    """The amounts at which a run ends: no round opens once one of them is spent. None is no limit."""

    seconds: Seconds | None = None
    joules: Joules | None = None
    up_bytes: Bytes | None = None
    down_bytes: Bytes | None = None
    total_bytes: Bytes | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in COSTS)

    def share(self, cost: RunCost) -> float:
        """Return the largest share of a limit that is spent."""
        return max((spent / limit if limit else 1.0 for _, limit, spent in self._each(cost)), default=0.0)

    def reached(self, cost: RunCost) -> str | None:
        """Return which limit is spent, in words; None while there is something left of each."""
        for name, limit, spent in self._each(cost):
            if spent >= limit:
                return f"{COSTS[name].text(spent)} spent, of {COSTS[name].format(limit)}"
        return None

    def _each(self, cost: RunCost) -> Iterator[tuple[str, float, float]]:
        for one in fields(self):
            limit, spent = getattr(self, one.name), getattr(cost, one.name)
            if limit is not None and spent is not None:
                yield one.name, limit, spent


_LIMIT = re.compile(r"(?P<amount>[-+0-9.eE]+\s*(?P<unit>[^\s0-9]\S*))(?:\s+(?P<way>up|down))?")
_KINDS = {
    (Dimension.TIME, None): ("seconds", Seconds),
    (Dimension.ENERGY, None): ("joules", Joules),
    (Dimension.SIZE, "up"): ("up_bytes", Bytes),
    (Dimension.SIZE, "down"): ("down_bytes", Bytes),
    (Dimension.SIZE, None): ("total_bytes", Bytes),
}


def limits_from(texts: Iterable[str]) -> CostLimits:
    """Return the limits in texts such as '20 s', '500 J', '10 MiB up' and '20 MiB', which is up and down."""
    found: dict[str, Any] = {}
    for text in texts:
        match = _LIMIT.fullmatch(text.strip())
        unit = UNITS.get(match["unit"]) if match else None
        name, kind = _KINDS.get((unit.dimension, match["way"]), ("", None)) if match and unit else ("", None)
        if match is None or kind is None:
            raise FieldError(
                f"must be a time, an energy or an amount of data, got {shown(text)}",
                fix="Write for example '20 s', '500 J', '10 MiB up', '10 MiB down', or '20 MiB' for both ways together",
            )
        if name in found:
            raise FieldError(f"limits the same twice, the second time to {shown(text)}", fix="Give one of them")
        found[name] = field_type_of(kind).read(match["amount"])
        if not found[name]:
            raise FieldError("is nothing, so that no round would open", fix="Give more than 0")
    return CostLimits(**found)

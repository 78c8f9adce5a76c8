"""What many timings of the same thing say: percentiles, a ratio to something else, and how far to believe it.

Shared machines are noisy in bursts, so a ratio is that of medians, and its spread is that of the ratios turn by turn:
both sides of a turn saw the same moment. Pure numbers; nothing here measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CLEAR", "Ratio", "Times", "ratio_of"]

CLEAR = "clear"
FEWEST_FOR_P99 = 100
"""With less, the 99th percentile is a guess between the two slowest turns."""
WIDE = 0.5
"""A ratio whose quartiles lie further apart than this share of it means little."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of the same work, turn by turn, warm-up left out."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Half of the turns were faster."""
        return self.at(0.5)

    @property
    def fastest(self) -> float:
        """The fastest turn: what the work takes when nothing disturbs it."""
        return min(self.seconds)

    def at(self, share: float) -> float:
        """Return the seconds that this share of the turns stayed within, between turns by a straight line."""
        return float(np.quantile(self.seconds, share))

    def figures(self) -> dict[str, float | int | None]:
        """Return the percentiles by name; p99 is None where there were too few turns for it."""
        return {
            "turns": len(self.seconds),
            "min": self.fastest,
            "p50": self.median,
            "p90": self.at(0.9),
            "p99": self.at(0.99) if len(self.seconds) >= FEWEST_FOR_P99 else None,
            "max": max(self.seconds),
        }


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times the seconds of one another took, by medians; and the quartiles of that, turn by turn."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """'clear', or why the ratio should not be quoted."""
        if self.high - self.low > WIDE * self.value:
            return "too noisy to mean much"
        if self.low <= 1 <= self.high:
            return "no difference seen"
        return CLEAR

    def figures(self, against: str) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            "ratio": self.value,
            "low": self.low,
            "high": self.high,
            "against": against,
            "verdict": self.verdict,
        }


def ratio_of(over: Times, under: Times) -> Ratio:
    """Return the seconds of one over those of another that ran in the same turns."""
    paired: Sequence[float] = [a / b for a, b in zip(over.seconds, under.seconds, strict=True)]
    low, high = (float(np.quantile(paired, share)) for share in (0.25, 0.75))
    return Ratio(over.median / under.median, low, high)

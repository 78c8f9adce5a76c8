"""Tables of contenders and figures, and targets met or missed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Target", "judged", "load_average", "table"]

_WIDTH = 14


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio that is to be reached."""

    name: str
    ratio: float
    bound: float
    least: bool = False
    """Whether the ratio must be at least the bound; it must be at most the bound otherwise."""

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.ratio >= self.bound if self.least else self.ratio <= self.bound


def table(figures: Mapping[str, Mapping[str, float]], digits: Mapping[str, int]) -> str:
    """Return a line for every contender; `digits` names the columns, with digits after the point."""
    first = max(map(len, figures))
    lines = ["  ".join([" " * first, *(f"{column:>{_wide(column)}}" for column in digits)])]
    for name, row in figures.items():
        cells = [f"{row[column]:>{_wide(column)},.{places}f}" for column, places in digits.items()]
        lines.append("  ".join([f"{name:<{first}}", *cells]))
    return "\n".join(lines)


def judged(targets: Sequence[Target]) -> str:
    """Return a line for every target."""
    first = max(len(target.name) for target in targets)
    return "\n".join(
        f"{target.name:<{first}}  {target.ratio:8.3f}  {'at least' if target.least else 'at most '} "
        f"{target.bound:.3f}: {'met' if target.met else 'missed'}"
        for target in targets
    )


def load_average() -> str:
    """Return how busy the machine is, for the reader of a table."""
    return "load average " + ", ".join(f"{load:.2f}" for load in os.getloadavg())


def _wide(column: str) -> int:
    return max(_WIDTH, len(column))

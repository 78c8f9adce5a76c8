"""Numbers as people read them in pages and tables; a dash where there is none."""

from collections.abc import Callable
from typing import Any

from edgefl.values.quantities import Quantity
from edgefl.values.units import Dimension
from edgefl.values.words import bytes_in_words, count_in_words, quantity_in_words, seconds_in_words

__all__ = [
    "FIGURES",
    "NONE",
    "change",
    "count",
    "joules",
    "ordinary",
    "plural",
    "rate",
    "seconds",
    "share",
    "size",
    "watts",
]

NONE = "-"
_ENERGY = Quantity(Dimension.ENERGY, "", "")
_POWER = Quantity(Dimension.POWER, "", "")


def share(value: float | None) -> str:
    """'78.0 %'."""
    return NONE if value is None else f"{100 * value:.1f} %"


def seconds(value: float | None) -> str:
    """'2 min 5 s'."""
    return NONE if value is None else seconds_in_words(value)


def joules(value: float | None) -> str:
    """'51.1 J'."""
    return NONE if value is None else quantity_in_words(value, _ENERGY)


def watts(value: float | None) -> str:
    """'6.4 W'."""
    return NONE if value is None else quantity_in_words(value, _POWER)


def size(value: float | None) -> str:
    """'1.5 MiB'."""
    return NONE if value is None else bytes_in_words(value)


def rate(value: float | None) -> str:
    """'1.5 MiB/s'."""
    return NONE if value is None else bytes_in_words(value, "B/s")


def count(value: int | None) -> str:
    """'1,234'."""
    return NONE if value is None else count_in_words(value)


def ordinary(value: float | None) -> str:
    """'0.771'."""
    return NONE if value is None else f"{value:.3g}"


def plural(number: int, word: str) -> str:
    """'1 device', '8 devices'."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def change(value: float | None, *, points: bool) -> str:
    """'+1.2 pp' of a share, '-33.9 %' of an amount; empty where there is nothing to compare."""
    return "" if value is None else f"{100 * value:+.1f} {'pp' if points else '%'}"


FIGURES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("accuracy", "Accuracy", share),
    ("personal_before", "Before", share),
    ("personal_after", "Personal", share),
    ("kept_fraction", "Kept", share),
    ("simulated_seconds", "Time", seconds),
    ("joules", "Energy", joules),
    ("up_bytes", "Up", size),
    ("down_bytes", "Down", size),
    ("updates", "Updates", count),
)
"""Figures of a run's summary that are compared: field, heading, and how it is said."""

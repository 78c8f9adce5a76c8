"""Numbers and untrusted text as people read them: '1.5 MiB', '12.3 ms', '2 h 5 min', '78.0 %'.

The one place that formats for people. Nothing here is ever parsed again: most functions show three digits and drop
the rest. A dash stands for None.
"""

import math

from edgefl.values.quantities import Quantity
from edgefl.values.units import Dimension

__all__ = [
    "UNKNOWN",
    "printable",
    "pluralise",
    "format_ago",
    "format_byte_rate",
    "format_bytes",
    "format_change",
    "format_count",
    "format_error_bound",
    "format_fraction",
    "format_joules",
    "format_number",
    "format_percent",
    "format_quantity",
    "format_ratio",
    "format_seconds",
    "format_watts",
]

UNKNOWN = "-"
"""Stands for a number that is None."""

_SI_PREFIXES = ["p", "n", "µ", "m", "", "k", "M", "G", "T"]
_NO_PREFIX = _SI_PREFIXES.index("")
_IEC_PREFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi"]


def printable(text: str) -> str:
    """Return the text on one line, with line breaks, control sequences and other unprintable characters escaped.

    Use it for all text from files and the network, which could otherwise clear the terminal or forge a table row.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def pluralise(number: int, word: str) -> str:
    """'1 device', '8 devices'."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def format_bytes(count: float | None) -> str:
    """'1.5 MiB'."""
    return UNKNOWN if count is None else _scaled(count, "B", _IEC_PREFIXES, base=1024, start=0)


def format_byte_rate(bytes_per_second: float | None) -> str:
    """'1.5 MiB/s'."""
    return UNKNOWN if bytes_per_second is None else f"{format_bytes(bytes_per_second)}/s"


def format_seconds(seconds: float | None) -> str:
    """'12.3 ms', '4.5 s', '2 min 5 s', '3 h 20 min', '2 d 4 h'."""
    if seconds is None:
        return UNKNOWN
    if float(_three_digits(seconds)) < 60:
        return _scaled(seconds, "s", _SI_PREFIXES[: _NO_PREFIX + 1], base=1000, start=_NO_PREFIX)
    if round(seconds) < 3600:
        unit, minor_unit, minor_seconds, ratio = "min", "s", 1, 60
    elif round(seconds / 60) < 24 * 60:
        unit, minor_unit, minor_seconds, ratio = "h", "min", 60, 60
    else:
        unit, minor_unit, minor_seconds, ratio = "d", "h", 3600, 24
    major, minor = divmod(round(seconds / minor_seconds), ratio)
    return f"{major:,} {unit} {minor} {minor_unit}" if minor else f"{major:,} {unit}"


def format_ago(moment: float | None, now: float) -> str:
    """'12 s ago', 'never'."""
    return "never" if moment is None else f"{format_seconds(max(0, round(now - moment)))} ago"


def format_count(count: int | None) -> str:
    """'1,234,567'."""
    return UNKNOWN if count is None else f"{count:,}"


def format_number(value: float | None) -> str:
    """'0.771'."""
    return UNKNOWN if value is None else f"{value:.3g}"


def format_percent(fraction: float | None, *, unit: str = " %") -> str:
    """'78.0 %': a fraction with one decimal."""
    return UNKNOWN if fraction is None else f"{100 * fraction:.1f}{unit}"


def format_part(fraction: float | None, *, unit: str = " %") -> str:
    """' with 30.5 % of its parameters': the part of a model that a figure is of; empty if it is all of it."""
    return "" if fraction is None or fraction >= 1 else f" with {format_percent(fraction, unit=unit)} of its parameters"


def format_fraction(fraction: float) -> str:
    """'30 %', '0.123 %': a fraction with three significant digits."""
    return f"{_three_digits(fraction * 100)} %"


def format_error_bound(relative_error: float) -> str:
    """'7 %': a relative error rounded up to a whole per cent of at least 1, so that it never promises too much."""
    return f"{max(1, math.ceil(round(100 * relative_error, 6)))} %"


def format_change(change: float | None, *, points: bool) -> str:
    """'+1.2 pp' for a share, '-33.9 %' for an amount; empty if there is nothing to compare."""
    return "" if change is None else f"{100 * change:+.1f} {'pp' if points else '%'}"


def format_ratio(ratio: float, low: float, high: float) -> str:
    """'3.24x (3.10-3.38)': a ratio and its quartiles."""
    return f"{ratio:.2f}x ({low:.2f}-{high:.2f})"


def format_joules(joules: float | None) -> str:
    """'51.1 J'."""
    return UNKNOWN if joules is None else _si(joules, "J")


def format_watts(watts: float | None) -> str:
    """'6.4 W'."""
    return UNKNOWN if watts is None else _si(watts, "W")


def format_quantity(value: float | int, quantity: Quantity) -> str:
    """Format a quantity in the unit and with the digits that suit its size."""
    match quantity.dimension:
        case Dimension.TIME:
            return format_seconds(value)
        case Dimension.SIZE:
            return format_bytes(value)
        case Dimension.DATA_RATE:
            return format_byte_rate(value)
        case Dimension.SHARE:
            return format_fraction(value)
        case Dimension.TEMPERATURE:
            return f"{value:.1f} °C"
        case Dimension.NUMBER:
            return format_count(value) if isinstance(value, int) else f"{value:.4g}"
        case _:
            return _si(value, _SYMBOLS[quantity.dimension])


_SYMBOLS = {
    Dimension.ENERGY: "J",
    Dimension.POWER: "W",
    Dimension.FREQUENCY: "Hz",
    Dimension.TIME_PER_MULTIPLY_ADD: "s/MAC",
}


def _si(value: float, unit: str) -> str:
    return _scaled(value, unit, _SI_PREFIXES, base=1000, start=_NO_PREFIX)


def _scaled(value: float, unit: str, prefixes: list[str], *, base: int, start: int) -> str:
    """Move along the prefixes until the number, as it will be printed, is at least 1 and less than `base`."""
    step = start
    while float(_three_digits(value)) >= base and step + 1 < len(prefixes):
        value, step = value / base, step + 1
    while 0 < float(_three_digits(value)) < 1 and step > 0:
        value, step = value * base, step - 1
    return f"{_three_digits(value)} {prefixes[step]}{unit}"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"

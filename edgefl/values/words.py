"""Quantities in words for a person: '1.5 MiB', '12.3 ms', '2 h 5 min'; and texts of strangers, fit to be shown.

The one place that formats for people; `describe` and the command line call it. Nothing here is ever parsed
again: three digits are shown, and the rest is lost.
"""

from edgefl.values.quantities import Quantity
from edgefl.values.units import Dimension

__all__ = [
    "printable",
    "bytes_in_words",
    "seconds_in_words",
    "count_in_words",
    "fraction_in_words",
    "quantity_in_words",
]

_SI_PREFIXES = ["p", "n", "µ", "m", "", "k", "M", "G", "T"]
_NO_PREFIX = _SI_PREFIXES.index("")
_IEC_PREFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi"]


def printable(text: str) -> str:
    """The text on one line: line ends, control sequences and whatever else is not printed as itself, escaped.

    For every text that comes from a file: it could clear the screen of who looks at it, or forge a row of a table.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def bytes_in_words(count: float, unit: str = "B") -> str:
    """'1.5 MiB'."""
    return _scaled(count, unit, _IEC_PREFIXES, base=1024, start=0)


def seconds_in_words(seconds: float) -> str:
    """'12.3 ms', '4.5 s', '2 min 5 s', '3 h 20 min', '2 d 4 h'."""
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


def count_in_words(count: int) -> str:
    """'1,234,567'."""
    return f"{count:,}"


def fraction_in_words(fraction: float) -> str:
    """'30 %'."""
    return f"{_three_digits(fraction * 100)} %"


def quantity_in_words(value: float | int, quantity: Quantity) -> str:
    """A quantity in the unit and with the digits that suit its size."""
    match quantity.dimension:
        case Dimension.TIME:
            return seconds_in_words(value)
        case Dimension.SIZE:
            return bytes_in_words(value)
        case Dimension.DATA_RATE:
            return bytes_in_words(value, "B/s")
        case Dimension.SHARE:
            return fraction_in_words(value)
        case Dimension.TEMPERATURE:
            return f"{value:.1f} °C"
        case Dimension.NUMBER:
            return count_in_words(value) if isinstance(value, int) else f"{value:.4g}"
        case _:
            return _scaled(value, _SYMBOLS[quantity.dimension], _SI_PREFIXES, base=1000, start=_NO_PREFIX)


_SYMBOLS = {
    Dimension.ENERGY: "J",
    Dimension.POWER: "W",
    Dimension.FREQUENCY: "Hz",
    Dimension.TIME_PER_MULTIPLY_ADD: "s/MAC",
}


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

"""Units, and the conversion of a text such as '250 ms' to its base unit.

Quantities are always stored in base units: seconds, bytes, joules, watts. Only people write other units, in JSON files,
and name them there. This table is the one place that knows how units relate.
"""

import difflib
import fractions
import re
from dataclasses import dataclass
from enum import StrEnum

from edgefl.values.field_error import FieldError, shown

__all__ = ["Dimension", "Unit", "UNITS", "amount_in_base_unit", "symbols_of"]


class Dimension(StrEnum):
    """What a quantity measures. The value reads as the end of 'got 512 MiB, which is ...'."""

    TIME = "a time"
    SIZE = "a size"
    ENERGY = "an energy"
    POWER = "a power"
    TEMPERATURE = "a temperature"
    FREQUENCY = "a frequency"
    DATA_RATE = "a data rate"
    TIME_PER_MULTIPLY_ADD = "a time per multiply-add"
    SHARE = "a percentage"
    NUMBER = "a plain number"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its dimension, and its size in base units. The factor is exact, not a float."""

    symbol: str
    dimension: Dimension
    factor: fractions.Fraction


# Several spellings of one prefix: the micro sign, the Greek letter, and what a keyboard has.
_SI = {"p": -12, "n": -9, "u": -6, "µ": -6, "μ": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12}
_IEC = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4}


def _decimal(symbol: str, dimension: Dimension, prefixes: str, factor: int | str = 1) -> list[Unit]:
    """Return units with decimal prefixes; a blank in `prefixes` means no prefix."""
    return [
        Unit(
            prefix.strip() + symbol,
            dimension,
            fractions.Fraction(factor) * _power_of_ten(_SI[prefix.strip()]),
        )
        for prefix in prefixes
    ]


def _power_of_ten(exponent: int) -> fractions.Fraction:
    return fractions.Fraction(10) ** exponent


def _binary(symbol: str, dimension: Dimension) -> list[Unit]:
    return [Unit(prefix + symbol, dimension, fractions.Fraction(1024) ** step) for prefix, step in _IEC.items()]


_ALL = [
    *_decimal("s", Dimension.TIME, "nuµμm "),
    Unit("min", Dimension.TIME, fractions.Fraction(60)),
    Unit("h", Dimension.TIME, fractions.Fraction(3600)),
    Unit("d", Dimension.TIME, fractions.Fraction(86400)),
    *_decimal("B", Dimension.SIZE, " kMGT"),
    *_binary("B", Dimension.SIZE),
    *_decimal("J", Dimension.ENERGY, "um kM"),
    *_decimal("Wh", Dimension.ENERGY, "m k", 3600),
    *_decimal("W", Dimension.POWER, "um k"),
    Unit("°C", Dimension.TEMPERATURE, fractions.Fraction(1)),
    Unit("C", Dimension.TEMPERATURE, fractions.Fraction(1)),
    *_decimal("Hz", Dimension.FREQUENCY, "m kMG"),
    *_decimal("B/s", Dimension.DATA_RATE, " kMG"),
    *_binary("B/s", Dimension.DATA_RATE),
    *_decimal("bit/s", Dimension.DATA_RATE, " kMG", "1/8"),
    *_decimal("s/MAC", Dimension.TIME_PER_MULTIPLY_ADD, "pnum "),
    Unit("%", Dimension.SHARE, fractions.Fraction(1, 100)),
]

UNITS: dict[str, Unit] = {unit.symbol: unit for unit in _ALL}
"""Every unit allowed in JSON, by symbol. Symbols are case-sensitive: mW is not MW."""

# Lengths are bounded because '1e999999999 s' would otherwise build an integer of that many digits.
_LONGEST_QUANTITY = 64
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*(?P<unit>[^\s0-9].*)?"
)


def symbols_of(dimension: Dimension) -> list[str]:
    """Return the unit symbols of a dimension, for messages."""
    return [unit.symbol for unit in UNITS.values() if unit.dimension is dimension]


def amount_in_base_unit(text: str, dimension: Dimension, *, words: str, fix: str) -> tuple[fractions.Fraction, Unit]:
    """Return the exact amount of '250 ms' in the base unit, and the unit it was written in.

    `words` ("a time in seconds") and `fix` describe the field for the message of the error.
    """
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _LONGEST_QUANTITY else None
    if match is None:
        raise FieldError(f"must be {words}, got {shown(text)}, which is not a number with a unit", fix=fix)
    symbol = match["unit"]
    if symbol is None:
        raise FieldError(f"must be {words}, got the string {shown(text)}, which has no unit", fix=fix)
    unit = UNITS.get(symbol)
    if unit is None:
        raise FieldError(
            f"must be {words}, got {shown(text)}, whose unit {shown(symbol)} is unknown",
            fix=_nearest_unit(symbol, dimension) + fix,
        )
    if unit.dimension is not dimension:
        raise FieldError(f"must be {words}, got {shown(text)}, which is {unit.dimension}", fix=fix)
    return fractions.Fraction(match["number"]) * unit.factor, unit


def _nearest_unit(symbol: str, dimension: Dimension) -> str:
    same_letters = [known for known in UNITS if known.lower() == symbol.lower()]
    nearest = same_letters or difflib.get_close_matches(symbol, symbols_of(dimension), n=1)
    return f"Did you mean {' or '.join(map(repr, nearest))}? " if nearest else ""

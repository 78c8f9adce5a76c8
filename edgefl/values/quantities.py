"""Quantity types: `Seconds`, `Bytes`, `Joules`, ...

Each is a `float` or an `int` to the type checker, and carries its unit and range for the code that reads JSON and
checks values on construction. In JSON a quantity is a number in the base unit, or a string with an explicit unit
('250 ms', '512 MiB', '3.5 Wh').
"""

import math
import numbers
from dataclasses import dataclass
from typing import Annotated

from edgefl.values.field_error import FieldError, shown
from edgefl.values.units import Dimension, amount_in_base_unit

__all__ = [
    "Quantity",
    "LARGEST_INTEGER",
    "Seconds",
    "Bytes",
    "Joules",
    "Watts",
    "Celsius",
    "Hertz",
    "BytesPerSecond",
    "SecondsPerMultiplyAdd",
    "Fraction",
    "Ratio",
    "Real",
    "Integer",
    "Count",
    "PositiveCount",
    "WHOLE",
    "REAL",
]

LARGEST_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader, including JavaScript, keeps exact. Larger ones are rejected."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """How a number is read, checked and written: the metadata of the quantity types below."""

    dimension: Dimension
    words: str
    """Description of the expected value, as in "field 'x' must be ..."."""

    example: str
    """Example of a valid value, as in "Write for example ..."."""

    whole: bool = False
    low: float | None = 0
    high: float | None = None

    def read(self, data: object) -> float | int:
        """Read a number in the base unit, or a string with a unit."""
        return self.check(self._converted(data) if isinstance(data, str) else data)

    def check(self, value: object) -> float | int:
        """Return a Python number of the right kind and range; numpy scalars are converted."""
        if isinstance(value, bool) or not isinstance(value, (int, float, numbers.Real)):
            # `read` has already converted JSON strings, so a string here comes from Python.
            fix = (
                "Pass a plain number; strings with a unit work in JSON only" if isinstance(value, str) else self._advice
            )
            raise FieldError(f"must be {self.words}, got {shown(value)}, which is not a number", fix=fix)
        number = self._whole_number(value) if self.whole else _as_float(value)
        too_small = self.low is not None and number < self.low
        too_large = self.high is not None and number > self.high
        if too_small or too_large or not _is_finite(number):
            raise self._out_of_range(number, shown(value if isinstance(value, int | float) else number))
        return number

    def write(self, value: float | int) -> float | int:
        """Return the number in the base unit."""
        return value

    @property
    def _advice(self) -> str:
        return f"Write for example {self.example}"

    def _converted(self, text: str) -> float | int:
        if self.dimension is Dimension.NUMBER:
            raise FieldError(f"must be {self.words}, got the string {shown(text)}", fix=self._advice)
        amount, unit = amount_in_base_unit(text, self.dimension, words=self.words, fix=self._advice)
        if not self.whole:
            return _as_float(amount)
        # '1.1 GiB' means the nearest byte; '1.5 B' is a mistake.
        if unit.factor == 1 and amount.denominator != 1:
            raise FieldError(f"must be {self.words}, got {shown(text)}, which is not whole", fix=self._advice)
        return round(amount)

    def _whole_number(self, value: float | numbers.Real) -> int:
        if isinstance(value, (int, numbers.Integral)):
            return int(value)
        number = _as_float(value)
        # Some JSON writers have one kind of number only and write 3.0 for 3, which is fine here.
        if not number.is_integer():
            raise FieldError(f"must be {self.words}, got {shown(value)}, which is not whole", fix=self._advice)
        return int(number)

    def _out_of_range(self, number: float | int, got: str) -> FieldError:
        if not _is_finite(number):
            return FieldError(f"must be {self.words}, got {got}, which is not finite", fix=self._advice)
        if self.low is not None and number < self.low:
            says = f"must be {self.words}, got {got}, which is below {self.low:g}"
            return FieldError(says, fix=self._advice)
        if self.dimension is Dimension.SHARE and number <= 100:
            return FieldError(
                f"must be {self.words}, got {got}, which looks like a percentage",
                fix=f"For {number:g} %, write {number / 100:g}",
            )
        fix = self._advice
        if self.whole:
            fix += "; integers above 2^53 - 1 lose digits in many JSON readers"
        return FieldError(f"must be {self.words}, got {got}, which is above {self.high}", fix=fix)


def _is_finite(number: float | int) -> bool:
    return isinstance(number, int) or math.isfinite(number)  # math.isfinite cannot take a very long integer


def _as_float(value: float | numbers.Real) -> float:
    try:
        number = float(value)
    except OverflowError:
        return math.inf
    return number + 0.0  # so that -0.0 becomes 0.0, and equal values have equal texts


WHOLE = Quantity(Dimension.NUMBER, "a whole number", "30", whole=True, low=-LARGEST_INTEGER, high=LARGEST_INTEGER)
REAL = Quantity(Dimension.NUMBER, "a number", "0.5", low=None)

Seconds = Annotated[float, Quantity(Dimension.TIME, "a time in seconds", "30 or '30 s'")]
Bytes = Annotated[
    int,
    Quantity(
        Dimension.SIZE,
        "a size, a whole number of bytes",
        "1048576 or '1 MiB'",
        whole=True,
        high=LARGEST_INTEGER,
    ),
]
Joules = Annotated[float, Quantity(Dimension.ENERGY, "an energy in joules", "12.5, '12.5 J' or '3.5 mWh'")]
Watts = Annotated[float, Quantity(Dimension.POWER, "a power in watts", "2.5 or '2500 mW'")]
Celsius = Annotated[
    float, Quantity(Dimension.TEMPERATURE, "a temperature in degrees Celsius", "45 or '45 °C'", low=-273.15)
]
Hertz = Annotated[float, Quantity(Dimension.FREQUENCY, "a frequency in hertz", "10 or '10 Hz'")]
BytesPerSecond = Annotated[
    float,
    Quantity(Dimension.DATA_RATE, "a data rate in bytes per second", "125000, '125 kB/s' or '1 Mbit/s'"),
]
SecondsPerMultiplyAdd = Annotated[
    float,
    Quantity(Dimension.TIME_PER_MULTIPLY_ADD, "a time in seconds per multiply-add", "2e-10 or '0.2 ns/MAC'"),
]
Fraction = Annotated[float, Quantity(Dimension.SHARE, "a fraction between 0 and 1", "0.3 or '30 %'", high=1)]
Ratio = Annotated[float, Quantity(Dimension.NUMBER, "a ratio, a number of 0 or more", "1.25")]
Real = Annotated[float, REAL]
Integer = Annotated[int, WHOLE]
Count = Annotated[
    int,
    Quantity(Dimension.NUMBER, "a count, a whole number of 0 or more", "30", whole=True, high=LARGEST_INTEGER),
]
PositiveCount = Annotated[
    int,
    Quantity(Dimension.NUMBER, "a count, a whole number of 1 or more", "4", whole=True, low=1, high=LARGEST_INTEGER),
]

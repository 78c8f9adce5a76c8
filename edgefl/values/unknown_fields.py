"""Errors for unknown fields, with advice.

The likeliest causes, in this order: the right field in another unit (`latency_ms` for `latency_seconds`), whose number
must never be taken as it is; a misspelling; and a field that does not exist at all.
"""

import contextlib
import difflib
import fractions
from collections.abc import Mapping

from edgefl.values.containers import OptionalType
from edgefl.values.field_error import FieldError, path_text, shown
from edgefl.values.field_types import FieldType
from edgefl.values.quantities import Quantity
from edgefl.values.units import UNITS, Dimension, Unit

__all__ = ["unknown_field", "split_unit"]

_LONGEST_COMPARED = 100  # difflib takes quadratic time

# Abbreviations of units in field names. A name is one of these, or ends in one after an underscore.
_SUFFIXES = {
    "s sec secs second seconds": "s",
    "ms msec millis millisecond milliseconds": "ms",
    "us usec micros microsecond microseconds": "us",
    "ns nsec nanos nanosecond nanoseconds": "ns",
    "mins minute minutes": "min",
    "h hour hours": "h",
    "b byte bytes": "B",
    "kb kilobyte kilobytes": "kB",
    "mb megabyte megabytes": "MB",
    "gb gigabyte gigabytes": "GB",
    "kib kibibytes": "KiB",
    "mib mebibytes": "MiB",
    "gib gibibytes": "GiB",
    "j joule joules": "J",
    "mj millijoule millijoules": "mJ",
    "kj kilojoule kilojoules": "kJ",
    "wh watt_hour watt_hours": "Wh",
    "mwh milliwatt_hour milliwatt_hours": "mWh",
    "kwh kilowatt_hour kilowatt_hours": "kWh",
    "w watt watts": "W",
    "mw milliwatt milliwatts": "mW",
    "c celsius degrees degrees_celsius": "°C",
    "hz hertz": "Hz",
    "khz kilohertz": "kHz",
    "bytes_per_second bps": "B/s",
    "kb_per_second kbytes_per_second": "kB/s",
    "mb_per_second mbytes_per_second": "MB/s",
    "kbps kbit_per_second kbits_per_second": "kbit/s",
    "mbps mbit_per_second mbits_per_second": "Mbit/s",
    "gbps gbit_per_second gbits_per_second": "Gbit/s",
    "seconds_per_multiply_add": "s/MAC",
    "ns_per_multiply_add ns_per_mac": "ns/MAC",
    "ps_per_multiply_add ps_per_mac": "ps/MAC",
    "percent percentage pct": "%",
}
_UNIT_OF = {suffix: UNITS[symbol] for words, symbol in _SUFFIXES.items() for suffix in words.split()}
# The base unit of fractions has no symbol, but field names do name it.
_UNIT_OF["fraction"] = Unit("", Dimension.SHARE, fractions.Fraction(1))
_ENDINGS = sorted(_UNIT_OF, key=len, reverse=True)


def split_unit(name: str) -> tuple[str, Unit | None]:
    """Return the name without its unit suffix, and the unit: `p50_step_seconds` -> (`p50_step`, seconds).

    A name that is only a unit has an empty stem: `joules` -> (``, joules).
    """
    for ending in _ENDINGS:
        if name == ending:
            return "", _UNIT_OF[ending]
        if name.endswith("_" + ending):
            return name.removesuffix("_" + ending), _UNIT_OF[ending]
    return name, None


def unknown_field(key: object, value: object, known: Mapping[str, FieldType]) -> FieldError:
    """Return the error for an unknown field, with the best advice available."""
    if not isinstance(key, str):
        return FieldError(f"has the key {shown(key)}, which is not a string", fix="Write field names as strings")
    twin = _same_in_another_unit(key, known)
    if twin is not None:
        return _wrong_unit(key, value, twin, known[twin])
    short = len(key) <= _LONGEST_COMPARED
    near = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.6) if short else []
    fields = ", ".join(known) if known else "none"
    fix = f"Did you mean '{near[0]}'? Known fields: {fields}" if near else f"Known fields: {fields}"
    return FieldError("is not a known field", fix=fix, path=(key,))


def _quantity(shape: FieldType) -> Quantity | None:
    inner = shape.inner if isinstance(shape, OptionalType) else shape
    return inner if isinstance(inner, Quantity) else None


def _same_in_another_unit(key: str, known: Mapping[str, FieldType]) -> str | None:
    stem, unit = split_unit(key.lower())
    for name, shape in known.items():
        quantity = _quantity(shape)
        same_dimension = unit is not None and quantity is not None and quantity.dimension is unit.dimension
        if same_dimension and stem in (name, split_unit(name)[0]):
            return name
    return None


def _wrong_unit(key: str, value: object, twin: str, shape: FieldType) -> FieldError:
    unit = split_unit(key.lower())[1]
    quantity = _quantity(shape)
    says = f"is not a known field; '{path_text((twin,))}' is: {shape.words}"
    fix = f'Convert it and write "{twin}": for example {shape.example}'
    if unit is not None and quantity is not None and isinstance(value, int | float):
        text = f"{shown(value)} {unit.symbol}"
        # If the value is wrong in other ways too, the general advice stands.
        with contextlib.suppress(FieldError):
            fix = f'Write "{twin}": {shown(quantity.read(text))} (that is {text}), or "{twin}": "{text}"'
    return FieldError(says, fix=fix, path=(key,))

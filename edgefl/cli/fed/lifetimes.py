"""Times that operators write: how long something is valid, and since when something is wanted."""

import re
import time
from datetime import datetime

from edgefl.errors import EdgeFLError

__all__ = ["moment", "seconds"]

_WORDS = {
    "second": "s",
    "minute": "min",
    "hour": "h",
    "day": "d",
    "week": "w",
}


def seconds(text: str, option: str) -> float:
    """Return a duration such as 7d, '12 h' or '30 days' in seconds."""
    from edgefl.values import Dimension, FieldError
    from edgefl.values.units import amount_in_base_unit

    short = re.sub(r"([a-z]+?)s?$", lambda found: _WORDS.get(found[1], found[0]), text.strip())
    weeks = re.fullmatch(r"([0-9.]+)\s*w", short)
    try:
        written = f"{weeks[1]} d" if weeks else short
        amount, _ = amount_in_base_unit(
            written, Dimension.TIME, words="a time", fix="Write for example 7d or '30 days'."
        )
    except FieldError as error:
        raise EdgeFLError(f"{option} {error.says}", fix=error.fix) from None
    if amount <= 0:
        raise EdgeFLError(f"{option} is {text!r}", fix="Give a time above 0, such as 7d.")
    return float(amount) * (7 if weeks else 1)


def moment(text: str, option: str) -> float:
    """Return a point in time in seconds since 1970: a date, a date with a time, or a duration before now."""
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        pass
    try:
        return time.time() - seconds(text, option)
    except EdgeFLError:
        raise EdgeFLError(
            f"{option} is {text!r}", fix="Give a date such as 2026-01-31, or a time before now such as '7 days'."
        ) from None

"""Phones that charge at night: when each is online, from a seed, as one word of `--availability`.

    nightly                             every phone of one town
    nightly:spread=10h,skips=0.3        time zones ten hours apart; three nights of ten without a charger

A phone is online while it charges and its owner sleeps. Every night it is plugged in at about its own hour, for some
hours; some nights are skipped, and some are cut in two by an hour off the charger. Time 0 is noon in the first time
zone. Every draw depends on the seed, the device and the night alone.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from edgefl.errors import EdgeFLError
from edgefl.noise import derive
from edgefl.simulation.fleet import FleetDevice
from edgefl.values import Fraction, Quantity, Seconds

__all__ = ["NightlyCharging", "nightly_from"]

_DAY = 86_400.0
_HOUR = 3_600.0
_NAME = "nightly"
_GAP = _HOUR
"""How long a phone is off the charger in the middle of an interrupted night."""


@dataclass(frozen=True, slots=True)
class NightlyCharging:
    """When phones are online."""

    seed: int
    spread: float = 0.0
    """Seconds between the first and the last time zone; each phone is somewhere between."""
    bedtime: float = 11.0 * _HOUR
    """Mean time of plugging in, in seconds after noon."""
    hours: float = 7.0 * _HOUR
    """Mean time online per night."""
    skips: float = 0.15
    """Share of nights without a charger."""
    interrupted: float = 0.1
    """Share of nights that are cut in two."""
    _nights: dict[str, list[tuple[float, float]]] = field(default_factory=dict, init=False, repr=False)
    _drawn: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def online_until(self, device: FleetDevice, at: float) -> float | None:
        """Return when the phone is unplugged, if it charges now."""
        found = self._until(device.device_id, at)
        place = bisect.bisect_right(found, (at, math.inf)) - 1
        return found[place][1] if place >= 0 and found[place][1] > at else None

    def next_change(self, devices: Sequence[FleetDevice], at: float) -> float:
        """Return when the first of some phones is plugged in."""
        return min((self._next(device.device_id, at) for device in devices), default=math.inf)

    def _next(self, device: str, at: float) -> float:
        days = 2
        while True:  # skipped nights may follow each other, but not for ever
            found = self._until(device, at + days * _DAY)
            place = bisect.bisect_right(found, (at, math.inf))
            if place < len(found):
                return found[place][0]
            days *= 2

    def _until(self, device: str, at: float) -> list[tuple[float, float]]:
        """Return the times online of a phone, at least of all nights that begin before this time."""
        known, night = self._nights.setdefault(device, []), self._drawn.get(device, 0)
        while (night - 1) * _DAY <= at:
            known += self._night(device, night)
            night += 1
        self._drawn[device] = night
        return known

    def _night(self, device: str, night: int) -> list[tuple[float, float]]:
        if self._draw("skips", device, night) < self.skips:
            return []
        zone, habit = self.spread * self._draw("zone", device), 2 * _HOUR * (self._draw("habit", device) - 0.5)
        begin = night * _DAY + self.bedtime + zone + habit + _HOUR * (self._draw("begin", device, night) - 0.5)
        end = begin + self.hours * (0.75 + 0.5 * self._draw("hours", device, night))
        if self._draw("interrupted", device, night) >= self.interrupted:
            return [(begin, end)]
        middle = begin + (end - begin) * self._draw("middle", device, night)
        pieces = [(begin, middle - _GAP / 2), (middle + _GAP / 2, end)]
        return [(first, last) for first, last in pieces if last > first]

    def _draw(self, *names: str | int) -> float:
        return derive(self.seed, _NAME, *names) / 2**64


def nightly_from(text: str, seed: int) -> NightlyCharging:
    """Return what `nightly` or `nightly:spread=10h,skips=0.3` says."""
    name, _, rest = text.partition(":")
    kinds = {"spread": Seconds, "bedtime": Seconds, "hours": Seconds, "skips": Fraction, "interrupted": Fraction}
    values: dict[str, float] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in kinds:
            raise _wrong(text, f"{key!r} is not one of {', '.join(kinds)}")
        quantity: Quantity = get_args(kinds[key])[1]
        try:
            values[key] = float(quantity.read(_number(value)))
        except EdgeFLError as error:
            raise _wrong(text, error.problem) from None
    if name != _NAME:
        raise _wrong(text, f"{name!r} is not known")
    made = NightlyCharging(seed, **values)
    if not 0 < made.hours <= 16 * _HOUR or made.bedtime > _DAY or made.spread > _DAY or made.skips > 0.95:
        raise _wrong(text, "hours must be 16 at most, bedtime and spread a day, and some nights must remain")
    return made


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _wrong(text: str, problem: str) -> EdgeFLError:
    return EdgeFLError(
        f"--availability {text!r}: {problem}", fix="Write for example nightly, or nightly:spread=10h,skips=0.3."
    )

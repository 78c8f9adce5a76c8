"""Rate limits per caller. `coordinator.http.authentication` takes from the buckets, as it knows the caller."""

import contextlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

from coordinator.http.error_handlers import HttpError, retry_after

__all__ = ["TokenBuckets", "ConcurrencyLimits", "rate_limited_address"]


class TokenBuckets:
    """Token buckets by name, each filled at a rate up to a burst."""

    def __init__(
        self, rate: float, burst: int, *, most: int = 50_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, most, clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Take a token; return 0, or the seconds until there is one."""
        level, now = self._level(name)
        if level >= 1:
            self._levels[name] = (level - 1, now)
        self._levels.move_to_end(name)
        while len(self._levels) > self._most:
            self._levels.popitem(last=False)  # the least recently used bucket is full, or nearly
        return 0.0 if level >= 1 else (1 - level) / self._rate

    def empty(self, name: str) -> bool:
        """Return whether no token is left."""
        return name in self._levels and self._level(name)[0] < 1

    def _level(self, name: str) -> tuple[float, float]:
        now = self._clock()
        level, then = self._levels.get(name, (float(self._burst), now))
        level = min(float(self._burst), level + (now - then) * self._rate)
        self._levels[name] = (level, now)
        return level, now


class ConcurrencyLimits:
    """Limits on how many uploads each caller may have at the same time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used: dict[str, int] = {}

    @property
    def holders(self) -> frozenset[str]:
        """Callers with at least one."""
        return frozenset(self._used)

    @contextlib.contextmanager
    def one(self, name: str) -> Iterator[None]:
        """Hold one upload. Raise a 429 if the caller has too many."""
        used = self._used.get(name, 0)
        if used >= self._most:
            raise HttpError(
                429,
                f"{name!r} is already sending {used} updates",
                fix="Wait for their responses.",
                headers=retry_after(2),
            )
        self._used[name] = used + 1
        try:
            yield
        finally:
            self._used[name] -= 1
            if not self._used[name]:
                del self._used[name]


def rate_limited_address(host: str) -> str:
    """Return what a caller's address is counted as. The owner of one IPv6 address has 2^64, so a /64 counts as one."""
    if ":" not in host:
        return host
    with contextlib.suppress(ValueError):
        return str(ipaddress.IPv6Network((host.partition("%")[0], 64), strict=False))
    return host

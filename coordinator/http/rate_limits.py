"""Rate limits per caller, and budgets of bytes for all callers together.

`coordinator.http.authentication` takes from the buckets, as it knows the caller; uploads reserve their bytes before
they are read.
"""

import asyncio
import contextlib
import ipaddress
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator

from coordinator.http.error_handlers import HttpError, retry_after

__all__ = ["TokenBuckets", "ByteBudget", "ConcurrencyLimits", "rate_limited_address"]


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


class ByteBudget:
    """Bytes that may be in use at the same time, first come, first served."""

    def __init__(self, total: int, *, patience: float) -> None:
        self._total, self._patience = total, patience
        self._used = 0
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def used(self) -> int:
        """Bytes in use."""
        return self._used

    @contextlib.asynccontextmanager
    async def reserved(self, size: int) -> AsyncIterator[None]:
        """Hold some bytes. Wait for them, and raise a 503 if that takes too long."""
        size = min(size, self._total)
        if self._queue or self._used + size > self._total:
            await self._wait(size)
        else:
            self._used += size
        try:
            yield
        finally:
            self._used -= size
            self._grant()

    async def _wait(self, size: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size, turn)
        self._queue.append(entry)
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # granted at the same moment
                self._used -= size
            else:
                with contextlib.suppress(ValueError):
                    self._queue.remove(entry)
            self._grant()
            if isinstance(error, TimeoutError):
                raise HttpError(
                    503, "too many uploads at the same time", fix="Try again soon.", headers=retry_after(5)
                ) from None
            raise

    def _grant(self) -> None:
        while self._queue and self._used + self._queue[0][0] <= self._total:
            size, turn = self._queue.popleft()
            if not turn.cancelled():
                self._used += size
                turn.set_result(None)


def rate_limited_address(host: str) -> str:
    """Return what a caller's address is counted as. The owner of one IPv6 address has 2^64, so a /64 counts as one."""
    if ":" not in host:
        return host
    with contextlib.suppress(ValueError):
        return str(ipaddress.IPv6Network((host.partition("%")[0], 64), strict=False))
    return host

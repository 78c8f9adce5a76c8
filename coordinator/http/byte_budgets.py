"""Budgets of bytes for the bodies of all callers together: in memory, and in spool files.

An upload reserves bytes as they arrive, not as they are announced: who announces much and sends little holds little.
Uploads that find no room wait, those of callers who hold nothing first. While some wait, the others must send at a
least rate, or they are cut off: nobody holds room with a body that never ends.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from coordinator.http.error_handlers import HttpError, retry_after

__all__ = ["ByteBudget", "Reservation"]

_WINDOW_SECONDS = 1.0
"""How long the rate of an upload is measured while others wait."""


@dataclass(slots=True, eq=False)
class Reservation:
    """The bytes that one upload holds."""

    budget: "ByteBudget"
    holder: str
    size: int
    arrived: int = 0
    """Bytes that its caller has sent."""
    _seen: int | None = field(default=None)
    """What had arrived when its rate was last measured."""
    _deadline: asyncio.Timeout | None = None

    def grow(self, more: int) -> bool:
        """Hold more bytes, if there is room for them now."""
        return self.budget.take(self, more)

    async def wait_to_grow(self, more: int) -> None:
        """Hold more bytes; wait for them, and raise a 503 if that takes too long."""
        if not self.grow(more):
            await self.budget.wait(self, more)

    def shrink(self, size: int) -> None:
        """Hold no more than `size` bytes."""
        self.budget.release(self, max(0, self.size - size))

    @contextlib.asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        """Receive a body in this context. Raise a 408 if it arrives too slowly while others wait."""
        try:
            async with asyncio.timeout(None) as self._deadline:
                yield
        except TimeoutError:
            raise HttpError(
                408,
                "the body arrived too slowly while others were waiting",
                fix="Send it again a little later.",
                headers={"Connection": "close", **retry_after(10)},
            ) from None
        finally:
            self._deadline = None

    def measure(self, least: float) -> None:
        """Cut the upload off unless it has sent `least` bytes since it was last measured."""
        if self._deadline is None:  # it has arrived
            return
        if self._seen is not None and self.arrived - self._seen < least:
            self._deadline.reschedule(asyncio.get_running_loop().time())
        self._seen = self.arrived


class ByteBudget:
    """Bytes that may be in use at the same time."""

    def __init__(self, total: int, *, patience: float, least_rate: float = 0.0) -> None:
        self._total, self._patience, self._least_rate = total, patience, least_rate
        self._used = 0
        self._held: dict[Reservation, None] = {}
        self._holders: Counter[str] = Counter()
        self._queue: deque[tuple[Reservation, int, asyncio.Future[None]]] = deque()
        """Those who wait and hold nothing else."""
        self._later: deque[tuple[Reservation, int, asyncio.Future[None]]] = deque()
        """Those who wait and hold something already."""
        self._measured_at = 0.0

    @property
    def used(self) -> int:
        """Bytes in use."""
        return self._used

    @contextlib.asynccontextmanager
    async def reserved(self, size: int, holder: str = "") -> AsyncIterator[Reservation]:
        """Hold some bytes for a caller. Wait for them, and raise a 503 if that takes too long."""
        held = Reservation(self, holder, 0)
        size = min(size, self._total)
        if self._queue or self._later or not self.take(held, size):
            await self.wait(held, size)
        self._held[held] = None
        self._holders[holder] += 1
        try:
            yield held
        finally:
            del self._held[held]
            self._holders[holder] -= 1
            if not self._holders[holder]:
                del self._holders[holder]
            self.release(held, held.size)

    def take(self, held: Reservation, more: int) -> bool:
        """Add bytes to a reservation, if there is room for them now."""
        if self._used + more > self._total:
            return False
        self._used += more
        held.size += more
        return True

    def release(self, held: Reservation, less: int) -> None:
        """Take bytes from a reservation, and give them to those who wait."""
        self._used -= less
        held.size -= less
        self._grant()

    async def wait(self, held: Reservation, more: int) -> None:
        """Wait until a reservation has more bytes; raise a 503 if that takes too long."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue, entry = (self._later if self._holders[held.holder] else self._queue), (held, more, turn)
        queue.append(entry)
        try:
            await self._until(turn)
        except BaseException:
            if turn.done() and not turn.cancelled():  # granted at the same moment
                self.release(held, more)
            else:
                with contextlib.suppress(ValueError):
                    queue.remove(entry)
                self._grant()
            raise

    async def _until(self, turn: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience
        while not turn.done():
            left = end - loop.time()
            if left <= 0:
                raise HttpError(503, "too many uploads at the same time", fix="Try again soon.", headers=retry_after(5))
            await asyncio.wait([turn], timeout=min(left, _WINDOW_SECONDS))
            self._measure(loop.time())

    def _measure(self, now: float) -> None:
        """Measure all uploads in progress, at most once in a window, for all who wait."""
        elapsed = now - self._measured_at
        if elapsed < _WINDOW_SECONDS:
            return
        self._measured_at = now
        fresh = elapsed < 2 * _WINDOW_SECONDS  # otherwise nobody has waited for a while, and this only begins
        for held in list(self._held):
            held.measure(self._least_rate * elapsed if fresh else 0.0)

    def _grant(self) -> None:
        for queue in (self._queue, self._later):
            while queue and (queue[0][2].done() or self.take(queue[0][0], queue[0][1])):
                turn = queue.popleft()[2]
                if not turn.done():
                    turn.set_result(None)
            if queue:
                return

"""Refused attempts, for the audit log: unknown, revoked and expired secrets, and what operators were not allowed to do.

Strangers cause most of them, as many as they like, so they are counted in memory and entered a few at a time: all that
one caller was refused for the same reason is one entry with a count, a worker enters so many at once and then one a
minute, and beyond a number of callers the rest is counted together.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field

from starlette.types import Scope

from coordinator.http.rate_limits import TokenBuckets, rate_limited_address
from coordinator.rounds.context import Context
from coordinator.storage.records import Actor, AuditEvent, AuditOutcome
from coordinator.thread_pools import ThreadPools

__all__ = ["OPERATOR", "RefusedAttempts"]

OPERATOR = "edgefl.operator"
"""The key of a request's scope for the operator who sends it, as an `Actor`."""

_LOG = logging.getLogger(__name__)
_FLUSH_SECONDS = 5.0
_ENTRIES_RATE = 1 / 60
_ENTRIES_BURST = 60
_MOST_PENDING = 200
_OTHERS = Actor("anyone", "(others)")


@dataclass(slots=True)
class _Count:
    first: float
    last: float
    target: str
    count: int = 0
    detail: dict[str, object] = field(default_factory=dict)


_Key = tuple[Actor, str, AuditOutcome]


class RefusedAttempts:
    """Counts of refused attempts that are not in the audit log yet. Only the event loop may call its methods."""

    def __init__(self, context: Context, threads: ThreadPools) -> None:
        self._context, self._threads = context, threads
        self._pending: dict[_Key, _Count] = {}
        self._entries = TokenBuckets(_ENTRIES_RATE, _ENTRIES_BURST)
        self._task: asyncio.Task[None] | None = None

    def note(
        self, by: Actor, action: str, about: str, *, outcome: AuditOutcome = AuditOutcome.REFUSED, **detail: object
    ) -> None:
        """Count an attempt. `about` and `detail` are kept of the first one."""
        by = Actor(by.kind, by.name, rate_limited_address(by.address))
        key = (by, action, outcome)
        if key not in self._pending and len(self._pending) >= _MOST_PENDING:
            key = (_OTHERS, "access", AuditOutcome.REFUSED)
        now = self._context.now()
        count = self._pending.setdefault(key, _Count(now, now, about, detail=detail))
        count.count += 1
        count.last = now

    def after(self, scope: Scope, method: str, route: str, status: int) -> None:
        """Count a request of an operator that was not allowed, or that would have changed something and failed."""
        operator: Actor | None = scope.get(OPERATOR)
        if operator is not None and (status == 403 or (status >= 400 and method != "GET")):
            about = ", ".join(str(value) for value in scope.get("path_params", {}).values())
            self.note(operator, f"{method} {route}", about, status=status)

    def start(self) -> None:
        """Start entering what was counted."""
        self._task = asyncio.create_task(self._flush_for_ever())

    async def stop(self) -> None:
        """Enter what is left."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._flush(everything=True)

    async def _flush_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            await self._flush()

    async def _flush(self, *, everything: bool = False) -> None:
        taken: dict[_Key, _Count] = {}
        for key in list(self._pending):
            if not everything and self._entries.take("") > 0:
                break
            taken[key] = self._pending.pop(key)
        if not taken:
            return
        try:
            events = [_event(key, count) for key, count in taken.items()]
            await self._threads.run(self._context.store.audit.add, *events)
        except Exception as error:
            _LOG.warning("refused attempts cannot be entered into the audit log: %s", error)
            for key, count in taken.items():
                count.count += self._pending[key].count if key in self._pending else 0
                self._pending[key] = count


def _event(key: _Key, count: _Count) -> AuditEvent:
    by, action, outcome = key
    detail = count.detail if count.count == 1 else count.detail | {"until": round(count.last, 3)}
    return AuditEvent(
        at=count.first, by=by, action=action, target=count.target, outcome=outcome, count=count.count, detail=detail
    )

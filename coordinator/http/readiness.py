"""Readiness: whether the coordinator can do its work now. It tries: reads, and writes to the database and blob store.

Anybody may ask, so each attempt is made at most once a second, and all who ask meanwhile get its outcome. An attempt
runs on a thread of its own and has a time limit: storage that hangs makes the coordinator not ready, and holds up
neither the event loop nor a thread that serves requests.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

__all__ = ["Readiness"]

_LOG = logging.getLogger(__name__)
_FRESH_SECONDS = 1.0
_LONGEST_SECONDS = 5.0


class Readiness:
    """Attempts by name; a name says what is wrong if its attempt fails, and must tell strangers nothing more."""

    def __init__(self, attempts: Mapping[str, Callable[[], None]], *, seconds: float = _LONGEST_SECONDS) -> None:
        self._attempts = [_Attempt(name, call) for name, call in attempts.items()]
        self._seconds = seconds

    async def broken(self) -> list[str]:
        """Return what does not work."""
        outcomes = [(asyncio.wrap_future(one.outcome()), self._seconds - one.age) for one in self._attempts]
        pending = {outcome: left for outcome, left in outcomes if left > 0 and not outcome.done()}
        if pending:
            await asyncio.wait(pending, timeout=max(pending.values()))
        return [one.name for one in self._attempts if not one.succeeded]


class _Attempt:
    """One thing that is tried again and again, by one thread at a time."""

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self.name, self._call = name, call
        self._outcome: Future[bool] | None = None
        self._begun = 0.0
        self._failing = False

    @property
    def age(self) -> float:
        """Seconds since the latest try began."""
        return time.monotonic() - self._begun

    @property
    def succeeded(self) -> bool:
        """Whether the latest try has ended well."""
        return self._outcome is not None and self._outcome.done() and self._outcome.result()

    def outcome(self) -> "Future[bool]":
        """Return the outcome of the latest try, or of a new one if that is too old. One that hangs is not repeated."""
        if self._outcome is None or (self._outcome.done() and self.age > _FRESH_SECONDS):
            self._begun, self._outcome = time.monotonic(), Future()
            threading.Thread(target=self._run, args=(self._outcome,), name="readiness", daemon=True).start()
        return self._outcome

    def _run(self, outcome: "Future[bool]") -> None:
        try:
            self._call()
        except Exception as error:
            if not self._failing:
                _LOG.error("not ready: %s", self.name, exc_info=error)
            self._failing = True
            outcome.set_result(False)
            return
        self._failing = False
        outcome.set_result(True)

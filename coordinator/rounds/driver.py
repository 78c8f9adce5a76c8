"""The driver: a thread that advances every federation, one step at a time.

Any number of workers may run one. A lease in the database keeps them from doing the same work twice; that no work
counts twice is guaranteed by the database, not by the lease. If a worker dies, another takes over within seconds.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence

from coordinator.rounds.context import Context
from coordinator.rounds.evaluation import Evaluator, Scorer
from coordinator.rounds.garbage_collection import GarbageCollector
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.storage.records import Federation, FederationState
from edgefl.errors import EdgeFLError
from edgefl.federation.evaluation import Score
from edgefl.masks import Weights

__all__ = ["Driver"]

_LOG = logging.getLogger(__name__)
_LEASE = "drive/"
_LEASE_SECONDS = 4.0
_RENEW_SECONDS = 1.0
_LONGEST_SLEEP = 0.5
"""Seconds. Another worker may have changed something, which does not wake this one."""
_SHORTEST_SLEEP = 0.1
"""Seconds between two steps, however many updates arrive."""
_AFTER_FAILURE = 5.0
_ACTIVE = frozenset({FederationState.RUNNING, FederationState.PAUSED})


class Driver:
    """Advances every federation of a coordinator."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stop, self._wake = threading.Event(), threading.Event()
        self._evaluators: dict[str, Evaluator] = {}
        self._not_before: dict[str, float] = {}
        self._held: dict[str, float] = {}
        """Leases, and until when (monotonic) they are certainly ours."""
        self._garbage = GarbageCollector(context)
        self._threads: list[threading.Thread] = []

    @property
    def alive(self) -> bool:
        """Whether its threads are running."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Start the threads."""
        self._garbage.start()
        for name, work in (("driver", self._run), ("driver-lease", self._keep_leases)):
            self._threads.append(threading.Thread(target=work, name=name, daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        """Stop after the step in progress."""
        self._stop.set()
        self._wake.set()
        for thread in self._threads:
            thread.join()
        if self._threads:
            self._garbage.stop()
        for lease in list(self._held):
            self._context.store.workers.release_lease(lease, self._context.worker)

    def wake(self) -> None:
        """Check all federations now: something has changed."""
        self._wake.set()

    def _run(self) -> None:
        self._garbage.request_ended()
        while not self._stop.is_set():
            self._wake.clear()
            wait = _LONGEST_SLEEP
            try:
                active = [one for one in self._context.store.federations.all() if one.state in _ACTIVE]
                self._forget_others({one.id for one in active})
                for federation in active:
                    if not self._stop.is_set():
                        wait = min(wait, self._drive(federation))
            except Exception:
                _LOG.exception("federations could not be read")
            if wait > 0:
                self._stop.wait(_SHORTEST_SLEEP)
                self._wake.wait(max(0.0, wait - _SHORTEST_SLEEP))

    def _drive(self, federation: Federation) -> float:
        if time.monotonic() < self._not_before.get(federation.id, 0.0) or not self._holds(_lease(federation.id)):
            return _LONGEST_SLEEP
        try:
            wait = RoundStateMachine(
                self._context, federation, self._scorer(federation), self._garbage.request
            ).advance()
        except Exception as error:
            # A full disk, a database that restarts: nothing is lost, and the same step is tried again.
            _LOG.exception("a step of a federation failed", extra={"federation": federation.id})
            self._not_before[federation.id] = time.monotonic() + _AFTER_FAILURE
            self._tell_operator(federation, error)
            return _LONGEST_SLEEP
        if self._not_before.pop(federation.id, None) is not None:
            self._context.store.federations.set_reason(federation.id, None)
        return wait

    def _tell_operator(self, federation: Federation, error: Exception) -> None:
        text = str(error) if isinstance(error, EdgeFLError) else f"{type(error).__name__}: {error}"
        reason = f"the next step fails and is tried again every {_AFTER_FAILURE:.0f} s: {text}"[:500]
        if federation.reason != reason:
            with contextlib.suppress(Exception):  # it may be the database that fails
                self._context.store.federations.set_reason(federation.id, reason)

    def _forget_others(self, active: set[str]) -> None:
        """Forget federations that are no longer active, and release their leases."""
        for name in [name for name in self._evaluators if name not in active]:
            del self._evaluators[name]
        for lease in [lease for lease in self._held if lease not in {_lease(name) for name in active}]:
            self._held.pop(lease, None)
            self._context.store.workers.release_lease(lease, self._context.worker)
            self._garbage.request(lease.removeprefix(_LEASE))

    def _scorer(self, federation: Federation) -> Scorer | None:
        """Return the function that evaluates a federation's models. Its data are read when first needed."""
        wanted = self._context.repository.settings(federation).evaluation
        if wanted is None:
            return None

        def score(networks: Sequence[Weights]) -> Score:
            if federation.id not in self._evaluators:
                self._evaluators[federation.id] = Evaluator(self._context.repository.bundle(federation), wanted)
            return self._evaluators[federation.id].score(networks)

        return score

    def _holds(self, lease: str) -> bool:
        """Return whether a lease is ours. Called many times a second, it reads the database about once."""
        return time.monotonic() < self._held.get(lease, 0.0) or self._take(lease)

    def _take(self, lease: str) -> bool:
        context, begun = self._context, time.monotonic()
        taken = context.store.workers.take_lease(lease, context.worker, now=context.now(), seconds=_LEASE_SECONDS)
        if taken:
            self._held[lease] = begun + _LEASE_SECONDS - _RENEW_SECONDS
        else:
            self._held.pop(lease, None)
        return taken

    def _keep_leases(self) -> None:
        """Renew the leases that are held, also during a long step."""
        while not self._stop.wait(_RENEW_SECONDS):
            for lease in list(self._held):
                try:
                    self._take(lease)
                except Exception:
                    _LOG.exception("a lease could not be renewed")


def _lease(federation: str) -> str:
    return _LEASE + federation

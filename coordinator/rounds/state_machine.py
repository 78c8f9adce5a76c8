"""The state machine of rounds. Everything that ever happens to a round is in this file.

      no round yet, or the last one is DONE
          |  enough devices are available: select, plan, open
          v
        OPEN ----- every device answered, or deadline over, and too few updates: further devices; new deadline ----+
          |  ^                                                                                                     |
          |  +-----------------------------------------------------------------------------------------------------+
          |  enough updates; or the deadline is over, or every device answered, and there are `at_least` updates
          v
       CLOSED ---- it is settled which updates count: aggregate them, evaluate, store the next model
          |
          v
        DONE ----- the next round, or the end of the federation

After the last round there may be one more, the personal round, in which devices personalise the last model. Every
available device gets a task, the round closes when every device answered or at its deadline, and it leaves the global
model unchanged.

`advance` takes one step, or returns how long there is nothing to do. It reads the state from the database, does the
slow part without holding any lock, and then changes the state in one transaction that fails if another worker was
faster. So it may be killed at any point, and called by any number of workers.

Buffered mode is the same machine. A round then fills a buffer: devices get tasks whenever they are free, and an update
counts in the round that is open when it arrives, however old the model that it started from, but with less weight.
Each task has its own deadline, and closing a round does not end the tasks in progress.
"""

import json
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from coordinator.rounds.context import Context
from coordinator.rounds.deadlines import bounded_round, seconds_since
from coordinator.rounds.dispatch import DispatchedRound, dispatch_round
from coordinator.rounds.evaluation import Scorer, evaluated
from coordinator.rounds.garbage_collection import drop_old_artifacts, drop_old_models, drop_updates
from coordinator.rounds.planner import RoundPlanner
from coordinator.rounds.report import round_report
from coordinator.rounds.round_models import RoundModels, result_of
from coordinator.storage.records import (
    CLOCK_SLACK,
    Federation,
    FederationState,
    Round,
    RoundState,
    Task,
    TaskState,
)
from edgefl.federation.seeds import planning_context
from edgefl.federation.settings import FederationSettings
from edgefl.federation.strategy import selects_all
from edgefl.strategies import Model, PlannedTask

__all__ = ["RoundStateMachine"]

_Tasks = Mapping[str, PlannedTask]

_LOG = logging.getLogger(__name__)
_AT_ONCE = 0.0
_CHECK_AGAIN = 0.5
"""Seconds until it checks again which devices are available."""
_GRACE = 30.0
"""Seconds of a buffered round in which no task expires: an update that had to wait for the round must not be late."""


@dataclass(slots=True)
class RoundStateMachine:
    """The rounds of one federation, advanced by one worker."""

    context: Context
    federation: Federation
    score: Scorer | None = None
    """Evaluates a model, if the coordinator has data."""
    collect_garbage: Callable[[str], None] | None = None
    """Requests garbage collection after a round; None does it at once."""

    @property
    def settings(self) -> FederationSettings:
        """The federation's settings."""
        return self.context.repository.settings(self.federation)

    @property
    def running(self) -> bool:
        """Whether new tasks are handed out."""
        return self.federation.state is FederationState.RUNNING

    @property
    def _planner(self) -> RoundPlanner:
        return RoundPlanner(self.context, self.federation)

    @property
    def _models(self) -> RoundModels:
        return RoundModels(self.context, self.federation)

    def advance(self) -> float:
        """Take the next step; return for how many seconds there will be nothing to do."""
        latest = self.context.store.rounds.latest(self.federation.id)
        if latest is not None and latest.state is RoundState.OPEN:
            return self._collect(latest)
        if latest is not None and latest.state is RoundState.CLOSED:
            return self._aggregate(latest)
        if latest is None or latest.number + 1 < self.settings.rounds.count:
            return self._open(latest)
        return self._finish() if self.settings.is_personal(latest.number) else self._open_personal(latest)

    # Select, plan, dispatch, open

    def _is_for_all(self, number: int) -> bool:
        """Return whether a round is for every available device, and waits for all that got a task."""
        strategy = self.context.repository.strategy(self.federation)
        return selects_all(strategy, planning_context(self.settings, number))

    def _dispatch(self, number: int, serial: int, model: Model, body: str, planned_tasks: _Tasks) -> DispatchedRound:
        made = dispatch_round(self.context, self.federation, model, body, planned_tasks, number=number, serial=serial)
        self._planner.note_left_out(made.left_out)
        return made

    def _open(self, done: Round | None) -> float:
        """Open the round after one that is done, or the first."""
        if not self.running:
            return _CHECK_AGAIN
        planner, rounds = self._planner, self.settings.rounds
        free = planner.available()
        # In buffered mode busy devices count too: their updates need an open round.
        busy = self.context.store.tasks.count_open(self.federation.id) if self.settings.buffered else 0
        needed = self.settings.selection.wait_for or rounds.at_least
        if len(free) + busy < needed:
            return self._wait(f"waiting for devices: {len(free) + busy} of {needed} are available")
        number = 0 if done is None else done.number + 1
        model = self._models.first() if done is None else self._models.stored(*result_of(done))
        if self.settings.buffered:
            count = self.settings.buffering.at_once - busy
        else:
            count = len(free) if self._is_for_all(number) else planner.over_selected(self.settings.wanted)
        planned_tasks = planner.plan(number, 1, model, free, count)
        if not busy and len(planned_tasks) < min(rounds.at_least, needed):
            able, why = len(planned_tasks), planner.why_left_out(free)
            return self._wait(f"waiting for devices: {len(free)} are available, but only {able} can do a task{why}")
        now = self.context.now()
        weights, arrays = self._models.keep(model) if done is None else result_of(done)
        dispatched = self._dispatch(number, 1, model, weights, planned_tasks)
        if self._begin(number, weights, arrays, dispatched, now=now, seconds=rounds.deadline):
            self._explain(number, model, dispatched)  # afterwards: devices train meanwhile
        return _AT_ONCE

    def _begin(
        self, number: int, weights: str, arrays: str | None, dispatched: DispatchedRound, *, now: float, seconds: float
    ) -> bool:
        """Open a round with its first tasks, unless another worker was faster."""
        opened = Round(
            federation=self.federation.id,
            number=number,
            model=weights,
            state_arrays=arrays,
            opened_at=now,
            deadline_at=now + seconds,
        )
        tasks = dispatched.tasks
        deadline = self.federation.deadline
        # Later models are those of the round before, and nobody drops them.
        stored = None if number else partial(self._models.are_stored, weights, arrays)
        if not self.context.store.rounds.open(opened, tasks, dispatched.artifacts, deadline=deadline, stored=stored):
            return False
        self._set_reason(None)
        _LOG.info("round opened", extra={"federation": self.federation.id, "round": number, "tasks": len(tasks)})
        self.context.wake([task.device for task in tasks])
        return True

    def _explain(self, number: int, model: Model, dispatched: DispatchedRound) -> None:
        """Note what the strategy reports about its plan. That is for people: if it fails, the round goes on."""
        try:
            devices = {task.device for task in dispatched.tasks}
            figures = self._planner.explain(number, model, devices)
            if figures:
                self.context.store.rounds.note_plan(self.federation.id, number, json.dumps(figures))
        except Exception:
            _LOG.exception("the plan could not be explained", extra={"federation": self.federation.id, "round": number})

    def _open_personal(self, last: Round) -> float:
        """Open the personal round; if no device has a task in it, the federation is finished."""
        planner, model = self._planner, self._models.stored(*result_of(last))
        if not planner.plan_personalisation(model, planner.members()):
            return self._finish()
        if not self.running:
            return _CHECK_AGAIN
        free = planner.available()
        planned_tasks = planner.plan_personalisation(model, free)
        if not planned_tasks:
            # After a restart no device has been seen yet, and in buffered mode devices come and go.
            patience = self.settings.selection.available_within
            if self.settings.buffered and self._others_may_come(set()):
                patience = max(patience, self.settings.rounds.deadline)
            if seconds_since(self.context, last.done_at) >= patience:
                return self._finish()
            return self._wait("waiting for devices to personalise the last model")
        if self.settings.buffered:  # tasks in progress have no round to count in
            self.context.store.tasks.expire(self.federation.id, created_before=math.inf, at=self.context.now())
        now, number = self.context.now(), self.settings.rounds.count
        dispatched = self._dispatch(number, 1, model, result_of(last)[0], planned_tasks)
        seconds = max(self.settings.rounds.deadline, planner.personalisation_seconds(planned_tasks, free))
        self._begin(number, *result_of(last), dispatched, now=now, seconds=seconds)
        return _AT_ONCE

    # Collect, close, or continue with further devices

    def _collect(self, current: Round) -> float:
        current = bounded_round(self.context, self.federation, current)
        if self.settings.is_personal(current.number):
            return self._collect_personal(current)
        now, store = self.context.now(), self.context.store
        if self.settings.buffered and not 0 <= now - current.opened_at <= _GRACE:
            store.tasks.expire(self.federation.id, created_before=now - self.settings.rounds.deadline, at=now)
        ended = store.tasks.counts(self.federation.id, current.number)
        if ended.done >= self.settings.wanted and not self._is_for_all(current.number):
            return self._close(current, "enough updates")
        over = now >= current.deadline_at
        if over or (ended.open == 0 and not self.settings.buffered):
            if ended.done >= self.settings.rounds.at_least:
                return self._close(current, "deadline" if over else "every device answered")
            return self._continue(current, over=over, missing=max(self.settings.wanted - ended.done, 1))
        if self.settings.buffered and self.running:
            self._top_up(current)
            return min(_CHECK_AGAIN, current.deadline_at - now)
        return current.deadline_at - now

    def _collect_personal(self, current: Round) -> float:
        """Wait for the devices of the personal round; others that become available meanwhile may join."""
        now = self.context.now()
        if now >= current.deadline_at:
            return self._close(current, "deadline")
        selected = {task.device for task in self.context.store.tasks.of(self.federation.id, number=current.number)}
        if self.running:  # first: one may have come when the last of the others answered
            self._join_personal(current, selected)
        is_over = self.context.store.tasks.counts(self.federation.id, current.number).open == 0
        if is_over and not (self.settings.buffered and self._others_may_come(selected)):
            return self._close(current, "every device answered")
        return min(_CHECK_AGAIN, current.deadline_at - now)

    def _others_may_come(self, selected: Collection[str]) -> bool:
        """Return whether a device is away that was here within a deadline, as phones are by day."""
        now, selection = self.context.now(), self.settings.selection
        return any(
            now - self.settings.rounds.deadline < device.seen_at < now - selection.available_within
            for device in self._planner.members()
            if device.id not in selected
        )

    def _join_personal(self, current: Round, selected: Collection[str]) -> None:
        planner = self._planner
        free = [device for device in planner.available() if device.id not in selected]
        if not free:
            return
        model = self._models.stored(current.model, current.state_arrays)
        left = current.deadline_at - self.context.now()
        known = {device.id: device for device in free}
        planned_tasks = {
            name: planned
            for name, planned in planner.plan_personalisation(model, free).items()
            if planner.personalisation_seconds({name: planned}, [known[name]]) <= left
        }
        if planned_tasks:
            dispatched = self._dispatch(current.number, len(selected) + 1, model, current.model, planned_tasks)
            self._add(current, dispatched, over=False)

    def _close(self, current: Round, because: str) -> float:
        at, name = self.context.now(), self.federation.id
        if self.context.store.rounds.close(
            name,
            current.number,
            because=because,
            at=at,
            expire=not self.settings.buffered or self.settings.is_personal(current.number),
        ):
            _LOG.info("round closed", extra={"federation": name, "round": current.number, "because": because})
        return _AT_ONCE

    def _continue(self, current: Round, *, over: bool, missing: int) -> float:
        """Continue a round that has too few updates: those it has stay, and further devices are selected for the rest.

        Before the deadline only devices that were not selected yet: one that refused would refuse again. After it the
        round gets a new deadline, and every device without an update may be selected. A device that did not answer is
        not counted on, but its update is still accepted.
        """
        if not self.running:
            return _CHECK_AGAIN
        most = self.settings.rounds.most_attempts
        resumed = current.deadline_at < (self.federation.changed_at or 0.0) <= self.context.now() + CLOCK_SLACK
        if over and most is not None and current.attempt >= most and not resumed:
            return self._give_up(current)
        dispatched = DispatchedRound() if self.settings.buffered else self._further(current, missing, again=over)
        if over and not self.settings.buffered:
            why = self._planner.why_left_out(self._planner.available())
            reason = f"the round waits: no available device can do a task in time{why}"
            self._set_reason(None if dispatched.tasks else reason)
        if not over and not dispatched.tasks:
            return min(_CHECK_AGAIN, current.deadline_at - self.context.now())
        self._add(current, dispatched, over=over)
        return _AT_ONCE

    def _further(self, current: Round, missing: int, *, again: bool) -> DispatchedRound:
        known = self.context.store.tasks.of(self.federation.id, number=current.number)
        left_out = {task.device for task in known if not again or task.state is TaskState.DONE}
        planner = self._planner
        free = [device for device in planner.available() if device.id not in left_out]
        model = self._models.stored(current.model, current.state_arrays)
        planned_tasks = planner.plan(current.number, len(known) + 1, model, free, planner.over_selected(missing))
        return self._dispatch(current.number, len(known) + 1, model, current.model, planned_tasks)

    def _add(self, current: Round, dispatched: DispatchedRound, *, over: bool) -> None:
        added = self.context.store.rounds.add_tasks(
            self.federation.id,
            current.number,
            dispatched.tasks,
            dispatched.artifacts,
            attempt=current.attempt,
            next_attempt=current.attempt + 1 if over else current.attempt,
            deadline_at=self.context.now() + self.settings.rounds.deadline if over else None,
        )
        if added:
            self.context.wake([task.device for task in dispatched.tasks])

    def _give_up(self, current: Round) -> float:
        """Pause for the operator. When resumed, the round gets one more deadline."""
        reason = f"the round had too few updates at {current.attempt} deadlines; check the devices, then resume"
        self.context.store.federations.move(
            self.federation.id,
            FederationState.PAUSED,
            since=[FederationState.RUNNING],
            at=self.context.now(),
            reason=reason,
        )
        return _CHECK_AGAIN

    def _top_up(self, current: Round) -> None:
        """Buffered mode: keep `at_once` devices busy."""
        room = self.settings.buffering.at_once - self.context.store.tasks.count_open(self.federation.id)
        planner = self._planner
        free = planner.available() if room > 0 else []
        if not free:
            return
        model = self._models.stored(current.model, current.state_arrays)
        serial = self.context.store.tasks.count_in_round(self.federation.id, current.number) + 1
        planned_tasks = planner.plan(current.number, serial, model, free, room)
        if planned_tasks:
            self._add(current, self._dispatch(current.number, serial, model, current.model, planned_tasks), over=False)

    # Aggregate, evaluate, done

    def _aggregate(self, closed: Round) -> float:
        started, store = self.context.now(), self.context.store
        faults: dict[str, str] = {}
        tasks = store.tasks.counted(self.federation.id, closed.number)
        if self.settings.is_personal(closed.number):
            weights, arrays, aggregated = closed.model, closed.state_arrays, None
        else:
            aggregated, faults = self._models.aggregated(closed, tasks)
            weights, arrays = self._models.keep(aggregated)
        store.devices.set_left_out(faults)
        counted = [task for task in tasks if task.device not in faults]
        report = self._report(closed, counted, aggregated, max(0.0, self.context.now() - started))
        if store.rounds.finish(
            self.federation.id,
            closed.number,
            next_model=weights,
            next_state_arrays=arrays,
            report=json.dumps(report),
            at=self.context.now(),
            stored=partial(self._models.are_stored, weights, arrays),
        ):
            _LOG.info("round done", extra={"federation": self.federation.id, "round": closed.number, **report})
            drop_old_artifacts(self.context, self.federation.id, closed.number)
            drop_old_models(self.context, self.federation)
            (self.collect_garbage or partial(drop_updates, self.context))(self.federation.id)
        return _AT_ONCE

    def _report(self, closed: Round, tasks: Sequence[Task], model: Model | None, seconds: float) -> dict[str, object]:
        score, failure = None, None
        if self.score is not None and model is not None and self.settings.evaluates(closed.number):
            strategy = self.context.repository.strategy(self.federation)
            score, failure = evaluated(self.score, strategy, model)
        return round_report(
            tasks,
            self.context.store.tasks.counts(self.federation.id, closed.number),
            score,
            combine_seconds=seconds,
            personal=model is None,
            failure=failure,
            left_out=self.context.store.devices.left_out(self.federation.id),
        )

    def _finish(self) -> float:
        active = [FederationState.RUNNING, FederationState.PAUSED]
        at = self.context.now()
        if self.context.store.federations.move(self.federation.id, FederationState.FINISHED, since=active, at=at):
            _LOG.info("federation finished", extra={"federation": self.federation.id})
            self.context.wake([device.id for device in self.context.store.devices.of(self.federation.id)])
        return _AT_ONCE

    def _wait(self, because: str) -> float:
        self._set_reason(because)
        return _CHECK_AGAIN

    def _set_reason(self, reason: str | None) -> None:
        """Show the operator why nothing happens; None if something does."""
        if self.federation.reason != reason:
            self.context.store.federations.set_reason(self.federation.id, reason)

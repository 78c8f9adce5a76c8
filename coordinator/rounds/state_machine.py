"""The rounds of a federation, as a state machine. Everything that ever happens to a round is in this file.

      no round yet, or the last one is DONE
          |  enough devices are available: select, plan, open
          v
        OPEN ----- nobody left to wait for, or deadline over, and too few updates: further devices; new deadline ---+
          |  ^                                                                                                     |
          |  +-----------------------------------------------------------------------------------------------------+
          |  enough updates; or the deadline is over, or nobody is left to wait for, and there are `at_least` updates
          v
       CLOSED ---- which updates count is settled: combine them, evaluate, store the next model
          |
          v
        DONE ----- the next round, or the end of the federation

After the last round there may be one more, in which devices make the last model their own. Its tasks are for every
device that is there, it closes when nobody is left to wait for or at its deadline, and it leaves the model as it is.

`advance` makes one move, or says how long there is nothing to do. It reads where things stand from the database, does
the slow part without holding anything, and then changes the state in one transaction that fails if another worker was
faster. So it may be killed at any point, and called by any number of workers.

Buffered mode is the same machine. A round is then the filling of a buffer: devices get tasks whenever one is free, an
update counts in the round that is open when it comes, however old the model that it started from, and weighs less for
it. Each task has the deadline for itself, and closing a round does not end the tasks that are under way.
"""

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from coordinator.rounds.context import Context
from coordinator.rounds.dispatch import DispatchedRound, dispatch_round
from coordinator.rounds.garbage_collection import drop_old_artifacts, drop_updates
from coordinator.rounds.planner import RoundPlanner
from coordinator.rounds.report import round_report
from coordinator.rounds.stored_updates import StoredUpdates
from coordinator.storage.records import Federation, FederationState, Round, RoundState, Task, TaskState
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import EdgeFLError
from edgefl.federation.evaluation import Score
from edgefl.federation.round_contexts import aggregation_context
from edgefl.federation.settings import FederationSettings
from edgefl.masks import Weights
from edgefl.strategies import Model, PlannedTask
from edgefl.wire import encode_weights

__all__ = ["RoundStateMachine"]

_LOG = logging.getLogger(__name__)
_SOON = 0.0
_LOOK_AGAIN = 0.5
"""Seconds until it is looked again whether devices are there."""
_GRACE = 30.0
"""Seconds of a buffered round in which no task expires: who was told to come again shall not come too late."""


@dataclass(slots=True)
class RoundStateMachine:
    """The rounds of one federation, as one worker sees them."""

    context: Context
    federation: Federation
    score: Callable[[Weights], Score] | None = None
    """Evaluates a model, where the coordinator has data."""
    collect_garbage: Callable[[str], None] | None = None
    """Requests garbage collection after a round; None does it at once."""

    @property
    def settings(self) -> FederationSettings:
        """What the federation was told."""
        return self.context.library.settings(self.federation)

    @property
    def running(self) -> bool:
        """Whether new work is handed out."""
        return self.federation.state is FederationState.RUNNING

    @property
    def _planner(self) -> RoundPlanner:
        return RoundPlanner(self.context, self.federation)

    def advance(self) -> float:
        """Make the next move; return how many seconds nothing will have to be done."""
        latest = self.context.store.rounds.latest(self.federation.id)
        if latest is not None and latest.state is RoundState.OPEN:
            return self._collect(latest)
        if latest is not None and latest.state is RoundState.CLOSED:
            return self._combine(latest)
        if latest is None or latest.number + 1 < self.settings.rounds.count:
            return self._open(latest)
        return self._finish() if self.settings.is_personal(latest.number) else self._open_personal(latest)

    # Select, plan, dispatch, open

    def _dispatch(
        self, number: int, serial: int, model: Model, body: str, planned_tasks: Mapping[str, PlannedTask]
    ) -> DispatchedRound:
        return dispatch_round(self.context, self.federation, model, body, planned_tasks, number=number, serial=serial)

    def _open(self, done: Round | None) -> float:
        """Open the round after one that is done, or the first."""
        if not self.running:
            return _LOOK_AGAIN
        planner, rounds = self._planner, self.settings.rounds
        free = planner.available()
        # In buffered mode devices that are at work are there too, and can deliver only into an open round.
        busy = self.context.store.tasks.count_open(self.federation.id) if self.settings.buffered else 0
        needed = self.settings.selection.wait_for or rounds.at_least
        if len(free) + busy < needed:
            return self._wait(f"waiting for devices: {len(free) + busy} of {needed} are available")
        number = 0 if done is None else done.number + 1
        model = self._first_model() if done is None else self._stored(*_result(done))
        count = (
            self.settings.buffering.at_once - busy
            if self.settings.buffered
            else planner.over_selected(self.settings.wanted)
        )
        planned_tasks = planner.plan(number, 1, model, free, count)
        if not busy and len(planned_tasks) < min(rounds.at_least, needed):
            return self._wait(
                f"waiting for devices: {len(free)} are available, and only {len(planned_tasks)} can do a task"
            )
        now = self.context.now()
        weights, arrays = self._keep(model) if done is None else _result(done)
        dispatched = self._dispatch(number, 1, model, weights, planned_tasks)
        if self._begin(number, weights, arrays, dispatched, now=now, seconds=rounds.deadline):
            self._explain(number, model, dispatched)  # after it: devices are at work meanwhile
        return _SOON

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
        if not self.context.store.rounds.open(opened, tasks, dispatched.artifacts, deadline=deadline):
            return False
        self._say(None)
        _LOG.info("round opened", extra={"federation": self.federation.id, "round": number, "tasks": len(tasks)})
        self.context.tell([task.device for task in tasks])
        return True

    def _explain(self, number: int, model: Model, dispatched: DispatchedRound) -> None:
        """Note what the strategy says of its plan. That is for people: whatever fails here, the round goes on."""
        try:
            devices = {task.device for task in dispatched.tasks}
            figures = self._planner.explain(number, model, devices)
            if figures:
                self.context.store.rounds.note_plan(self.federation.id, number, json.dumps(figures))
        except Exception:
            _LOG.exception("the plan could not be explained", extra={"federation": self.federation.id, "round": number})

    def _open_personal(self, last: Round) -> float:
        """Open the round after the last one; if nobody has anything to do in it, the federation is over."""
        planner, model = self._planner, self._stored(*_result(last))
        if not planner.plan_personalisation(model, planner.members()):
            return self._finish()
        if not self.running:
            return _LOOK_AGAIN
        free = planner.available()
        planned_tasks = planner.plan_personalisation(model, free)
        if not planned_tasks:
            # After a restart nobody has been heard of yet.
            since = max(last.done_at or 0.0, self.context.started)
            if self.context.now() >= since + self.settings.selection.available_within:
                return self._finish()
            return self._wait("waiting for devices to make the last model their own")
        if self.settings.buffered:  # what is still under way has no round to count in
            self.context.store.tasks.expire(self.federation.id, created_before=math.inf, at=self.context.now())
        now, number = self.context.now(), self.settings.rounds.count
        dispatched = self._dispatch(number, 1, model, _result(last)[0], planned_tasks)
        seconds = max(self.settings.rounds.deadline, planner.personalisation_seconds(planned_tasks, free))
        self._begin(number, *_result(last), dispatched, now=now, seconds=seconds)
        return _SOON

    # Collect, close, or go on with further devices

    def _collect(self, current: Round) -> float:
        if self.settings.is_personal(current.number):
            return self._collect_personal(current)
        now, store = self.context.now(), self.context.store
        if self.settings.buffered and now > current.opened_at + _GRACE:
            store.tasks.expire(self.federation.id, created_before=now - self.settings.rounds.deadline, at=now)
        ended = store.tasks.counts(self.federation.id, current.number)
        if ended.done >= self.settings.wanted:
            return self._close(current, "enough updates")
        over = now >= current.deadline_at
        if over or (ended.open == 0 and not self.settings.buffered):
            if ended.done >= self.settings.rounds.at_least:
                return self._close(current, "deadline" if over else "every device answered")
            return self._go_on(current, over=over, missing=self.settings.wanted - ended.done)
        if self.settings.buffered and self.running:
            self._top_up(current)
            return min(_LOOK_AGAIN, current.deadline_at - now)
        return current.deadline_at - now

    def _collect_personal(self, current: Round) -> float:
        """Wait for those who are at it; who comes meanwhile, late from the last round or after a restart, may join."""
        now = self.context.now()
        if self.context.store.tasks.counts(self.federation.id, current.number).open == 0:
            return self._close(current, "every device answered")
        if now >= current.deadline_at:
            return self._close(current, "deadline")
        if self.running:
            self._join_personal(current)
        return min(_LOOK_AGAIN, current.deadline_at - now)

    def _join_personal(self, current: Round) -> None:
        planner = self._planner
        asked = {task.device for task in self.context.store.tasks.of(self.federation.id, number=current.number)}
        free = [device for device in planner.available() if device.id not in asked]
        if not free:
            return
        model = self._stored(current.model, current.state_arrays)
        left = current.deadline_at - self.context.now()
        known = {device.id: device for device in free}
        planned_tasks = {
            name: planned
            for name, planned in planner.plan_personalisation(model, free).items()
            if planner.personalisation_seconds({name: planned}, [known[name]]) <= left
        }
        if planned_tasks:
            self._add(
                current, self._dispatch(current.number, len(asked) + 1, model, current.model, planned_tasks), over=False
            )

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
        return _SOON

    def _go_on(self, current: Round, *, over: bool, missing: int) -> float:
        """Too few updates: what came stays, as it belongs to the same model; further devices are asked for the rest.

        Before the deadline those are devices that were not asked yet: who refused would refuse again. After it the
        round has a new deadline, and everybody is asked whose update it does not have. A device that did not answer is
        not counted on, though its answer is still welcome.
        """
        if not self.running:
            return _LOOK_AGAIN
        most = self.settings.rounds.most_attempts
        resumed = (self.federation.changed_at or 0.0) > current.deadline_at
        if over and most is not None and current.attempt >= most and not resumed:
            return self._give_up(current)
        dispatched = DispatchedRound([], []) if self.settings.buffered else self._further(current, missing, again=over)
        if over and not self.settings.buffered:
            nobody = "the round waits: no device that is there can do a task in time"
            self._say(None if dispatched.tasks else nobody)
        if not over and not dispatched.tasks:
            return min(_LOOK_AGAIN, current.deadline_at - self.context.now())
        self._add(current, dispatched, over=over)
        return _SOON

    def _further(self, current: Round, missing: int, *, again: bool) -> DispatchedRound:
        asked = self.context.store.tasks.of(self.federation.id, number=current.number)
        left_out = {task.device for task in asked if not again or task.state is TaskState.DONE}
        planner = self._planner
        free = [device for device in planner.available() if device.id not in left_out]
        model = self._stored(current.model, current.state_arrays)
        planned_tasks = planner.plan(current.number, len(asked) + 1, model, free, planner.over_selected(missing))
        return self._dispatch(current.number, len(asked) + 1, model, current.model, planned_tasks)

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
            self.context.tell([task.device for task in dispatched.tasks])

    def _give_up(self, current: Round) -> float:
        """Pause for the operator. Resumed, the round gets one more deadline."""
        reason = f"the round had too few updates at {current.attempt} deadlines; see to the devices, resume"
        self.context.store.federations.move(
            self.federation.id,
            FederationState.PAUSED,
            since=[FederationState.RUNNING],
            at=self.context.now(),
            reason=reason,
        )
        return _LOOK_AGAIN

    def _top_up(self, current: Round) -> None:
        """Buffered mode: keep `at_once` devices at work."""
        room = self.settings.buffering.at_once - self.context.store.tasks.count_open(self.federation.id)
        planner = self._planner
        free = planner.available() if room > 0 else []
        if not free:
            return
        model = self._stored(current.model, current.state_arrays)
        serial = self.context.store.tasks.count_in_round(self.federation.id, current.number) + 1
        planned_tasks = planner.plan(current.number, serial, model, free, room)
        if planned_tasks:
            self._add(current, self._dispatch(current.number, serial, model, current.model, planned_tasks), over=False)

    # Combine, evaluate, done

    def _combine(self, closed: Round) -> float:
        started, store = self.context.now(), self.context.store
        tasks = store.tasks.counted(self.federation.id, closed.number)
        if self.settings.is_personal(closed.number):
            weights, arrays, combined = closed.model, closed.state_arrays, None
        else:
            combined = self._combined(closed, tasks)
            weights, arrays = self._keep(combined)
        report = self._report(closed, tasks, combined, started)
        if store.rounds.finish(
            self.federation.id,
            closed.number,
            next_model=weights,
            next_state_arrays=arrays,
            report=json.dumps(report),
            at=self.context.now(),
        ):
            _LOG.info("round done", extra={"federation": self.federation.id, "round": closed.number, **report})
            drop_old_artifacts(self.context, self.federation.id, closed.number)
            (self.collect_garbage or partial(drop_updates, self.context))(self.federation.id)
        return _SOON

    def _combined(self, closed: Round, tasks: Sequence[Task]) -> Model:
        model = self._stored(closed.model, closed.state_arrays)
        updates = StoredUpdates(self.context, self.federation, closed.number, tasks)
        round_context = aggregation_context(self.settings, closed.number)
        return self.context.library.strategy(self.federation).combine(model, updates, round_context)

    def _report(self, closed: Round, tasks: Sequence[Task], model: Model | None, started: float) -> dict[str, object]:
        combine_seconds = self.context.now() - started
        score, failure = None, None
        if self.score is not None and model is not None and self.settings.evaluates(closed.number):
            try:
                score = self.score(model.weights)
            except (EdgeFLError, OSError) as error:  # the model is made: a federation does not stop for its marks
                failure = str(error)
        ended = self.context.store.tasks.counts(self.federation.id, closed.number)
        personal = model is None
        return round_report(tasks, ended, score, combine_seconds=combine_seconds, personal=personal, failure=failure)

    def _finish(self) -> float:
        active = [FederationState.RUNNING, FederationState.PAUSED]
        at = self.context.now()
        if self.context.store.federations.move(self.federation.id, FederationState.FINISHED, since=active, at=at):
            _LOG.info("federation finished", extra={"federation": self.federation.id})
            self.context.tell([device.id for device in self.context.store.devices.of(self.federation.id)])
        return _SOON

    def _wait(self, because: str) -> float:
        self._say(because)
        return _LOOK_AGAIN

    def _say(self, reason: str | None) -> None:
        """Let the operator see why nothing happens, or that something does again."""
        if self.federation.reason != reason:
            self.context.store.federations.set_reason(self.federation.id, reason)

    # Models

    def _first_model(self) -> Model:
        bundle = self.context.library.bundle(self.federation)
        return self.context.library.strategy(self.federation).begin(bundle.graph, bundle_weights(bundle))

    def _stored(self, weights: str, state: str | None) -> Model:
        library = self.context.library
        arrays = {} if state is None else library.arrays(state)
        return Model(library.bundle(self.federation).graph, library.arrays(weights), arrays)

    def _keep(self, model: Model) -> tuple[str, str | None]:
        """Store a model; a whole model is the submodel of a device that has everything, to the byte."""
        about = {"model": model.graph.digest, "mask": self.context.library.mask(model.graph, None).digest}
        keep = self.context.library.keep_arrays
        state = keep(encode_weights(model.state, {"model": model.graph.digest})) if model.state else None
        return keep(encode_weights(model.weights, about)), state


def _result(done: Round) -> tuple[str, str | None]:
    """Return the digests of what a round ended with."""
    if done.next_model is None:
        raise RuntimeError(f"round {done.number} of {done.federation} is done but has no model")
    return done.next_model, done.next_state_arrays

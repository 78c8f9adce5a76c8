"""The rounds of a federation, as a state machine. Everything that ever happens to a round is in this file.

      no round yet, or the last one is DONE
          |  enough devices are available: select, plan, open
          v
        OPEN ----- deadline over, or nobody left to wait for, and too few updates: further devices, new deadline --+
          |  ^                                                                                                     |
          |  +-----------------------------------------------------------------------------------------------------+
          |  enough updates; or the deadline is over, or nobody is left to wait for, and there are `at_least` updates
          v
       CLOSED ---- which updates count is settled: combine them, evaluate, store the next model
          |
          v
        DONE ----- the next round, or the end of the federation

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
from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.context import Context
from coordinator.contributions import Contributions
from coordinator.evaluation import Evaluator
from coordinator.federation_settings import FederationSettings, Mode
from coordinator.library import encode_arrays
from coordinator.orders import Prepared, prepare
from coordinator.reports import round_report
from coordinator.selection import in_order, seed_of
from coordinator.storage.records import Device, Federation, FederationState, Round, RoundState, TaskState
from edgefl.artifacts.submodel import bundle_weights
from edgefl.masks import full_mask
from edgefl.strategies import Model, Moment, Order, Participant
from edgefl.values import Budget, DeviceProfile, loads

__all__ = ["Rounds"]

_LOG = logging.getLogger(__name__)
_SOON = 0.0
_LOOK_AGAIN = 1.0
"""Seconds until it is looked again whether devices are there."""


@dataclass(slots=True)
class Rounds:
    """The rounds of one federation, as one worker sees them."""

    context: Context
    federation: Federation
    evaluator: Evaluator | None = None

    @property
    def settings(self) -> FederationSettings:
        """What the federation was told."""
        return self.context.library.settings(self.federation)

    @property
    def buffered(self) -> bool:
        """Whether nobody waits for anybody."""
        return self.settings.mode is Mode.BUFFERED

    @property
    def wanted(self) -> int:
        """How many updates close a round."""
        return self.settings.buffering.size if self.buffered else self.settings.selection.devices

    def advance(self) -> float:
        """Make the next move; return how many seconds nothing will have to be done."""
        latest = self.context.store.latest_round(self.federation.id)
        if latest is None:
            return self._open(0, self._first_model())
        if latest.state is RoundState.OPEN:
            return self._collect(latest)
        if latest.state is RoundState.CLOSED:
            return self._combine(latest)
        if latest.number + 1 >= self.settings.rounds.count:
            return self._finish()
        return self._open(latest.number + 1, self._stored(latest.next_model, latest.next_state_arrays))

    # Select, plan, open

    def _open(self, number: int, model: Model) -> float:
        if self.federation.state is not FederationState.RUNNING:
            return _LOOK_AGAIN
        free, rounds = self._free(), self.settings.rounds
        if len(free) < (self.settings.selection.wait_for or rounds.at_least):
            return _LOOK_AGAIN
        count = self.settings.buffering.at_once if self.buffered else self._asked(self.wanted)
        orders = self._orders(number, 1, model, free, count)
        if len(orders) < rounds.at_least and not self.buffered:
            return _LOOK_AGAIN
        now = self.context.now()
        prepared = self._prepare(number, 1, model, orders)
        digests = self._keep(model)
        opened = Round(
            federation=self.federation.id,
            number=number,
            model=digests[0],
            state_arrays=digests[1],
            opened_at=now,
            deadline_at=now + rounds.deadline,
        )
        if self.context.store.open_round(opened, prepared.tasks, prepared.artifacts):
            _LOG.info("round opened", extra={"federation": self.federation.id, "round": number, "tasks": len(orders)})
            self.context.tell([task.device for task in prepared.tasks])
        return _SOON

    def _free(self) -> list[Device]:
        since = self.context.now() - self.settings.selection.available_within
        return self.context.store.free_devices(self.federation.id, seen_since=since)

    def _asked(self, wanted: int) -> int:
        return math.ceil(wanted * self.settings.selection.over_select)

    def _orders(self, number: int, attempt: int, model: Model, free: Sequence[Device], count: int) -> dict[str, Order]:
        """Return what the strategy asks of up to `count` devices; those that it leaves out are replaced by others."""
        seed = seed_of(self.settings.seed, "round", number, attempt)
        moment = Moment(number, self.settings.rounds.count, seed, self.settings.work)
        queue = in_order(free, seed)
        chosen, queue = queue[:count], queue[count:]
        while chosen:
            strategy = self.context.library.strategy(self.federation)
            orders = dict(strategy.plan(model, [self._participant(device) for device in chosen], moment))
            left_out = [device for device in chosen if device.id not in orders]
            if not left_out or not queue:
                return orders
            fit = [device for device in chosen if device.id in orders]
            chosen, queue = fit + queue[: len(left_out)], queue[len(left_out) :]
        return {}

    def _participant(self, device: Device) -> Participant:
        profile = loads(DeviceProfile, device.profile)
        graph = self.context.library.bundle(self.federation).graph
        return Participant(
            device_id=device.id,
            profile=profile,
            budget=Budget(
                round_seconds=self.settings.round_share * self.settings.rounds.deadline,
                peak_bytes=profile.memory_free_bytes,
            ),
            samples=device.samples,
            mask=None if device.mask_body is None else self.context.library.mask(graph, device.mask_body),
        )

    def _prepare(self, number: int, attempt: int, model: Model, orders: dict[str, Order]) -> Prepared:
        now = self.context.now()
        return prepare(self.context, self.federation, model, orders, number=number, attempt=attempt, at=now)

    # Collect, close, or go on with further devices

    def _collect(self, current: Round) -> float:
        now, store = self.context.now(), self.context.store
        if self.buffered:
            store.expire_tasks(self.federation.id, created_before=now - self.settings.rounds.deadline, at=now)
        ended = store.ended(self.federation.id, current.number)
        if ended.done >= self.wanted:
            return self._close(current, "enough updates")
        over = now >= current.deadline_at
        if over or (ended.open == 0 and not self.buffered):
            if ended.done >= self.settings.rounds.at_least:
                return self._close(current, "deadline" if over else "every device answered")
            return self._go_on(current, over=over, missing=self.wanted - ended.done, waiting=ended.open)
        if self.buffered:
            self._top_up(current)
            return min(_LOOK_AGAIN, current.deadline_at - now)
        return current.deadline_at - now

    def _close(self, current: Round, because: str) -> float:
        at = self.context.now()
        expire = not self.buffered
        if self.context.store.close_round(self.federation.id, current.number, because=because, at=at, expire=expire):
            _LOG.info(
                "round closed",
                extra={"federation": self.federation.id, "round": current.number, "because": because},
            )
        return _SOON

    def _go_on(self, current: Round, *, over: bool, missing: int, waiting: int) -> float:
        """Too few updates: what came stays, as it belongs to the same model; further devices are asked for the rest."""
        if self.buffered:
            return self._renew(current, Prepared([], []))
        most = self.settings.rounds.most_attempts
        if most is not None and current.attempt % most == 0 and self.federation.state is FederationState.RUNNING:
            return self._give_up(current)
        done = self.context.store.tasks(self.federation.id, number=current.number, state=TaskState.DONE)
        counted = {task.device for task in done}
        free = [device for device in self._free() if device.id not in counted]
        model = self._stored(current.model, current.state_arrays)
        # Who did not answer by the deadline is not counted on, though an answer is still welcome.
        count = self._asked(missing) if over else self._asked(missing) - waiting
        orders = self._orders(current.number, current.attempt + 1, model, free, max(1, count))
        if not orders and not (over and waiting):
            return _LOOK_AGAIN
        return self._renew(current, self._prepare(current.number, current.attempt + 1, model, orders))

    def _renew(self, current: Round, prepared: Prepared) -> float:
        added = self.context.store.add_tasks(
            self.federation.id,
            current.number,
            prepared.tasks,
            prepared.artifacts,
            attempt=current.attempt,
            next_attempt=current.attempt + 1,
            deadline_at=self.context.now() + self.settings.rounds.deadline,
        )
        if added:
            self.context.tell([task.device for task in prepared.tasks])
        return _SOON

    def _give_up(self, current: Round) -> float:
        """Pause for the operator. Resumed, the round begins its next attempt."""
        reason = f"round {current.number} had too few updates {current.attempt} times: see to the devices, then resume"
        self._renew(current, Prepared([], []))
        self.context.store.move_federation(
            self.federation.id,
            FederationState.PAUSED,
            since=[FederationState.RUNNING],
            at=self.context.now(),
            reason=reason,
        )
        return _LOOK_AGAIN

    def _top_up(self, current: Round) -> None:
        """Buffered mode: keep `at_once` devices at work."""
        if self.federation.state is not FederationState.RUNNING:
            return
        store, identifier = self.context.store, self.federation.id
        room = self.settings.buffering.at_once - store.count_open(identifier)
        free = self._free() if room > 0 else []
        if not free:
            return
        model = self._stored(current.model, current.state_arrays)
        attempt = store.count_tasks(identifier, current.number) + 1  # a device may work twice in one round
        orders = self._orders(current.number, attempt, model, free, room)
        prepared = self._prepare(current.number, attempt, model, orders)
        added = store.add_tasks(
            identifier,
            current.number,
            prepared.tasks,
            prepared.artifacts,
            attempt=current.attempt,
            next_attempt=current.attempt,
            deadline_at=current.deadline_at,
        )
        if added:
            self.context.tell([task.device for task in prepared.tasks])

    # Combine, evaluate, done

    def _combine(self, closed: Round) -> float:
        started, store = self.context.now(), self.context.store
        tasks = store.counted(self.federation.id, closed.number)
        model = self._stored(closed.model, closed.state_arrays)
        seed = seed_of(self.settings.seed, "combine", closed.number)
        moment = Moment(closed.number, self.settings.rounds.count, seed, self.settings.work)
        contributions = Contributions(self.context, self.federation, closed.number, tasks)
        combined = self.context.library.strategy(self.federation).combine(model, contributions, moment)
        digests = self._keep(combined)
        last = closed.number + 1 == self.settings.rounds.count
        wanted = self.settings.evaluation
        score = None
        if self.evaluator is not None and wanted is not None and (last or (closed.number + 1) % wanted.every == 0):
            score = self.evaluator.score(combined.weights)
        ended, now = store.ended(self.federation.id, closed.number), self.context.now()
        report = round_report(tasks, ended, score, combine_seconds=now - started)
        if store.finish_round(
            self.federation.id,
            closed.number,
            next_model=digests[0],
            next_state_arrays=digests[1],
            report=json.dumps(report),
            at=now,
        ):
            extra = {"federation": self.federation.id, "round": closed.number, **report}
            _LOG.info("round done", extra=extra)
            self._tidy(closed.number)
        return _SOON

    def _tidy(self, number: int) -> None:
        """Forget what no round needs any more. A crash in between leaves files, never a hole.

        What the next round may use again, another worker may be about to name: weights stay one round longer than they
        must, masks and graphs, which come back more often, ten.
        """
        store, blobs = self.context.store, self.context.blobs
        unread = store.unread_updates(self.federation.id, before_round=number + 1)
        for digest in unread:
            blobs.drop(digest)
        store.forget_updates(unread)
        for kinds, before in ((["weights", "extras"], number), (["mask", "graph"], number - 10)):
            for digest in store.drop_artifacts(self.federation.id, before_round=before, kinds=kinds):
                blobs.drop(digest)

    def _finish(self) -> float:
        ended = [FederationState.RUNNING, FederationState.PAUSED]
        at = self.context.now()
        if self.context.store.move_federation(self.federation.id, FederationState.FINISHED, since=ended, at=at):
            _LOG.info("federation finished", extra={"federation": self.federation.id})
            self.context.tell([device.id for device in self.context.store.devices(self.federation.id)])
        return _SOON

    # Models

    def _first_model(self) -> Model:
        bundle = self.context.library.bundle(self.federation)
        return self.context.library.strategy(self.federation).begin(bundle.graph, bundle_weights(bundle))

    def _stored(self, weights: str | None, state: str | None) -> Model:
        if weights is None:
            raise RuntimeError(f"a round of {self.federation.id} is done but has no model")
        library = self.context.library
        arrays = {} if state is None else library.arrays(state)
        return Model(library.bundle(self.federation).graph, library.arrays(weights), arrays)

    def _keep(self, model: Model) -> tuple[str, str | None]:
        """Store a model; a whole model is the submodel of a device that has everything, to the byte."""
        about = {"model": model.graph.digest, "mask": full_mask(model.graph).digest}
        weights = self.context.blobs.put(encode_arrays(model.weights, about))
        if not model.state:
            return weights, None
        return weights, self.context.blobs.put(encode_arrays(model.state, {"model": model.graph.digest}))

"""A simulated federation: the coordinator's rounds without network, disk or waiting.

Everything that affects the model is real: the strategy, the bodies on the wire, the device's trainer, and the checks of
what it sends (`edgefl.federation` holds what the coordinator shares). Only transport failures are left out.
"""

import logging
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from edgefl.artifacts.bundle import Bundle, pack_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import WireFormatError
from edgefl.federation.capability_check import plan_capable
from edgefl.federation.client_selection import ClientRecord, plan_round, selection_order
from edgefl.federation.evaluation import Score, networks_in, score_of, sum_of
from edgefl.federation.participants import participant_of
from edgefl.federation.seeds import aggregation_context, extract_seed, personalisation_context, planning_context
from edgefl.federation.settings import FederationSettings
from edgefl.federation.strategy import selects_all
from edgefl.federation.updates import client_update_of, mask_after
from edgefl.local_rules import changes_model
from edgefl.masks import Mask, Weights
from edgefl.planning import TrainingLoad
from edgefl.simulation.availability import Availability, Sessions
from edgefl.simulation.buffered_rounds import BufferedRounds, TrainedTask
from edgefl.simulation.device_rounds import device_round, kept_fraction, own_accuracy
from edgefl.simulation.executor import Executor, open_executor
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.job_dispatch import DispatchedJob, JobDispatcher
from edgefl.simulation.jobs import EvaluationJob, TrainingOutcome, evaluation_of
from edgefl.simulation.results import DeviceRound, Fate, PersonalResult, RoundResult
from edgefl.simulation.run_cost import CostLimits, RunCost
from edgefl.simulation.simulated_clock import SimulatedClock, away_between
from edgefl.strategies import ClientUpdate, Participant, PlannedTask, Strategy, check_personal
from edgefl.strategies.held_part import begun, judged_part, note_held, trains_model
from edgefl.wire import ResultBody, decode_result

__all__ = ["SimulatedFederation"]

_LOG = logging.getLogger(__name__)
_TEST_SAMPLES_PER_JOB = 1000


class SimulatedFederation:
    """One federation. Use it in a `with` statement: it may have started processes."""

    def __init__(
        self,
        bundle: Bundle,
        fleet: Sequence[FleetDevice],
        strategy: Strategy,
        settings: FederationSettings,
        *,
        workers: int = 1,
        executor: Executor | None = None,
        weights: Weights | None = None,
        availability: Availability | None = None,
        resumes: bool = False,
    ) -> None:
        """`resumes`: a device that goes offline continues its task when it is back. In buffered mode all do."""
        self.strategy, self.settings, self.fleet = strategy, settings, tuple(fleet)
        self.model = begun(strategy.begin(bundle.graph, bundle_weights(bundle) if weights is None else weights))
        self._executor = open_executor(pack_bundle(bundle), fleet, workers) if executor is None else executor
        self._dispatcher = JobDispatcher(bundle, settings, {one.device_id: place for place, one in enumerate(fleet)})
        self._load: TrainingLoad = getattr(strategy, "load", TrainingLoad())
        self._states = {one.device_id: _DeviceState() for one in fleet}
        self._devices = {one.device_id: one for one in fleet}
        self._left_out: dict[str, str] = {}
        self.stopped: str | None = None
        """Why the rounds ended before the last one: which limit was spent."""
        self.clock = SimulatedClock(
            self.fleet,
            availability or Sessions(settings.seed),
            settings.rounds.deadline,
            settings.seed,
            resumes=resumes,
            available_within=settings.selection.available_within,
            wait_for=settings.selection.wait_for or settings.rounds.at_least,
        )

    def __enter__(self) -> "SimulatedFederation":
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.close()

    def rounds(self, limits: CostLimits | None = None) -> Iterator[RoundResult]:
        """Run all rounds, one for each result that is taken; none opens once a limit is spent."""
        limits = limits or CostLimits()
        until = math.inf if limits.seconds is None else limits.seconds
        cost, count = RunCost(), self.settings.rounds.count
        for result in BufferedRounds(self).run(until) if self.settings.buffered else self._in_turn(until):
            cost, count = cost.after(result), count - 1
            if not limits.reached(cost):
                yield result
                continue
            yield result if result.score is not None else replace(result, score=self.score())
            break
        if count:  # a limit of time is spent by waiting for devices too
            self.stopped = limits.reached(replace(cost, seconds=max(cost.seconds, self.clock.now)))

    def _in_turn(self, until: float) -> Iterator[RoundResult]:
        """Run rounds one after the other; none opens after a simulated time."""
        for number in range(self.settings.rounds.count):
            present = self.clock.present()
            if self.clock.now >= until:
                return
            yield self._round(number, present)

    def personalise(self) -> PersonalResult:
        """Let every device personalise the final model, and evaluate its submodel before and after."""
        began, number = time.perf_counter(), self.settings.rounds.count
        participants = [self._participant(device) for device in self.fleet]
        planned_tasks = plan_capable(self._planned_personalisation, participants).tasks
        masks = {one.device_id: one.mask or self._last_planned_mask(one) for one in participants}
        before = self._evaluate_submodels({device: mask for device, mask in masks.items() if mask is not None})
        own = {device: one.accuracy for device, one in self._states.items() if one.accuracy is not None}
        kept = {device: kept_fraction(mask) for device, mask in masks.items() if mask is not None}
        after, devices = before | own, []
        for dispatched, outcome in self._train(planned_tasks, number):
            body = None if outcome.body is None else decode_result(outcome.body, self.model.graph)
            if body is not None:
                check_personal(self._update(dispatched, body))
                self._note_result(dispatched, outcome, body.next_mask)
            devices.append(self._device_round(dispatched, outcome, body, TrainingLoad()))
            kept[dispatched.device_id] = devices[-1].kept_fraction
            if devices[-1].own_accuracy is not None:
                after[dispatched.device_id] = devices[-1].own_accuracy
        return PersonalResult(before, after, kept, tuple(devices), time.perf_counter() - began)

    def _planned_personalisation(self, participants: Sequence[Participant]) -> Mapping[str, PlannedTask]:
        return self.strategy.personalise(self.model, participants, personalisation_context(self.settings))

    @property
    def masks(self) -> dict[str, Mask]:
        """The mask of each device after its last round; devices that never took part have none."""
        return {device: one.mask for device, one in self._states.items() if one.mask is not None}

    def score(self, mask: Mask | None = None) -> Score | None:
        """Evaluate the part of the global model that devices hold, or any other submodel, on the published test
        samples; None if there are none."""
        samples = len(self.fleet[0].data.dataset.test)
        if not samples:
            return None
        mask = judged_part(self.strategy, self.model) if mask is None else mask
        job = self._evaluation_of(mask)
        jobs = [
            replace(job, begin=begin, end=min(samples, begin + _TEST_SAMPLES_PER_JOB))
            for begin in range(0, samples, _TEST_SAMPLES_PER_JOB)
        ]
        return replace(score_of(sum_of(self._executor.evaluate(jobs))), judged_fraction=kept_fraction(mask))

    def extracted(self, fraction: float) -> tuple[Mask, Score | None]:
        """Evaluate the submodel of this size that the strategy considers the best."""
        mask = self.strategy.extract(self.model, fraction, extract_seed(self.settings.seed))
        return mask, self.score(mask)

    # A round

    def _round(self, number: int, present: Sequence[FleetDevice]) -> RoundResult:
        began, began_at, selection = time.perf_counter(), self.clock.now, self.settings.selection
        wanted, count = selection.devices, math.ceil(selection.devices * selection.over_select)
        if selects_all(self.strategy, planning_context(self.settings, number)):
            wanted = count = max(len(present), 1)
        finished = self.hand_out(number, 1, present, count)
        devices = self.clock.in_time([one.record for one in finished], wanted)
        updates = []
        for one, record in zip(finished, devices, strict=True):
            counts = one.update is not None and record.fate is Fate.ARRIVED
            if one.update is not None and counts:
                updates.append(one.update)
            self.note(one, counts=counts)
        self.aggregate(number, updates)
        took = self.clock.close(devices, wanted)
        score = self.score() if self.settings.evaluates(number) else None
        return RoundResult(number, tuple(devices), score, time.perf_counter() - began, began_at, took)

    def hand_out(self, number: int, serial: int, devices: Sequence[FleetDevice], count: int) -> list[TrainedTask]:
        """Plan for up to some devices with the present model, train their tasks, and check their updates."""
        planned_tasks = self._plan(number, serial, devices, count)
        failing = {name for name in planned_tasks if self.clock.fails(self._devices[name], number)}
        finished = []
        for dispatched, outcome in self._train(planned_tasks, number, failing, serial):
            body = None if outcome.body is None else decode_result(outcome.body, self.model.graph)
            record = self._device_round(dispatched, outcome, body)
            update = None if body is None else self._update(dispatched, body)
            if update is not None and record.fate is Fate.ARRIVED and (why := self._problem(update)) is not None:
                record, update = replace(record, fate=Fate.REFUSED, refused=f"its update was refused: {why}"), None
            finished.append(TrainedTask(dispatched, outcome, record, update))
        return finished

    def _problem(self, update: ClientUpdate) -> str | None:
        """Return why a coordinator would refuse an update; None if it counts."""
        try:
            self.strategy.check(update)
        except WireFormatError as error:
            return error.problem
        return None

    def note(self, finished: TrainedTask, *, counts: bool) -> None:
        """Note what is known of a device after a task."""
        update = finished.update
        if counts and update is not None:
            next_mask = mask_after(self.strategy, self.settings, update)
            self._note_result(finished.dispatched, finished.outcome, next_mask)
        else:
            self._note_failure(finished.dispatched.device_id)

    def aggregate(self, number: int, updates: Sequence[ClientUpdate]) -> None:
        """Make the next model, if there are updates."""
        if updates:
            made = self.strategy.combine(self.model, updates, aggregation_context(self.settings, number))
            masks = [update.mask for update in updates if trains_model(update.rule, update.result.samples)]
            self.model = note_held(self.model, made, masks, number)

    def result_of(self, number: int, devices: Sequence[DeviceRound], wall: float, began_at: float) -> RoundResult:
        """Return the results of a buffered round that ends now."""
        score = self.score() if self.settings.evaluates(number) else None
        return RoundResult(number, tuple(devices), score, wall, began_at, self.clock.now - began_at)

    def _plan(self, number: int, serial: int, present: Sequence[FleetDevice], count: int) -> Mapping[str, PlannedTask]:
        """Return planned tasks for the selected devices; those that the strategy leaves out are replaced by others."""
        round_context = planning_context(self.settings, number, serial)
        queue = selection_order(present, round_context.seed, self._record)
        plan = plan_round(
            self.strategy, self.model, queue, count, round_context, self._participant, lambda device: device.device_id
        )
        for device, reason in plan.left_out.items():
            if self._left_out.get(device) != reason:  # or a long simulation would say it in every round
                _LOG.warning("device %s was left out of round %d: %s", device, number + 1, reason)
        self._left_out |= plan.left_out
        return {device: self._limit_epochs(device, planned) for device, planned in plan.tasks.items()}

    def _limit_epochs(self, device: str, planned: PlannedTask) -> PlannedTask:
        """Return a task with no more epochs than devices of this class run."""
        most = self._devices[device].kind.most_epochs
        if most is None or most >= planned.work.epochs:
            return planned
        return replace(planned, work=replace(planned.work, epochs=most))

    def _train(
        self, planned_tasks: Mapping[str, PlannedTask], number: int, failing: Collection[str] = (), serial: int = 1
    ) -> Iterator[tuple[DispatchedJob, TrainingOutcome]]:
        """Train the tasks of a round. Those whose devices will fail are not trained."""
        jobs = self._dispatcher.dispatch(self.model, planned_tasks, number, serial)
        outcomes = self._executor.train([one.job for one in jobs if one.device_id not in failing])
        for dispatched in jobs:
            yield dispatched, _FAILED if dispatched.device_id in failing else next(outcomes)

    def _update(self, dispatched: DispatchedJob, body: ResultBody) -> ClientUpdate:
        return client_update_of(dispatched.plan, dispatched.planned.mask, self.model.weights, body)

    def _note_result(self, dispatched: DispatchedJob, outcome: TrainingOutcome, next_mask: Mask | None) -> None:
        """Note what is known of a device after a result that counts."""
        before = self._states[dispatched.device_id]
        mask, accuracy = before.mask, before.accuracy
        if changes_model(dispatched.planned.rule):
            mask, accuracy = next_mask or dispatched.planned.mask, own_accuracy(outcome)
        self._states[dispatched.device_id] = _DeviceState(mask, accuracy, before.done + 1, before.failed)

    def _note_failure(self, device: str) -> None:
        before = self._states[device]
        self._states[device] = replace(before, failed=before.failed + 1)

    def _device_round(
        self,
        dispatched: DispatchedJob,
        outcome: TrainingOutcome,
        body: ResultBody | None,
        load: TrainingLoad | None = None,
    ) -> DeviceRound:
        device = self._devices[dispatched.device_id]
        made = device_round(device, dispatched, outcome, body, load or self._load)
        if outcome is _FAILED:
            return replace(made, fate=Fate.LOST)
        if outcome.refused is not None:
            return replace(made, fate=Fate.REFUSED)
        if self.settings.buffered:  # what becomes of it shows when it arrives
            return made
        end = self.clock.end_of(device, made.simulated_seconds)
        return replace(made, fate=end.fate, away_seconds=away_between(0.0, end.seconds, made.simulated_seconds))

    # What strategies are told

    def _record(self, device: FleetDevice) -> ClientRecord:
        state = self._states[device.device_id]
        return ClientRecord(device.device_id, state.done, state.failed)

    def _participant(self, device: FleetDevice) -> Participant:
        state = self._states[device.device_id]
        return participant_of(
            self.settings,
            device.device_id,
            device.profile,
            limits=device.kind.limits,
            samples=device.data.samples,
            mask=state.mask,
            capabilities=device.capabilities,
        )

    def _last_planned_mask(self, participant: Participant) -> Mask | None:
        """Return the mask that a device which never took part would get in the last round."""
        round_context = planning_context(self.settings, self.settings.rounds.count - 1)
        planned = self.strategy.plan(self.model, [participant], round_context).get(participant.device_id)
        return None if planned is None else planned.works_on

    def _evaluate_submodels(self, masks: Mapping[str, Mask]) -> dict[str, float]:
        """Return the accuracy of each device's submodel of the global model on the device's own test samples."""
        made: dict[str, EvaluationJob] = {}
        jobs = []
        for place, device in enumerate(self.fleet):
            mask = masks.get(device.device_id)
            if mask is not None and len(device.test):
                if mask.digest not in made:
                    made[mask.digest] = self._evaluation_of(mask)
                jobs.append((device.device_id, replace(made[mask.digest], device=place)))
        tallies = self._executor.evaluate([job for _, job in jobs])
        return {device: tally.accuracy for (device, _), tally in zip(jobs, tallies, strict=True)}

    def _evaluation_of(self, mask: Mask) -> EvaluationJob:
        return evaluation_of(networks_in(self.strategy, self.model, mask))


_FAILED = TrainingOutcome(None, None, None, 0.0, 0.0)
"""The outcome of a task that failed."""


@dataclass(frozen=True, slots=True)
class _DeviceState:
    """What is known of a device from its last result."""

    mask: Mask | None = None
    accuracy: float | None = None
    """Of its own model."""
    done: int = 0
    failed: int = 0

"""A simulated federation: the rounds of `coordinator.rounds.state_machine` without network, disk or waiting.

Everything that decides about the model is the real thing: the strategy, the bodies on the wire, the device's trainer,
the check of what it sends. What is left out is what can go wrong on the way.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from edgefl.artifacts.bundle import Bundle, pack_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.client_selection import ClientRecord, plan_round, selection_order
from edgefl.federation.seeds import combine_seed, extract_seed, personal_seed, round_seed
from edgefl.local_rules import changes_model
from edgefl.masks import Mask, Weights, full_mask, gather
from edgefl.simulation.availability import Availability, Sessions
from edgefl.simulation.device_rounds import device_round, kept_fraction, own_accuracy
from edgefl.simulation.executor import Executor, open_executor
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.handout import Handed, Handout
from edgefl.simulation.jobs import EvaluationJob, TrainingOutcome
from edgefl.simulation.results import DeviceRound, Fate, PersonalResult, RoundResult, Score
from edgefl.simulation.settings import FederationSettings
from edgefl.simulation.simulated_clock import SimulatedClock
from edgefl.strategies import ClientUpdate, Participant, PlannedTask, RoundContext, Strategy, check_personal
from edgefl.values import Budget, digest_of
from edgefl.wire import ResultBody, decode_result, encode_weights

__all__ = ["SimulatedFederation"]

_PIECE = 1000
"""Published test samples that one worker judges at a time."""


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
        crew: Executor | None = None,
        weights: Weights | None = None,
        availability: Availability | None = None,
    ) -> None:
        self.strategy, self.settings, self.fleet = strategy, settings, tuple(fleet)
        self.model = strategy.begin(bundle.graph, bundle_weights(bundle) if weights is None else weights)
        self._crew = open_executor(pack_bundle(bundle), fleet, workers) if crew is None else crew
        self._handout = Handout(bundle, settings, {one.device_id: place for place, one in enumerate(fleet)})
        self._most_epochs = {one.device_id: one.kind.most_epochs for one in fleet if one.kind.most_epochs is not None}
        self._models = getattr(strategy, "models", 1)
        """How many models a device trains in a round: Ditto's have two."""
        self._standing = {one.device_id: _Standing() for one in fleet}
        self._devices = {one.device_id: one for one in fleet}
        self._clock = SimulatedClock(
            self.fleet, availability or Sessions(settings.seed), settings.deadline, settings.seed
        )

    def __enter__(self) -> "SimulatedFederation":
        return self

    def __exit__(self, *_: object) -> None:
        self._crew.close()

    def rounds(self) -> Iterator[RoundResult]:
        """Do all rounds, one for each result that is asked for."""
        for number in range(self.settings.rounds):
            yield self._round(number)

    def personalise(self) -> PersonalResult:
        """Let every device make the last model its own, and judge what it has before and after."""
        began, number = time.perf_counter(), self.settings.rounds
        everyone = [self._participant(device) for device in self.fleet]
        planned_tasks = self.strategy.personalise(
            self.model, everyone, self._moment(personal_seed(self.settings.seed), number)
        )
        masks = {one.device_id: one.mask or self._usual(one) for one in everyone}
        before = self._judge({device: mask for device, mask in masks.items() if mask is not None})
        own = {device: one.accuracy for device, one in self._standing.items() if one.accuracy is not None}
        kept = {device: kept_fraction(mask) for device, mask in masks.items() if mask is not None}
        after, devices = before | own, []
        for handed, outcome in self._done(planned_tasks, number):
            report = None if outcome.body is None else decode_result(outcome.body, self.model.graph)
            if report is not None:
                self._counted(handed, outcome, report, personal=True)
            devices.append(self._device_round(handed, outcome, report, models=1))
            kept[handed.device_id] = devices[-1].kept_fraction
            if devices[-1].own_accuracy is not None:
                after[handed.device_id] = devices[-1].own_accuracy
        return PersonalResult(before, after, kept, tuple(devices), time.perf_counter() - began)

    @property
    def masks(self) -> dict[str, Mask]:
        """What each device had after its last round; of those that took part."""
        return {device: one.mask for device, one in self._standing.items() if one.mask is not None}

    def score(self, mask: Mask | None = None) -> Score | None:
        """Judge the global model, or a part of it, on the published test samples; None if there are none."""
        samples = len(self.fleet[0].data.dataset.test)
        if not samples:
            return None
        mask = full_mask(self.model.graph) if mask is None else mask
        body = encode_weights(gather(mask, self.model.weights), {})
        digest = digest_of(body)
        pieces = [
            EvaluationJob(None, body, digest, begin=begin, end=min(samples, begin + _PIECE))
            for begin in range(0, samples, _PIECE)
        ]
        marks = list(self._crew.examine(pieces))
        return Score(sum(m.right for m in marks) / samples, sum(m.loss for m in marks) / samples, samples)

    def extracted(self, fraction: float) -> tuple[Mask, Score | None]:
        """Judge the part of the global model that the strategy thinks the best of this size."""
        mask = self.strategy.extract(self.model, fraction, extract_seed(self.settings.seed))
        return mask, self.score(mask)

    # A round

    def _round(self, number: int) -> RoundResult:
        began, present = time.perf_counter(), self._clock.present()
        began_at = self._clock.now
        planned_tasks = self._orders(number, present)
        failing = {name for name in planned_tasks if self._clock.fails(self._devices[name], number)}
        devices, updates = [], []
        for handed, outcome in self._done(planned_tasks, number, failing):
            report = None if outcome.body is None else decode_result(outcome.body, self.model.graph)
            done = self._device_round(handed, outcome, report)
            devices.append(done)
            if report is not None and done.fate is Fate.ARRIVED:
                updates.append(self._counted(handed, outcome, report))
            else:
                self._note_failure(handed.device_id)
        if updates:
            round_context = self._moment(combine_seed(self.settings.seed, number), number)
            self.model = self.strategy.combine(self.model, updates, round_context)
        took = self._clock.close(devices)
        score = self.score() if self.settings.evaluates(number) else None
        return RoundResult(number, tuple(devices), score, time.perf_counter() - began, began_at, took)

    def _orders(self, number: int, present: Sequence[FleetDevice]) -> Mapping[str, PlannedTask]:
        """Return what the strategy asks of the devices that were drawn; those that it leaves out are replaced."""
        round_context = self._moment(round_seed(self.settings.seed, number), number)
        queue = selection_order(present, round_context.seed, self._record)
        asked = plan_round(self.strategy, self.model, queue, self.settings.per_round, round_context, self._participant)
        return {device: self._limited(device, planned) for device, planned in asked.items()}

    def _limited(self, device: str, planned: PlannedTask) -> PlannedTask:
        """Return an order with no more passes than the device makes."""
        most = min(self._most_epochs.get(device, planned.work.epochs), planned.work.epochs)
        return planned if most == planned.work.epochs else replace(planned, work=replace(planned.work, epochs=most))

    def _done(
        self, planned_tasks: Mapping[str, PlannedTask], number: int, failing: Collection[str] = ()
    ) -> Iterator[tuple[Handed, TrainingOutcome]]:
        """Let devices do their tasks; those that will fail are not trained for nothing."""
        tasks = self._handout.tasks(self.model, planned_tasks, number)
        outcomes = self._crew.train([handed.job for handed in tasks if handed.device_id not in failing])
        for handed in tasks:
            yield handed, _NOTHING if handed.device_id in failing else next(outcomes)

    def _counted(
        self, handed: Handed, outcome: TrainingOutcome, report: ResultBody, *, personal: bool = False
    ) -> ClientUpdate:
        """Check what a device sent, and note what is known of it from now on."""
        update = self._contribution(handed, report)
        check_personal(update) if personal else self.strategy.check(update)
        before = self._standing[handed.device_id]
        mask, accuracy = before.mask, before.accuracy
        if changes_model(handed.planned.rule):
            mask, accuracy = report.next_mask or handed.planned.mask, own_accuracy(outcome)
        self._standing[handed.device_id] = _Standing(
            report.result.samples, mask, accuracy, before.done + 1, before.failed
        )
        return update

    def _note_failure(self, device: str) -> None:
        before = self._standing[device]
        self._standing[device] = replace(before, failed=before.failed + 1)

    def _contribution(self, handed: Handed, report: ResultBody) -> ClientUpdate:
        return ClientUpdate(
            device_id=handed.device_id,
            mask=handed.planned.mask,
            rule=handed.plan.rule,
            seed=handed.plan.seed,
            base=self.model.weights,
            result=report.result,
            tensors=report.tensors,
            next_mask=report.next_mask,
        )

    def _device_round(
        self, handed: Handed, outcome: TrainingOutcome, report: ResultBody | None, models: int | None = None
    ) -> DeviceRound:
        device = self._devices[handed.device_id]
        made = device_round(device, handed, outcome, report, self._models if models is None else models)
        if outcome is _NOTHING:
            return replace(made, fate=Fate.LOST)
        if outcome.refused is not None:
            return replace(made, fate=Fate.REFUSED)
        return replace(made, fate=self._clock.fate(device, made.simulated_seconds))

    # What strategies are told

    def _moment(self, seed: int, number: int) -> RoundContext:
        return RoundContext(number, self.settings.rounds, seed, self.settings.work)

    def _record(self, device: FleetDevice) -> ClientRecord:
        standing = self._standing[device.device_id]
        return ClientRecord(device.device_id, standing.done, standing.failed)

    def _participant(self, device: FleetDevice) -> Participant:
        standing = self._standing[device.device_id]
        seconds = self.settings.deadline_share * self.settings.deadline
        limits = Budget(round_seconds=seconds, peak_bytes=device.profile.memory_free_bytes)
        return Participant(
            device.device_id, device.profile, limits.tightened_by(device.kind.limits), standing.samples, standing.mask
        )

    def _usual(self, participant: Participant) -> Mask | None:
        """Return the part that a device which never took part would be given in the last round."""
        number = self.settings.rounds - 1
        round_context = self._moment(round_seed(self.settings.seed, number), number)
        planned = self.strategy.plan(self.model, [participant], round_context).get(participant.device_id)
        return None if planned is None else planned.works_on

    def _judge(self, masks: Mapping[str, Mask]) -> dict[str, float]:
        """Return how good each device's part of the global model is on its own test samples."""
        bodies: dict[str, bytes] = {}
        jobs = []
        for place, device in enumerate(self.fleet):
            mask = masks.get(device.device_id)
            if mask is not None and len(device.test):
                if mask.digest not in bodies:
                    bodies[mask.digest] = encode_weights(gather(mask, self.model.weights), {})
                jobs.append((device.device_id, EvaluationJob(None, bodies[mask.digest], mask.digest, device=place)))
        marks = self._crew.examine([job for _, job in jobs])
        return {device: mark.right / mark.samples for (device, _), mark in zip(jobs, marks, strict=True)}


_NOTHING = TrainingOutcome(None, None, None, 0.0, 0.0)
"""Of a task that failed."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """What is known of a device from its last result."""

    samples: int | None = None
    mask: Mask | None = None
    accuracy: float | None = None
    """Of its own model."""
    done: int = 0
    failed: int = 0

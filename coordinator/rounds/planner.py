"""The planner of one federation: which devices are available, and what its strategy plans for them.

Called by the round state machine. It changes no round: it notes why a device is left out and which programs
are wanted, and corrects times.
"""

import logging
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from coordinator.rounds.context import Context
from coordinator.storage.records import CLOCK_SLACK, Device, Federation
from edgefl.federation.capability_check import UNSAID, plan_capable
from edgefl.federation.client_selection import ClientRecord, participants_of, plan_round, selection_order
from edgefl.federation.participants import participant_of
from edgefl.federation.programs import ProgramCatalogue
from edgefl.federation.seeds import personalisation_context, planning_context
from edgefl.federation.settings import FederationSettings
from edgefl.planning import Correction
from edgefl.strategies import Model, Participant, PlannedTask

__all__ = ["RoundPlanner"]

_LOG = logging.getLogger(__name__)
Value = TypeVar("Value")
MOST_PERSONAL_DEADLINES = 20
"""Deadlines of a round within which a device must be able to personalise the final model."""


@dataclass(frozen=True, slots=True)
class RoundPlanner:
    """Plans the rounds of one federation."""

    context: Context
    federation: Federation

    @property
    def settings(self) -> FederationSettings:
        """What the federation is configured with."""
        return self.context.repository.settings(self.federation)

    @property
    def _programs(self) -> ProgramCatalogue:
        return self.context.programs.of(self.federation)

    def available(self) -> list[Device]:
        """Return the devices that were heard from lately and have no task."""
        now, store = self.context.now(), self.context.store.devices
        free = store.free(self.federation.id, seen_since=now - self.settings.selection.available_within)
        if any(device.seen_at > now + CLOCK_SLACK for device in free):  # or they would be available until then
            store.bound_seen(self.federation.id, now)
        return free

    def members(self) -> list[Device]:
        """Return the devices that are not revoked, available or not."""
        return [device for device in self.context.store.devices.of(self.federation.id) if device.revoked_at is None]

    def over_selected(self, wanted: int) -> int:
        """Return how many devices to select for this number of updates."""
        return math.ceil(wanted * self.settings.selection.over_select)

    def plan(
        self, number: int, serial: int, model: Model, available: Sequence[Device], count: int
    ) -> Mapping[str, PlannedTask]:
        """Return planned tasks for up to `count` devices; those that are left out are replaced by others."""
        round_context = planning_context(self.settings, number, serial)
        strategy = self.context.repository.strategy(self.federation)
        queue = selection_order(available, round_context.seed, _record)
        plan = plan_round(strategy, model, queue, count, round_context, self._participant, _name, self._programs)
        self.context.programs.want(self.federation, plan.wanted)
        self.note_left_out(_by_id(plan.left_out, available), available)
        return _by_id(plan.tasks, available)

    def explain(self, number: int, model: Model, devices: Collection[str]) -> dict[str, float]:
        """Return the strategy's figures about its plan for these devices, by name; some strategies have none."""
        explain = getattr(self.context.repository.strategy(self.federation), "explain", None)
        if explain is None:
            return {}
        chosen = [device for device in self.members() if device.id in devices]
        members, _ = participants_of(chosen, self._participant, _name)
        on_rungs = [self._programs.on_rungs(one) for one in members]
        return dict(explain(model, on_rungs, planning_context(self.settings, number)))

    def plan_personalisation(self, model: Model, devices: Sequence[Device]) -> dict[str, PlannedTask]:
        """Return how devices personalise the final model, without those that cannot do so in time."""
        strategy, context = self.context.repository.strategy(self.federation), personalisation_context(self.settings)
        participants, faults = participants_of(devices, self._participant, _name)
        plan = plan_capable(
            lambda some: strategy.personalise(model, some, context), participants, programs=self._programs
        )
        self.context.programs.want(self.federation, plan.wanted)
        known = {one.device_id: one for one in participants}
        self.note_left_out(_by_id(faults | dict(plan.left_out), devices), devices)
        tasks = _by_id(plan.tasks, devices)
        records = {device.id: device for device in devices}
        return {
            device_id: planned
            for device_id, planned in tasks.items()
            if self._can_personalise(records[device_id], known[records[device_id].name], planned)
        }

    def why_left_out(self, devices: Sequence[Device]) -> str:
        """Return the reason why most of some devices were left out, in brackets; empty if none was."""
        known = self.context.store.devices.left_out(self.federation.id)
        reasons = Counter(known[device.name] for device in devices if device.name in known)
        if not reasons:
            return ""
        ((reason, count),) = reasons.most_common(1)
        return f" ({count} left out: {reason})"

    def note_left_out(self, reasons: Mapping[str, str], devices: Sequence[Device] = ()) -> None:
        """Show the operator why devices get no task, once for each reason."""
        known = {device.id: device.left_out for device in devices}
        news = {device: reason for device, reason in reasons.items() if known.get(device) != reason}
        for device, reason in news.items():
            about = {"federation": self.federation.id, "device": device, "because": reason}
            _LOG.warning("a device was left out of the plan", extra=about)
        self.context.store.devices.set_left_out(news)

    def personalisation_seconds(self, planned_tasks: Mapping[str, PlannedTask], devices: Sequence[Device]) -> float:
        """Return how long the slowest of some devices will take, with the usual reserve."""
        known = {device.id: device for device in devices}
        return max((self._seconds(known[name], planned) for name, planned in planned_tasks.items()), default=0.0)

    def _can_personalise(self, device: Device, participant: Participant, planned: PlannedTask) -> bool:
        most_seconds = MOST_PERSONAL_DEADLINES * self.settings.rounds.deadline
        memory = 0 if planned.predicted is None else planned.predicted.peak_bytes or 0
        most_memory = participant.budget.peak_bytes
        return self._seconds(device, planned) <= most_seconds and (most_memory is None or memory <= most_memory)

    def _seconds(self, device: Device, planned: PlannedTask) -> float:
        predicted = 0.0 if planned.predicted is None else planned.predicted.seconds or 0.0
        correction = self._correction(device)
        if correction is not None:
            predicted *= correction.seconds * correction.strain
        return predicted / max(self.settings.round_share, 0.01)

    def _participant(self, device: Device) -> Participant:
        repository = self.context.repository
        graph = repository.bundle(self.federation).graph
        return participant_of(
            self.settings,
            device.name,
            repository.profile(device),
            correction=self._correction(device),
            samples=device.samples,
            mask=None if device.mask_body is None else repository.mask(graph, device.mask_body),
            capabilities=repository.capabilities(device) or UNSAID,
        )

    def _correction(self, device: Device) -> Correction | None:
        """Return what earlier rounds taught about a device; None where plans do not adapt to it."""
        if not self.settings.budget.adapt:
            return None
        return self.context.corrections.of(device, self.settings.memory_seconds)


def _name(device: Device) -> str:
    return device.name


def _by_id(named: Mapping[str, Value], devices: Sequence[Device]) -> dict[str, Value]:
    """Return what is known by the names of devices by their ids. Strategies know names only: the same names give the
    same models."""
    ids = {device.name: device.id for device in devices}
    return {ids[name]: value for name, value in named.items()}


def _record(device: Device) -> ClientRecord:
    return ClientRecord(device.name, device.done, device.failed)

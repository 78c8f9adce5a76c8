"""Who shall do what: available devices in their order, a strategy's orders for them, and the tasks of those.

Called by the rounds. It decides nothing about rounds, and changes nothing but the blob store.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from coordinator.rounds.context import Context
from coordinator.rounds.dispatch import DispatchedTasks, prepare
from coordinator.storage.records import Device, Federation
from edgefl.federation.client_selection import ClientRecord, plan_round, selection_order
from edgefl.federation.seeds import personal_seed, round_seed
from edgefl.federation.settings import FederationSettings
from edgefl.planning import budget_of
from edgefl.strategies import Model, Participant, PlannedTask, RoundContext

__all__ = ["RoundPlanner"]

LONGEST_PERSONAL = 20
"""Deadlines of a round that a device may take to make the last model its own."""


@dataclass(frozen=True, slots=True)
class RoundPlanner:
    """Makes the plans of one federation."""

    context: Context
    federation: Federation

    @property
    def settings(self) -> FederationSettings:
        """What the federation was told."""
        return self.context.library.settings(self.federation)

    def free(self) -> list[Device]:
        """Return the devices that were heard of lately and have nothing to do."""
        since = self.context.now() - self.settings.selection.available_within
        return self.context.store.devices.free(self.federation.id, seen_since=since)

    def members(self) -> list[Device]:
        """Return the devices that are not revoked, here or away."""
        return [device for device in self.context.store.devices.of(self.federation.id) if device.revoked_at is None]

    def asked(self, wanted: int) -> int:
        """Return how many devices are asked for so many updates."""
        return math.ceil(wanted * self.settings.selection.over_select)

    def planned_tasks(
        self, number: int, serial: int, model: Model, free: Sequence[Device], count: int
    ) -> Mapping[str, PlannedTask]:
        """Return what the strategy asks of up to `count` devices; those that it leaves out are replaced by others."""
        round_context = self._moment(number, serial)
        strategy = self.context.library.strategy(self.federation)
        return plan_round(
            strategy, model, selection_order(free, round_context.seed, _record), count, round_context, self._participant
        )

    def explain(self, number: int, model: Model, devices: Collection[str]) -> dict[str, float]:
        """Return what the strategy says of its plan for these devices: figures by name, of some strategies none."""
        explain = getattr(self.context.library.strategy(self.federation), "explain", None)
        if explain is None:
            return {}
        members = [self._participant(device) for device in self.members() if device.id in devices]
        return dict(explain(model, members, self._moment(number, 1)))

    def personal_orders(self, model: Model, devices: Sequence[Device]) -> dict[str, PlannedTask]:
        """Return what the strategy lets devices do with the last model for themselves, in the time that there is."""
        count = self.settings.rounds.count
        round_context = RoundContext(count, count, personal_seed(self.settings.seed), self.settings.work)
        strategy = self.context.library.strategy(self.federation)
        everybody = {device.id: (device, self._participant(device)) for device in devices}
        planned_tasks = strategy.personalise(
            model, [participant for _, participant in everybody.values()], round_context
        )
        return {name: planned for name, planned in planned_tasks.items() if self._bearable(*everybody[name], planned)}

    def personal_seconds(self, planned_tasks: Mapping[str, PlannedTask], devices: Sequence[Device]) -> float:
        """Return how long the slowest of some devices will take, with the usual reserve."""
        known = {device.id: device for device in devices}
        return max((self._seconds(known[name], planned) for name, planned in planned_tasks.items()), default=0.0)

    def _bearable(self, device: Device, participant: Participant, planned: PlannedTask) -> bool:
        """Whether a device can do an order of its own in a few deadlines, and in its memory."""
        most = LONGEST_PERSONAL * self.settings.rounds.deadline
        memory = 0 if planned.predicted is None else planned.predicted.peak_bytes or 0
        enough = participant.budget.peak_bytes
        return self._seconds(device, planned) <= most and (enough is None or memory <= enough)

    def _seconds(self, device: Device, planned: PlannedTask) -> float:
        predicted = 0.0 if planned.predicted is None else planned.predicted.seconds or 0.0
        if self.settings.budget.adapt:
            learned = self.context.corrections.of(device, self.settings.memory_seconds)
            predicted *= learned.seconds * learned.strain
        return predicted / max(self.settings.round_share, 0.01)

    def prepare(
        self, number: int, serial: int, model: Model, body: str, planned_tasks: Mapping[str, PlannedTask]
    ) -> DispatchedTasks:
        """Return the tasks of some orders on a model with this body; `serial` tells those of one device apart."""
        now = self.context.now()
        return prepare(self.context, self.federation, model, body, planned_tasks, number=number, serial=serial, at=now)

    def _moment(self, number: int, serial: int) -> RoundContext:
        seed = round_seed(self.settings.seed, number, serial)
        return RoundContext(number, self.settings.rounds.count, seed, self.settings.work)

    def _participant(self, device: Device) -> Participant:
        profile = self.context.library.profile(device)
        graph = self.context.library.bundle(self.federation).graph
        caps = self.settings.budget
        budget = budget_of(
            profile,
            deadline_seconds=self.settings.rounds.deadline,
            share=self.settings.round_share,
            memory_bytes=caps.memory,
            joules=caps.joules,
            trainable_parameters=caps.trainable_parameters,
            correction=self.context.corrections.of(device, self.settings.memory_seconds) if caps.adapt else None,
        )
        return Participant(
            device_id=device.id,
            profile=profile,
            budget=budget,
            samples=device.samples,
            mask=None if device.mask_body is None else self.context.library.mask(graph, device.mask_body),
        )


def _record(device: Device) -> ClientRecord:
    return ClientRecord(device.id, device.done, device.failed)

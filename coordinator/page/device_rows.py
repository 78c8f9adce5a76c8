"""One row a device: its state and why, its newest task, and what the last one that it did took against the prediction.

    idle        it is there, and has nothing to do
    asked       it has a task that it has not fetched yet
    training    it has fetched its task
    uploading   its result is arriving (at this process; others of the same coordinator do not show it)
    refused     it said that it would not do its last task, and has had no other since
    gone        it was not heard of for longer than a device may be away

Revoked devices have no row.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coordinator.page.task_facts import MEASURED, PLANNED, facts_of, refusal_of
from coordinator.rounds.context import Context
from coordinator.storage.records import Federation, Pulse, Task, TaskState

__all__ = ["COLUMNS", "DeviceRows", "Row", "row_of"]

COLUMNS = (
    "id",
    "class",
    "state",
    "why",
    "seen_at",
    "since",
    "round",
    *PLANNED,
    *MEASURED,
    "done",
    "failed",
    "samples",
)
"""What is in a row, in order."""

Row = tuple[Any, ...]
_SEEN_SECONDS = 5.0
"""A device that is there is heard of all the time: its row is not new because of that alone, for so long."""
_MANY = 50
"""New devices from which on all are read at once."""
_SEEN = COLUMNS.index("seen_at")


@dataclass(slots=True)
class DeviceRows:
    """The rows of one federation, as they were when it was looked last."""

    context: Context
    federation: str
    rows: dict[str, Row] = field(default_factory=dict)
    """By device, in the order of their ids."""
    pulses: Sequence[Pulse] = ()
    _classes: dict[str, str] = field(default_factory=dict)
    _tasks: dict[str, tuple[TaskState, dict[str, Any], str | None]] = field(default_factory=dict)
    """Of devices' last tasks, and of the last that they did: the state, the facts, and why it was refused."""

    def refresh(self, federation: Federation, uploading: Collection[str]) -> tuple[list[Row], list[str]]:
        """Look again; return the rows that are new or other than before, and the devices that have none any more."""
        pulses = self.context.store.devices.pulses(self.federation)
        self._learn(pulses)
        now = self.context.now()
        away = now - self.context.library.settings(federation).selection.available_within
        rows, changed = {}, []
        for pulse in pulses:
            row = self._row(pulse, away, pulse.device in uploading)
            before = self.rows.get(pulse.device)
            if before is not None and _same(before, row):
                row = before
            else:
                changed.append(row)
            rows[pulse.device] = row
        gone = [device for device in self.rows if device not in rows]
        self.rows, self.pulses = rows, pulses
        return changed, gone

    def _learn(self, pulses: Sequence[Pulse]) -> None:
        """Read what is not known yet: the names of new devices, and the tasks that are new or have ended."""
        new = {pulse.device for pulse in pulses} - self._classes.keys()
        if len(new) > _MANY:
            found = self.context.store.devices.of(self.federation)
        else:
            found = [device for name in new if (device := self.context.store.devices.get(name)) is not None]
        self._classes |= {device.id: _class_of(device.profile) for device in found}
        states = {pulse.result: TaskState.DONE for pulse in pulses if pulse.result is not None}
        states |= {pulse.task: pulse.state for pulse in pulses if pulse.task is not None and pulse.state is not None}
        known = {name: one for name, one in self._tasks.items() if states.get(name) is one[0]}
        for task in self.context.store.tasks.get_all(states.keys() - known.keys()):
            refusal = refusal_of(task)
            why = None if refusal is None else f"{refusal['reason']}: {refusal['message']}"
            known[task.id] = (task.state, facts_of(task), why)
        self._tasks = known

    def _row(self, pulse: Pulse, away: float, uploading: bool) -> Row:
        _, planned, refused = self._tasks.get(pulse.task or "", (None, _NOTHING, None))
        _, measured, _ = self._tasks.get(pulse.result or "", (None, _NOTHING, None))
        state, why, since = _state(pulse, refused, away, uploading)
        return (
            pulse.device,
            self._classes.get(pulse.device, ""),
            state,
            why,
            round(pulse.seen_at, 1),
            None if since is None else round(since, 1),
            pulse.round,
            *(planned[name] for name in PLANNED),
            *(measured[name] for name in MEASURED),
            pulse.done,
            pulse.failed,
            pulse.samples,
        )


_NOTHING: Mapping[str, Any] = dict.fromkeys((*PLANNED, *MEASURED))


def _class_of(profile: str) -> str:
    """Return what kind of device a profile is of, in words."""
    said = json.loads(profile)
    return f"{said['device_name']} ({said['machine']['architecture']})"


def row_of(task: Task) -> dict[str, Any]:
    """Return a task as a row of its device's history."""
    return {
        "id": task.id,
        "round": task.round,
        "state": str(task.state),
        "created_at": task.created_at,
        "handed_at": task.handed_at,
        "ended_at": task.ended_at,
        "refusal": refusal_of(task),
        **facts_of(task),
    }


def _state(pulse: Pulse, refused: str | None, away: float, uploading: bool) -> tuple[str, str | None, float | None]:
    """Return a device's state, why, and since when."""
    if pulse.state is TaskState.OPEN and pulse.handed_at is not None:
        return "uploading" if uploading else "training", None, pulse.handed_at  # who trains does not call
    if pulse.seen_at < away:
        why = "it has not fetched its task" if pulse.state is TaskState.OPEN else refused or _missed(pulse)
        return "gone", why, pulse.seen_at
    if pulse.state is TaskState.OPEN:
        return "asked", None, pulse.created_at
    if pulse.state is TaskState.REFUSED:
        return "refused", refused, pulse.ended_at
    return "idle", refused or _missed(pulse), pulse.ended_at


def _missed(pulse: Pulse) -> str | None:
    if pulse.state is TaskState.EXPIRED and pulse.round is not None:
        return f"round {pulse.round + 1} closed without it"
    if pulse.state is TaskState.LATE and pulse.round is not None:
        return f"its update came after round {pulse.round + 1} closed"
    return None


def _same(before: Row, row: Row) -> bool:
    return (
        abs(row[_SEEN] - before[_SEEN]) < _SEEN_SECONDS
        and before[:_SEEN] == row[:_SEEN]
        and before[_SEEN + 1 :] == row[_SEEN + 1 :]
    )

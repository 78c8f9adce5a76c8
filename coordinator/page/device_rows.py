"""One row for each device: its state and why, its newest task, and what its last completed task took.

    idle        it is available and has no task
    asked       it has a task that it has not fetched yet
    training    it has fetched its task
    uploading   its result is arriving (at this process; other workers do not show it)
    refused     it refused its last task, and has had no other since
    gone        it was not seen for longer than a device may be away

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
    "engine",
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
"""The columns of a row, in order."""

Row = tuple[Any, ...]
_SEEN_SECONDS = 5.0
"""An available device is seen all the time: for this long, that alone does not change its row."""
_MANY = 50
"""With more new devices than this, all devices are read at once."""
_SEEN = COLUMNS.index("seen_at")


@dataclass(slots=True)
class DeviceRows:
    """The rows of one federation, as of the last refresh."""

    context: Context
    federation: str
    rows: dict[str, Row] = field(default_factory=dict)
    """By the name of the device, ordered by id."""
    pulses: Sequence[Pulse] = ()
    _classes: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """The kind of every device, and the engine that it was measured with."""
    _tasks: dict[str, tuple[TaskState, dict[str, Any], str | None]] = field(default_factory=dict)
    """The last task of each device, and the last that it completed: state, facts, and why it was refused."""

    def refresh(self, federation: Federation, uploading: Collection[str]) -> tuple[list[Row], list[str]]:
        """Read the devices again; return the rows that are new or have changed, and the devices that are gone."""
        pulses = self.context.store.devices.pulses(self.federation)
        self._read_new(pulses)
        now = self.context.now()
        away = now - self.context.repository.settings(federation).selection.available_within
        rows, changed = {}, []
        for pulse in pulses:
            row = self._row(pulse, away, pulse.device in uploading)
            before = self.rows.get(pulse.name)
            if before is not None and _same(before, row):
                row = before
            else:
                changed.append(row)
            rows[pulse.name] = row
        gone = [device for device in self.rows if device not in rows]
        self.rows, self.pulses = rows, pulses
        return changed, gone

    def _read_new(self, pulses: Sequence[Pulse]) -> None:
        """Read what is not known yet: the profiles of new devices, and the tasks that are new or have ended."""
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
        kind, engine = self._classes.get(pulse.device, ("", None))
        return (
            pulse.name,
            kind,
            pulse.engine or engine,
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


def _class_of(profile: str) -> tuple[str, str | None]:
    """Return the kind of device of a profile, in words, and the engine that it was measured with."""
    document = json.loads(profile)
    return f"{document['device_name']} ({document['machine']['architecture']})", document.get("engine")


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
        return "uploading" if uploading else "training", None, pulse.handed_at  # a training device does not poll
    if pulse.seen_at < away:
        why = "it has not fetched its task" if pulse.state is TaskState.OPEN else refused or _missed(pulse)
        return "gone", why, pulse.seen_at
    if pulse.state is TaskState.OPEN:
        return "asked", None, pulse.created_at
    left_out = None if pulse.left_out is None else f"left out: {pulse.left_out}"
    if pulse.state is TaskState.REFUSED and left_out is None:
        return "refused", refused, pulse.ended_at
    return "idle", left_out or refused or _missed(pulse), pulse.ended_at


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

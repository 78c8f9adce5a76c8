"""The state of a federation for those who watch it: a snapshot, and what changed since the last one."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from coordinator.federations.lifecycle import existing
from coordinator.federations.overview import Overview, overview_of
from coordinator.page.device_rows import COLUMNS, DeviceRows
from coordinator.rounds.context import Context
from coordinator.storage.records import Pulse, Round, TaskState

__all__ = ["LiveJson", "LiveSnapshot"]


@dataclass(frozen=True, slots=True)
class LiveJson:
    """How federations and rounds are written as JSON: as the routes of operators return them."""

    federation: Callable[[Overview], dict[str, Any]]
    round: Callable[[Round], dict[str, Any]]


class LiveSnapshot:
    """A federation as it was when it was last read. Used by one thread at a time."""

    def __init__(self, context: Context, name: str, written: LiveJson) -> None:
        self._context, self._name, self._written = context, name, written
        self._devices = DeviceRows(context, name)
        self._rounds: dict[int, Round] = {}
        self._known: dict[str, Any] = {}

    def refresh(self, uploading: Collection[str]) -> dict[str, Any]:
        """Read the federation again, and return the time and what has changed."""
        federation = existing(self._context, self._name)
        rows, gone = self._devices.refresh(federation, uploading)
        rounds = self._new_rounds()
        latest = self._rounds[max(self._rounds)] if self._rounds else None
        overview = overview_of(self._context, federation)
        found = {
            "federation": self._written.federation(overview),
            "progress": None if latest is None else self._progress(overview, latest, uploading),
        }
        changes: dict[str, Any] = {"now": self._context.now()}
        changes |= {key: value for key, value in found.items() if self._known.get(key, ...) != value}
        if rounds:
            changes["rounds"] = [self._written.round(one) for one in rounds]
        if rows or gone:
            changes["fleet"] = {"rows": rows, "gone": gone}
        self._known = found
        return changes

    def everything(self) -> dict[str, Any]:
        """Return all that was read."""
        rounds = [self._written.round(one) for one in self._rounds.values()]
        fleet = {"columns": COLUMNS, "rows": list(self._devices.rows.values())}
        return {"now": self._context.now(), **self._known, "rounds": rounds, "fleet": fleet}

    def _new_rounds(self) -> list[Round]:
        """Return the rounds that are new or have changed. Only the last known one can change."""
        found = self._context.store.rounds.of(self._name, since=max(self._rounds, default=0))
        changed = [one for one in found if self._rounds.get(one.number) != one]
        self._rounds |= {one.number: one for one in changed}
        return changed

    def _progress(self, overview: Overview, latest: Round, uploading: Collection[str]) -> dict[str, Any]:
        settings = overview.settings
        personal = settings.is_personal(latest.number)
        ended = self._context.store.tasks.counts(self._name, latest.number)
        # A buffer takes updates of any round: every device that is working may fill it.
        number = None if settings.buffered and not personal else latest.number
        counts = _working(self._devices.pulses, number, uploading)
        return {
            "round": latest.number,
            "state": str(latest.state),
            "personal": personal,
            "selected": ended.done + ended.refused + ended.late + ended.expired + sum(counts.values()),
            **counts,
            "arrived": ended.done,
            "refused": ended.refused,
            "late": ended.late,
            "missing": ended.expired,
            "wanted": overview.wanted,
            "opened_at": latest.opened_at,
            "deadline_at": latest.deadline_at,
            "closed_because": latest.closed_because,
        }


def _working(pulses: Collection[Pulse], number: int | None, uploading: Collection[str]) -> dict[str, int]:
    """Count the open tasks of one round, or of all, by what their devices are doing."""
    open_ones = [pulse for pulse in pulses if pulse.state is TaskState.OPEN and number in (None, pulse.round)]
    handed = [pulse for pulse in open_ones if pulse.handed_at is not None]
    sending = sum(pulse.device in uploading for pulse in handed)
    return {"waiting": len(open_ones) - len(handed), "training": len(handed) - sending, "uploading": sending}

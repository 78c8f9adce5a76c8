"""A federation in a few numbers, for the API, the page and the metrics."""

from dataclasses import dataclass
from typing import Any

from coordinator.rounds.context import Context
from coordinator.rounds.report import read_report
from coordinator.storage.records import Federation, FederationState, Round
from edgefl.artifacts.bundle import Manifest
from edgefl.federation.settings import FederationMode, FederationSettings
from edgefl.values import loads

__all__ = ["Overview", "overview_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A federation in a few numbers."""

    name: str
    settings: FederationSettings
    """What it is configured with, and the deadline it has now."""
    state: FederationState
    reason: str | None
    mode: FederationMode
    strategy: str
    model: str
    rounds: int
    rounds_done: int
    created_at: float
    changed_at: float | None
    round: Round | None
    """The latest round."""
    updates: int
    """Updates that count in it."""
    wanted: int
    """Updates that close it."""
    devices: int
    report: dict[str, Any] | None
    """The report of the last round that is done."""
    personal: dict[str, Any] | None
    """The report of the round that personalised the last model, once it is done."""


def overview_of(context: Context, federation: Federation) -> Overview:
    """Return the overview of a federation."""
    settings = context.repository.settings(federation)
    latest = context.store.rounds.latest(federation.id)
    # Every round before the latest is done: two more at most have the last reports.
    known = [] if latest is None else context.store.rounds.of(federation.id, since=max(0, latest.number - 2))
    reports = {one.number: one.report for one in known if one.report is not None}
    personal = reports.pop(settings.rounds.count, None)
    wanted = settings.wanted
    if latest is not None and settings.is_personal(latest.number):
        wanted = context.store.tasks.count_in_round(federation.id, latest.number)
    return Overview(
        name=federation.id,
        settings=settings,
        state=federation.state,
        reason=federation.reason,
        mode=settings.mode,
        strategy=settings.strategy.name,
        model=loads(Manifest, federation.manifest).model,
        rounds=settings.rounds.count,
        rounds_done=max(reports, default=-1) + 1,
        created_at=federation.created_at,
        changed_at=federation.changed_at,
        round=latest,
        updates=0 if latest is None else context.store.tasks.counts(federation.id, latest.number).done,
        wanted=wanted,
        devices=context.store.devices.count(federation.id),
        report=read_report(reports[max(reports)]) if reports else None,
        personal=read_report(personal),
    )

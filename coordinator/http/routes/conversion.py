"""Converts records to the models that operators get."""

import json
from dataclasses import asdict

from coordinator.federations.join_codes import join_line, qr_code
from coordinator.federations.overview import Overview
from coordinator.http.routes.view_models import (
    AuditEntryView,
    DeviceView,
    FederationView,
    KeyView,
    NewKeyView,
    NewTokenView,
    ProgramView,
    RoundView,
    TaskView,
    TokenView,
)
from coordinator.page.live_snapshot import LiveJson
from coordinator.rounds.report import read_report
from coordinator.storage.records import AuditEntry, Device, JoinKey, OperatorToken, ProgramRecord, Round, Task, name_of
from edgefl.pairing import Pairing
from edgefl.planning import Ladder
from edgefl.values import ProgramSpec, loads, to_json

__all__ = [
    "LIVE_JSON",
    "audit_entry_view",
    "device_view",
    "federation_view",
    "key_view",
    "new_key_view",
    "new_token_view",
    "program_view",
    "round_view",
    "task_view",
    "token_view",
]


def federation_view(overview: Overview, *, whole: bool = False) -> FederationView:
    """Return the view of a federation; with `whole`, including its settings."""
    return FederationView(
        name=overview.name,
        state=overview.state,
        reason=overview.reason,
        mode=overview.mode,
        strategy=overview.strategy,
        model=overview.model,
        rounds=overview.rounds,
        rounds_done=overview.rounds_done,
        round=None if overview.round is None else round_view(overview.round),
        updates=overview.updates,
        wanted=overview.wanted,
        devices=overview.devices,
        accuracy=(overview.report or {}).get("accuracy"),
        judged_fraction=(overview.report or {}).get("judged_fraction"),
        report=overview.report,
        personal=overview.personal,
        created_at=overview.created_at,
        changed_at=overview.changed_at,
        settings=to_json(overview.settings) if whole else None,
    )


def round_view(one: Round) -> RoundView:
    """Return the view of a round."""
    return RoundView(
        number=one.number,
        state=one.state,
        attempt=one.attempt,
        model=one.model,
        opened_at=one.opened_at,
        deadline_at=one.deadline_at,
        closed_at=one.closed_at,
        closed_because=one.closed_because,
        done_at=one.done_at,
        next_model=one.next_model,
        model_kept=one.model_kept and one.next_model is not None,
        report=read_report(one.report),
    )


LIVE_JSON = LiveJson(
    federation=lambda overview: federation_view(overview, whole=True).model_dump(),
    round=lambda one: round_view(one).model_dump(),
)
"""The views of live updates."""


def device_view(device: Device, *, available_since: float) -> DeviceView:
    """Return the view of a device; it counts as available if it was seen since then."""
    seen = device.seen_at >= available_since
    return DeviceView(
        id=device.name,
        state="revoked" if device.revoked_at is not None else "available" if seen else "away",
        software=device.software,
        enrolled_at=device.enrolled_at,
        seen_at=device.seen_at,
        revoked_at=device.revoked_at,
        key=device.key,
        done=device.done,
        failed=device.failed,
        samples=device.samples,
        engine=device.engine or json.loads(device.profile).get("engine"),
        left_out=device.left_out,
        capabilities=None if device.capabilities is None else json.loads(device.capabilities),
        profile=json.loads(device.profile),
    )


def task_view(task: Task) -> TaskView:
    """Return the view of a task and its result."""
    return TaskView(
        id=task.id,
        round=task.round,
        device=name_of(task.device),
        state=task.state,
        created_at=task.created_at,
        handed_at=task.handed_at,
        ended_at=task.ended_at,
        counted_in=task.counted_in,
        kept_fraction=task.kept_fraction,
        trained_fraction=task.trained_fraction,
        rung=task.rung,
        update=task.update,
        result=None if task.result is None else json.loads(task.result),
        refusal=None if task.refusal is None else json.loads(task.refusal),
    )


def program_view(one: ProgramRecord, ladder: Ladder) -> ProgramView:
    """Return the view of a program, with its rung on a federation's ladder."""
    spec = loads(ProgramSpec, one.spec)
    document = json.loads(one.program or "{}")
    return ProgramView(
        key=one.key,
        role=spec.role.value,
        rung=ladder.rung_of(spec),
        batch_size=spec.batch_size,
        state=one.state.value,
        demand=one.demand,
        wanted_at=one.wanted_at,
        changed_at=one.changed_at,
        worker=one.worker,
        lease_until=one.lease_until,
        tries=one.tries,
        reason=one.reason,
        size=document.get("size"),
        peak_bytes=document.get("peak_bytes"),
        made_with=document.get("made_with"),
    )


def key_view(key: JoinKey) -> KeyView:
    """Return the view of a join key, without its hash."""
    return KeyView(
        id=key.id,
        label=key.label,
        created_at=key.created_at,
        uses=key.uses,
        most_uses=key.most_uses,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
    )


def token_view(token: OperatorToken) -> TokenView:
    """Return the view of an operator's token, without its hash."""
    return TokenView.model_validate({name: getattr(token, name) for name in TokenView.model_fields})


def new_token_view(token: OperatorToken, secret: str) -> NewTokenView:
    """Return the view of a new token, with the token itself."""
    return NewTokenView(token=secret, **token_view(token).model_dump())


def audit_entry_view(entry: AuditEntry) -> AuditEntryView:
    """Return the view of an entry of the audit log."""
    return AuditEntryView.model_validate(asdict(entry))


def new_key_view(key: JoinKey, secret: str, pairing: Pairing | None = None) -> NewKeyView:
    """Return the view of a new join key, with the key itself; with what a device needs to join, also how it joins."""
    view = NewKeyView(key=secret, **key_view(key).model_dump())
    if pairing is not None:
        view.uri, view.app_uri = pairing.page_uri(), pairing.app_uri()
        view.join, view.qr, view.app_qr = join_line(pairing), qr_code(view.uri), qr_code(view.app_uri)
    return view

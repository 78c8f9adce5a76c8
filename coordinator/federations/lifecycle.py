"""The life cycle of federations: create, start, pause, resume, abort; deadlines and join keys.

Routes and `edgefl serve` call this. It raises `CoordinatorError` for what is not possible. `by` is who the audit log
says did it.
"""

import secrets
from enum import StrEnum
from typing import Any

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.federations.tokens import hash_of, new_token
from coordinator.rounds.context import Context
from coordinator.rounds.dispatch import shared_artifacts
from coordinator.rounds.evaluation import check_data
from coordinator.rounds.program_catalogue import bundled_programs
from coordinator.storage.records import (
    COORDINATOR,
    OVER,
    Actor,
    Device,
    Federation,
    FederationState,
    JoinKey,
    Round,
    RoundState,
)
from edgefl.artifacts.bundle import Bundle, pack_bundle, program_file, unpack_bundle
from edgefl.artifacts.program_check import check_program_file, check_programs
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.sample import sample_of
from edgefl.federation.settings import FederationSettings
from edgefl.federation.strategy import check_features, federation_strategy
from edgefl.values import dumps, loads, to_json

__all__ = [
    "Verb",
    "change_deadline",
    "create",
    "existing",
    "existing_device",
    "move",
    "new_key",
]

_CREATED, _RUNNING, _PAUSED = FederationState.CREATED, FederationState.RUNNING, FederationState.PAUSED


class Verb(StrEnum):
    """What an operator can do with a federation."""

    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"


_MOVES = {
    Verb.START: ((_CREATED,), _RUNNING),
    Verb.PAUSE: ((_RUNNING,), _PAUSED),
    Verb.RESUME: ((_PAUSED,), _RUNNING),
    Verb.ABORT: ((_CREATED, _RUNNING, _PAUSED), FederationState.ABORTED),
}


def create(
    context: Context, settings: FederationSettings, data: bytes, *, by: Actor = COORDINATOR
) -> tuple[Federation, bool]:
    """Create a federation from its settings and a bundle; return it, and whether it is new. Creating the same one again
    changes nothing."""
    bundle = unpack_bundle(data)
    _check(settings, bundle)
    packed = pack_bundle(bundle)  # equal bundles get the same bytes, however they were zipped
    federation = Federation(
        id=settings.name,
        settings=dumps(settings),
        manifest=dumps(bundle.manifest),
        bundle=context.blobs.put(packed),
        created_at=context.now(),
    )
    new = context.store.federations.add(federation, by=by)
    known = existing(context, settings.name)
    # Also for a known one: the process may have been killed before it added them.
    context.store.artifacts.add(shared_artifacts(context, known))
    if known.bundle == federation.bundle:
        _add_programs(context, known, bundle)
    if new:
        return known, True
    # As values: a version that has new settings writes them differently.
    same = {
        "settings": loads(FederationSettings, known.settings) == settings,
        "bundle": known.bundle == federation.bundle,
    }
    other = [name for name, equal in same.items() if not equal]
    if other:
        raise CoordinatorError(
            ErrorReason.CONFLICT,
            f"the federation {settings.name!r} already exists with {_difference(known, settings, other)}",
            fix="Give the new one another name, or use the same settings and bundle.",
        )
    return known, False


def _add_programs(context: Context, federation: Federation, bundle: Bundle) -> None:
    """Let devices use the programs that come with the bundle."""
    made, bodies = bundled_programs(federation, bundle, context.now())
    if made:
        context.blobs.put_all(bodies)
        context.store.programs.deliver_all(made, audited=False)


def existing(context: Context, name: str) -> Federation:
    """Return a federation. Raise `CoordinatorError` if it does not exist."""
    federation = context.store.federations.get(name)
    if federation is None:
        raise CoordinatorError(
            ErrorReason.NOT_FOUND, f"there is no federation {name!r}", fix="List them with: edgefl fed list"
        )
    return federation


def existing_device(context: Context, name: str, device_id: str) -> Device:
    """Return a device of a federation by its name. Raise `CoordinatorError` if it does not exist."""
    device = context.store.devices.named(name, device_id)
    if device is None:
        raise CoordinatorError(
            ErrorReason.NOT_FOUND,
            f"{name!r} has no device {device_id!r}",
            fix=f"List them with: edgefl fed devices {name}",
        )
    return device


def move(context: Context, name: str, verb: Verb, reason: str | None = None, *, by: Actor = COORDINATOR) -> Federation:
    """Start, pause, resume or abort a federation. Do nothing if it is in that state already."""
    since, to = _MOVES[verb]
    federation = existing(context, name)
    moved = context.store.federations.move(name, to, since=since, at=context.now(), reason=reason, by=by)
    if not moved and federation.state is not to:
        raise CoordinatorError(
            ErrorReason.CONFLICT,
            f"federation {name!r} is {federation.state}, so you cannot {verb} it",
            fix=f"It must be {' or '.join(since)} for that.",
        )
    if moved and to is FederationState.ABORTED:
        context.wake([device.id for device in context.store.devices.of(name)])
    return existing(context, name)


def change_deadline(
    context: Context, name: str, seconds: float, closes_in: float | None = None, *, by: Actor = COORDINATOR
) -> Federation:
    """Let rounds last this long from now on. The open one closes in `closes_in` seconds or, without that, earlier or
    later by the difference; devices that already have their task keep the deadline they got with it."""
    while True:
        federation = existing(context, name)
        if federation.state in OVER:
            raise CoordinatorError(
                ErrorReason.CONFLICT,
                f"federation {name!r} is {federation.state}",
                fix="A federation that has ended has no more deadlines.",
            )
        settings, latest = context.repository.settings(federation), context.store.rounds.latest(name)
        later = seconds - settings.rounds.deadline
        if latest is not None and settings.is_personal(latest.number):
            later = max(0.0, later)  # its devices got as much time as they need
        closes_at = None if closes_in is None else context.now() + closes_in
        _check_closing(name, latest, settings, seconds, closes_in)
        if context.store.federations.set_deadline(
            name,
            seconds,
            before=federation.deadline,
            later=later,
            closes_at=closes_at,
            at=context.now(),
            by=by,
        ):
            return existing(context, name)


def _check_closing(
    name: str, latest: Round | None, settings: FederationSettings, seconds: float, closes_in: float | None
) -> None:
    if closes_in is None:
        return
    if latest is None or latest.state is not RoundState.OPEN:
        raise CoordinatorError(
            ErrorReason.CONFLICT,
            f"federation {name!r} has no open round that could close in {closes_in:g} s",
            fix="Change the deadline alone; it is that of the next round.",
        )
    if closes_in > seconds and not settings.is_personal(latest.number):
        raise CoordinatorError(
            ErrorReason.CONFLICT,
            f"the open round cannot close in {closes_in:g} s if rounds last {seconds:g} s",
            fix="Let rounds last longer too.",
        )


def new_key(
    context: Context,
    name: str,
    *,
    label: str = "",
    most_uses: int | None = None,
    expires_at: float | None = None,
    by: Actor = COORDINATOR,
) -> tuple[JoinKey, str]:
    """Create a join key; return its record and the key itself, which is not stored."""
    federation = existing(context, name)
    secret = new_token("key")
    key = JoinKey(
        id=secrets.token_hex(6),
        federation=federation.id,
        hash=hash_of(secret),
        label=label,
        created_at=context.now(),
        most_uses=most_uses,
        expires_at=expires_at,
    )
    context.store.keys.add(key, by=by)
    return key, secret


def _check(settings: FederationSettings, bundle: Bundle) -> None:
    """Reject now what would fail in the first round."""
    check_programs(bundle.manifest.programs, bundle)
    for program in bundle.manifest.programs:
        check_program_file(bundle.files[program_file(program.spec)])
    strategy = federation_strategy(settings)
    strategy.begin(bundle.graph, bundle_weights(bundle))
    check_features(strategy, bundle)
    data = None if settings.evaluation is None else check_data(bundle, settings.evaluation)
    sample_of(settings, bundle, lambda: data)


def _difference(known: Federation, settings: FederationSettings, other: list[str]) -> str:
    if "settings" not in other:
        return "another model"
    before, after = _leaves(to_json(loads(FederationSettings, known.settings))), _leaves(to_json(settings))
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    differences = [f"{name} is {before.get(name)!r}, not {after.get(name)!r}" for name in names[:5]]
    return f"other settings ({', '.join(differences)})"


def _leaves(data: Any, path: str = "") -> dict[str, Any]:
    """Return the plain values of nested objects by path."""
    if not isinstance(data, dict):
        return {path: data}
    return {
        name: leaf for key, value in data.items() for name, leaf in _leaves(value, f"{path}.{key}".strip(".")).items()
    }

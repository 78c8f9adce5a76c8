"""A federation of a few devices in a store, and the values that tests of the store need again and again."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from coordinator.storage.records import (
    Admission,
    Artifact,
    Device,
    Federation,
    FederationState,
    JoinKey,
    OperatorRole,
    OperatorToken,
    Round,
    Task,
    Upload,
)
from coordinator.storage.store import Store

FEDERATION = Federation(id="fed", settings="{}", manifest="{}", bundle="sha256:" + "b" * 64, created_at=1.0)
KEY = JoinKey(id="key", federation="fed", hash="hash of key", label="for all", created_at=1.0)


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def running(store: Store, devices: int = 3, name: str = "fed") -> list[str]:
    """Add a running federation with devices, and return their ids, which are in order."""
    key = replace(KEY, id=f"{name}-key", federation=name, hash=f"hash of {name}-key")
    assert store.federations.add(replace(FEDERATION, id=name))
    assert store.federations.move(name, FederationState.RUNNING, since=[FederationState.CREATED], at=2.0)
    store.keys.add(key)
    ids = [f"{name}-{number:03d}" for number in range(devices)]
    for device in ids:
        assert store.devices.enrol(a_device(device), key.hash)[0] is Admission.ADMITTED
    return ids


def a_token(name: str, role: OperatorRole = OperatorRole.ADMIN, *, at: float = 4.0) -> OperatorToken:
    hashed = digest(f"{name} {at}")
    return OperatorToken(id=f"{name}-{at}", name=name, role=role, hash=hashed, created_at=at)


def a_device(name: str, *, enrolment: str | None = None, at: float = 3.0) -> Device:
    return Device(
        id=name,
        federation="taken from the key",
        enrolment_id=enrolment or f"enrolment of {name}",
        token_hash=digest(f"token of {name}"),
        key="taken from the key",
        profile='{"memory": 1}',
        software="edgefl 0.1.0",
        enrolled_at=at,
        seen_at=at,
    )


def a_round(number: int = 0, *, federation: str = "fed") -> Round:
    model = digest(f"model {number}")
    return Round(federation=federation, number=number, model=model, opened_at=4.0, deadline_at=60.0)


def a_task(device: str, number: int = 0, *, federation: str = "fed", names: Sequence[str] = ()) -> Task:
    """A task whose plan gives a mask and names further digests."""
    plan = json.dumps({"mask_body": digest(f"mask of {device}"), "others": list(names)})
    return Task(
        id=name_of(device, number), federation=federation, round=number, device=device, plan=plan, created_at=4.0
    )


def name_of(device: str, number: int = 0) -> str:
    return f"task-{number}-{device}"


def open_round(store: Store, devices: Iterable[str], number: int = 0, *, federation: str = "fed") -> list[str]:
    """Open a round with a task for each of the devices, and return the tasks' ids."""
    tasks = [a_task(device, number, federation=federation) for device in devices]
    assert store.rounds.open(a_round(number, federation=federation), tasks, [])
    return [task.id for task in tasks]


def finish_round(store: Store, number: int = 0, *, federation: str = "fed", expire: bool = True) -> None:
    assert store.rounds.close(federation, number, because="enough", at=50.0, expire=expire)
    model = digest(f"model {number + 1}")
    assert store.rounds.finish(federation, number, next_model=model, next_state_arrays=None, report="{}", at=51.0)


def an_upload(device: str, number: int = 0, *, body: str | None = None, staleness: int | None = None) -> Upload:
    """The update of a device's task; with a staleness, in buffered mode."""
    return Upload(
        task=name_of(device, number),
        device=device,
        update=digest(body or f"update of {name_of(device, number)}"),
        result='{"loss": 1}',
        samples=10,
        at=20.0,
        buffered=staleness is not None,
        most_staleness=staleness or 0,
    )


def an_artifact(text: str, number: int | None = None, *, federation: str = "fed", kind: str = "weights") -> Artifact:
    return Artifact(federation=federation, digest=digest(text), kind=kind, size=len(text), round=number)

"""The audit log: an entry in the transaction of every action, in one chain, and no way to change or remove it."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from coordinator.federations.tokens import OperatorRole, new_token
from coordinator.storage.audit_chain import first_break
from coordinator.storage.records import Actor, AuditEntry, AuditEvent, AuditOutcome, FederationState
from coordinator.storage.store import Store
from tests.coordinator.storage.small_federation import FEDERATION, KEY, a_device, running

BY = Actor("admin", "alice", "10.0.0.1")


def event(number: int = 0, **more: Any) -> AuditEvent:
    return replace(AuditEvent(at=float(number), by=BY, action="test", target=f"object {number}"), **more)


def since(store: Store, before: AuditEntry | None) -> list[AuditEntry]:
    return store.audit.page(0 if before is None else before.number)


def breaks(entries: Sequence[AuditEntry]) -> int | None:
    return first_break(asdict(entry) for entry in entries)


def test_every_action_on_a_federation_leaves_one_entry_and_what_did_not_happen_leaves_none(store: Store) -> None:
    before, created, run = store.audit.last(), FederationState.CREATED, FederationState.RUNNING
    for _ in range(2):
        store.federations.add(FEDERATION, by=BY)
        store.federations.move("fed", run, since=[created], at=2.0, by=BY)
        store.federations.set_deadline("fed", 60.0, before=None, later=0.0, at=3.0, by=BY)
    store.federations.move("fed", FederationState.PAUSED, since=[run], at=4.0, reason="too few updates")
    store.federations.move("fed", run, since=[FederationState.PAUSED], at=5.0, by=BY)
    store.keys.add(replace(KEY, most_uses=1), by=BY)
    store.devices.enrol(a_device("pi"), KEY.hash, address="10.0.0.9")
    store.devices.enrol(a_device("pi"), KEY.hash, address="10.0.0.9")
    store.devices.enrol(a_device("other"), KEY.hash, address="10.0.0.9")
    for _ in range(2):
        store.devices.revoke("pi", 6.0, by=BY)
        store.keys.revoke("fed", "key", 7.0, by=BY)
    store.federations.move("fed", FederationState.ABORTED, since=[run], at=8.0, by=BY, reason="wrong labels")
    entries = since(store, before)
    assert [(entry.action, entry.target, entry.actor) for entry in entries] == [
        ("federation.create", "fed", "alice"),
        ("federation.start", "fed", "alice"),
        ("federation.deadline", "fed", "alice"),
        ("federation.pause", "fed", ""),
        ("federation.resume", "fed", "alice"),
        ("key.create", "key", "alice"),
        ("device.enrol", "pi", "key"),
        ("device.revoke", "pi", "alice"),
        ("key.revoke", "key", "alice"),
        ("federation.abort", "fed", "alice"),
    ]
    kinds = {entry.action: (entry.kind, entry.address) for entry in entries}
    assert kinds["federation.pause"] == ("coordinator", "")
    assert kinds["device.enrol"] == ("key", "10.0.0.9")
    assert json.loads(entries[-1].detail) == {"reason": "wrong labels"}
    assert {entry.outcome for entry in entries} == {"done"}


def test_entries_are_numbered_without_gaps_and_chained(store: Store) -> None:
    before = store.audit.last()
    store.audit.add(event(1), event(2, outcome=AuditOutcome.REFUSED, count=7))
    store.audit.add()
    store.audit.add(event(3))
    first, second, third = since(store, before)
    assert (second.number, third.number) == (first.number + 1, first.number + 2)
    assert (second.outcome, second.count) == ("refused", 7)
    assert store.audit.last() == third
    everything = store.audit.page(most=10**6)
    assert breaks(everything) is None
    index = len(everything) - 2
    forged = [*everything[:index], replace(second, target="nothing"), third]
    assert breaks(forged) == second.number
    assert breaks([*everything[:index], third]) == second.number
    assert first_break([asdict(third)], (second.number, second.hash)) is None


def test_an_action_that_is_rolled_back_leaves_no_entry(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    running(store)
    before = store.audit.last()

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("coordinator.storage.federation_store.record", full)
        with pytest.raises(OSError, match="no space"):
            store.federations.move("fed", FederationState.PAUSED, since=[FederationState.RUNNING], at=9.0, by=BY)
    found = store.federations.get("fed")
    assert found is not None
    assert found.state is FederationState.RUNNING, "what cannot be recorded is not done"
    assert since(store, before) == []


def test_many_writers_make_one_chain(store: Store) -> None:
    before = store.audit.last()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: store.audit.add(event(number)), range(64)))
    entries = since(store, before)
    assert {entry.target for entry in entries} == {f"object {number}" for number in range(64)}
    assert breaks(store.audit.page(most=10**6)) is None


CHANGES = [
    "UPDATE audit SET actor = 'mallory'",
    "UPDATE audit SET number = number + 1000000",
    "DELETE FROM audit",
    "DELETE FROM audit WHERE number = 1",
    "INSERT INTO audit SELECT * FROM audit WHERE true ON CONFLICT (number) DO UPDATE SET actor = 'mallory'",
]
OWN_CHANGES = {
    "sqlite": ["INSERT OR REPLACE INTO audit SELECT * FROM audit", "REPLACE INTO audit SELECT * FROM audit"],
    "postgresql": ["TRUNCATE audit", "TRUNCATE audit CASCADE"],
}


def test_the_database_refuses_to_change_the_log(opened: tuple[Store, Engine]) -> None:
    store, engine = opened
    store.audit.add(event(1))
    before = store.audit.page(most=10**6)
    for statement in CHANGES + OWN_CHANGES[engine.dialect.name]:
        with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
            connection.execute(text(statement))
    assert store.audit.page(most=10**6) == before


def test_pages_go_on_where_the_last_one_ended_and_can_be_of_a_time_span(store: Store) -> None:
    before = store.audit.last()
    start = 0 if before is None else before.number
    store.audit.add(*(event(number + 10_000) for number in range(5)))
    first = store.audit.page(start, most=2)
    assert [entry.at for entry in first] == [10_000, 10_001]
    assert [entry.at for entry in store.audit.page(first[-1].number, most=2)] == [10_002, 10_003]
    assert [entry.at for entry in store.audit.page(start, since=10_001, until=10_003)] == [10_001, 10_002]


def test_what_callers_write_becomes_one_line_without_secrets(store: Store) -> None:
    secrets = [new_token(kind) for kind in ("key", "device", *OperatorRole)]
    before = store.audit.last()
    for secret in secrets:
        store.audit.add(
            event(
                by=Actor("admin", f"a {secret}", f"{secret}\r\n"),
                target=f"\x1b[2J{secret}\0\ud800" + "x" * 10_000,
                detail={"reason": f"Bearer {secret}", "label": "authorization: Basic abc", "none": None},
            )
        )
    entries = since(store, before)
    written = str(entries)
    assert not any(secret in written for secret in secrets)
    assert "\\x1b[2J(secret)" in entries[0].target
    assert len(entries[0].target) == 256
    assert json.loads(entries[0].detail) == {"reason": "Bearer (secret)", "label": "authorization: (secret) abc"}
    store.audit.add(event(detail={"many": ["x" * 100] * 100}))
    assert len(since(store, before)[-1].detail) < 100

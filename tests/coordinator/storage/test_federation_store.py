"""Federations and rounds: they move from state to state once, and only from where the caller thinks they are."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.storage.records import FederationState, RoundState, TaskState, Verdict
from coordinator.storage.store import Store
from tests.coordinator.storage.small_federation import (
    FEDERATION,
    a_round,
    a_task,
    an_artifact,
    an_upload,
    digest,
    finish_round,
    name_of,
    open_round,
    running,
)


def test_a_federation_is_kept_as_it_was_added(store: Store) -> None:
    wordy = replace(FEDERATION, settings='{"name": "größer \\u0000 ∑"}', manifest="x" * 300_000, reason="a\nreason")
    assert store.federations.add(wordy)
    assert store.federations.get("fed") == wordy
    assert store.federations.all() == [wordy]


def test_a_second_federation_of_the_same_id_is_refused(store: Store) -> None:
    assert store.federations.add(FEDERATION)
    assert not store.federations.add(replace(FEDERATION, settings='{"other": 1}'))
    assert store.federations.get("fed") == FEDERATION


def test_federations_come_oldest_first(store: Store) -> None:
    for name, at in (("b", 3.0), ("c", 1.0), ("a", 2.0)):
        store.federations.add(replace(FEDERATION, id=name, created_at=at))
    assert [federation.id for federation in store.federations.all()] == ["c", "a", "b"]


@pytest.mark.parametrize("name", ["none", "", "a\0b", "\ud800", "x" * 10_000, "'; DROP TABLE federations; --"])
def test_what_is_not_there_is_none_whatever_it_is_called(store: Store, name: str) -> None:
    running(store)
    assert store.federations.get(name) is None
    assert store.tasks.get(name) is None
    assert store.devices.get(name) is None
    assert store.artifacts.get(name, name) is None
    assert store.rounds.get("fed", 2**80) is store.rounds.get("fed", -5) is None
    assert store.tasks.of("fed", number=2**80) == store.tasks.counted("fed", 2**80) == []


def test_a_federation_moves_only_from_a_state_that_is_named(store: Store) -> None:
    store.federations.add(FEDERATION)
    running, paused = FederationState.RUNNING, FederationState.PAUSED
    assert not store.federations.move("fed", paused, since=[running], at=5.0, reason="why")
    assert store.federations.get("fed") == FEDERATION
    assert store.federations.move("fed", running, since=[FederationState.CREATED, paused], at=6.0)
    assert store.federations.move("fed", paused, since=[running], at=7.0, reason="too few devices")
    expected = replace(FEDERATION, state=paused, reason="too few devices", changed_at=7.0)
    assert store.federations.get("fed") == expected
    assert store.federations.move("fed", running, since=[paused], at=8.0)
    moved = store.federations.get("fed")
    assert moved is not None
    assert moved.reason is None
    assert not store.federations.move("none", running, since=list(FederationState), at=9.0)


@pytest.mark.parametrize("end", [FederationState.ABORTED, FederationState.FINISHED])
def test_the_end_of_a_federation_expires_its_open_tasks_and_blames_nobody(store: Store, end: FederationState) -> None:
    devices = running(store)
    others = running(store, name="other")
    open_round(store, devices)
    open_round(store, others, federation="other")
    assert store.uploads.accept([an_upload(devices[0])]) == [Verdict.ACCEPTED]
    assert store.federations.move("fed", end, since=[FederationState.RUNNING], at=30.0)
    assert [task.state for task in store.tasks.of("fed")] == [TaskState.DONE, TaskState.EXPIRED, TaskState.EXPIRED]
    assert [device.failed for device in store.devices.of("fed")] == [0, 0, 0]
    assert store.tasks.count_open("other") == 3
    assert store.uploads.accept([an_upload(devices[1])]) == [Verdict.LATE]


def test_a_round_is_kept_with_its_tasks_and_artifacts(store: Store) -> None:
    devices = running(store)
    opened = replace(a_round(), state_arrays=digest("arrays"), attempt=2)
    tasks = [a_task(device) for device in devices]
    assert store.rounds.open(opened, tasks, [an_artifact("weights", 0), an_artifact("weights", 0)])
    assert store.rounds.get("fed", 0) == store.rounds.latest("fed") == opened
    assert store.tasks.of("fed", number=0) == tasks
    assert store.artifacts.get("fed", digest("weights")) == an_artifact("weights", 0)
    assert store.tasks.count_open("fed") == store.tasks.count_in_round("fed", 0) == 3


def test_a_round_does_not_open_twice_or_beside_another_one(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    assert not store.rounds.open(a_round(0), [], [])
    assert not store.rounds.open(a_round(1), [a_task(devices[0], 1)], [an_artifact("a", 1)])
    assert store.rounds.close("fed", 0, because="enough", at=9.0, expire=False)
    assert not store.rounds.open(a_round(0), [], [])
    assert store.rounds.open(a_round(1), [a_task(devices[0], 1)], [])  # while round 0 is being aggregated
    assert [found.number for found in store.rounds.of("fed")] == [0, 1]
    assert [found.number for found in store.rounds.of("fed", state=RoundState.CLOSED)] == [0]
    assert store.artifacts.get("fed", digest("a")) is None


@pytest.mark.parametrize("state", [state for state in FederationState if state is not FederationState.RUNNING])
def test_a_round_opens_only_while_its_federation_runs(store: Store, state: FederationState) -> None:
    devices = running(store)
    store.federations.move("fed", state, since=[FederationState.RUNNING], at=3.0)
    assert not store.rounds.open(a_round(), [a_task(devices[0])], [])
    assert store.rounds.of("fed") == []
    assert store.tasks.of("fed") == []


def test_a_round_is_closed_once_and_done_once(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    done: dict[str, Any] = {
        "next_model": digest("next"),
        "next_state_arrays": digest("arrays"),
        "report": '{"loss": 2}',
    }
    assert not store.rounds.finish("fed", 0, **done, at=8.0)
    assert store.rounds.close("fed", 0, because="deadline", at=9.0, expire=True)
    assert not store.rounds.close("fed", 0, because="enough", at=10.0, expire=True)
    assert store.rounds.finish("fed", 0, **done, at=11.0)
    assert not store.rounds.finish("fed", 0, next_model="other", next_state_arrays=None, report="{}", at=12.0)
    assert store.rounds.get("fed", 0) == replace(
        a_round(), state=RoundState.DONE, closed_at=9.0, closed_because="deadline", done_at=11.0, **done
    )


def test_a_close_expires_open_tasks_as_failures_of_their_devices(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    store.uploads.accept([an_upload(devices[1])])
    assert store.rounds.close("fed", 0, because="deadline", at=9.0, expire=True)
    assert [task.state for task in store.tasks.of("fed")] == [TaskState.EXPIRED, TaskState.DONE, TaskState.EXPIRED]
    assert [(device.done, device.failed) for device in store.devices.of("fed")] == [(0, 1), (1, 0), (0, 1)]
    assert store.tasks.oldest_open(devices[0]) is None


def test_a_close_may_leave_tasks_open(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    assert store.rounds.close("fed", 0, because="full", at=9.0, expire=False)
    assert store.tasks.count_open("fed") == 3
    assert store.tasks.oldest_open(devices[0]) == a_task(devices[0])


def test_an_open_round_gets_further_tasks_in_the_attempt_that_is_named(store: Store) -> None:
    devices = running(store)
    open_round(store, devices[:1])
    again: dict[str, Any] = {"attempt": 1, "next_attempt": 2, "deadline_at": 90.0}
    assert store.rounds.add_tasks("fed", 0, [a_task(devices[1])], [an_artifact("more", 0)], **again)
    assert not store.rounds.add_tasks("fed", 0, [a_task(devices[2])], [], **again)
    assert store.rounds.get("fed", 0) == replace(a_round(), attempt=2, deadline_at=90.0)
    assert [task.device for task in store.tasks.of("fed")] == devices[:2]
    assert store.artifacts.get("fed", digest("more")) is not None
    store.rounds.close("fed", 0, because="enough", at=9.0, expire=False)
    assert not store.rounds.add_tasks("fed", 0, [a_task(devices[2])], [], attempt=2, next_attempt=2, deadline_at=95.0)
    assert store.tasks.count_in_round("fed", 0) == 2


def test_a_paused_federation_may_ask_further_devices_and_an_aborted_one_may_not(store: Store) -> None:
    devices = running(store)
    open_round(store, devices[:1])
    again: dict[str, Any] = {"attempt": 1, "next_attempt": 1, "deadline_at": 90.0}
    store.federations.move("fed", FederationState.PAUSED, since=[FederationState.RUNNING], at=5.0)
    assert store.rounds.add_tasks("fed", 0, [a_task(devices[1])], [], **again)
    store.federations.move("fed", FederationState.ABORTED, since=[FederationState.PAUSED], at=6.0)
    assert not store.rounds.add_tasks("fed", 0, [a_task(devices[2])], [], **again)


def test_how_the_tasks_of_a_round_ended_is_counted(store: Store) -> None:
    devices = running(store, devices=6)
    open_round(store, devices[:5])
    store.uploads.accept([an_upload(devices[0]), an_upload(devices[1])])
    store.uploads.refuse(name_of(devices[2]), devices[2], "{}", 9.0)
    ended = store.tasks.counts("fed", 0)
    assert (ended.open, ended.done, ended.refused, ended.expired, ended.late) == (2, 2, 1, 0, 0)
    finish_round(store)
    open_round(store, devices[5:], 1)
    store.uploads.accept([an_upload(devices[3])])
    ended = store.tasks.counts("fed", 0)
    assert (ended.open, ended.done, ended.refused, ended.expired, ended.late) == (0, 2, 1, 1, 1)
    ended = store.tasks.counts("fed", 1)
    assert (ended.open, ended.done) == (1, 0)


def test_a_new_deadline_moves_the_end_of_the_open_round_once(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    assert store.federations.set_deadline("fed", 100.0, before=None, later=44.0, at=3.0)
    assert not store.federations.set_deadline(
        "fed", 200.0, before=None, later=144.0, at=3.0
    )  # somebody else was faster
    changed, opened = store.federations.get("fed"), store.rounds.get("fed", 0)
    assert changed is not None
    assert opened is not None
    assert (changed.deadline, opened.deadline_at) == (100.0, 104.0)
    finish_round(store)
    assert store.federations.set_deadline("fed", 10.0, before=100.0, later=-90.0, at=4.0)
    closed = store.rounds.get("fed", 0)
    assert closed is not None
    assert closed.deadline_at == 104.0


def test_what_is_said_of_a_plan_is_kept_with_its_round(store: Store) -> None:
    open_round(store, running(store))
    store.rounds.note_plan("fed", 0, '{"bias": 1.5}')
    finish_round(store)
    open_round(store, ["fed-000"], 1)
    assert [one.plan for one in store.rounds.of("fed")] == ['{"bias": 1.5}', None]
    assert [one.number for one in store.rounds.of("fed", since=1)] == [1]

"""Threads and workers that do the same thing at the same time: one of them does it.

A worker of its own is a store of its own on the same database. Every race is run many times, from a common start.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pytest

from coordinator.storage.open import open_store
from coordinator.storage.records import Admission, FederationState, RoundState, TaskState, Verdict
from coordinator.storage.store import Store
from tests.coordinator.postgresql import new_database
from tests.coordinator.storage.small_federation import (
    FEDERATION,
    KEY,
    a_device,
    a_round,
    a_task,
    a_token,
    an_artifact,
    an_upload,
    digest,
    name_of,
    open_round,
    running,
)


@pytest.fixture
def other(store: Store, url: str) -> Iterator[Store]:
    """A second worker on the same database."""
    other = open_store(url)
    yield other
    other.close()


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Run functions in threads that start together, and return what they return."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))


def one_of(workers: Sequence[object], method: str, *values: Any, **named: Any) -> None:
    """Let all of them do the same at once, and see that one of them did it."""
    answers = at_once(*(partial(getattr(worker, method), *values, **named) for worker in workers))
    assert sorted(answers) == [False] * (len(workers) - 1) + [True], method


def accepted_of(store: Store, devices: Sequence[str], number: int, size: int, begun: threading.Event) -> list[str]:
    """Upload in batches, and return the tasks that were accepted."""
    accepted = []
    for start in range(0, len(devices), size):
        batch = [an_upload(device, number) for device in devices[start : start + size]]
        verdicts = store.uploads.accept(batch)
        begun.set()
        assert set(verdicts) <= {Verdict.ACCEPTED, Verdict.LATE}
        accepted += [upload.task for upload, verdict in zip(batch, verdicts, strict=True) if verdict == "accepted"]
    return accepted


@pytest.mark.parametrize("expire", [True, False])
def test_what_is_accepted_while_a_round_closes_is_all_that_counts(store: Store, other: Store, expire: bool) -> None:
    devices = running(store, devices=24)

    def close(number: int, begun: threading.Event) -> list[str]:
        begun.wait()
        assert other.rounds.close("fed", number, because="race", at=30.0, expire=expire)
        return [task.id for task in other.tasks.counted("fed", number)]  # as the aggregation would, at once

    for number in range(12):
        open_round(store, devices, number)
        begun = threading.Event()
        first, second, counted = at_once(
            partial(accepted_of, store, devices[:12], number, 2, begun),
            partial(accepted_of, other, devices[12:], number, 3, begun),
            partial(close, number, begun),
        )
        assert counted == sorted(first + second) == [task.id for task in store.tasks.counted("fed", number)]
        assert counted, "the close came before all batches: there was no race"
        states = {task.state for task in store.tasks.of("fed", number=number)}
        assert states <= {TaskState.DONE, TaskState.EXPIRED, TaskState.LATE}
        assert store.rounds.finish("fed", number, next_model="m", next_state_arrays=None, report="{}", at=31.0)
    found = store.devices.of("fed")
    assert sum(device.done for device in found) == sum(store.tasks.counts("fed", number).done for number in range(12))
    assert sum(device.done + device.failed for device in found) == 12 * len(devices)


def test_a_close_waits_for_a_batch_that_has_begun(server: str) -> None:
    """On PostgreSQL the race above can be slowed down: somebody holds a task that the batch needs."""
    url = new_database(server)
    with contextlib.closing(open_store(url)) as store, ThreadPoolExecutor() as threads:
        devices = running(store, devices=2)
        open_round(store, devices)
        with psycopg.connect(url) as holder:
            holder.execute("UPDATE tasks SET handed_at = 1 WHERE device = %s", [devices[0]])
            accepted = threads.submit(store.uploads.accept, [an_upload(devices[0])])
            wait_for_waiting(holder, 1)
            closed = threads.submit(store.rounds.close, "fed", 0, because="race", at=9.0, expire=False)
            wait_for_waiting(holder, 2)
            assert not closed.done()
            assert [found.state for found in store.rounds.of("fed")] == [RoundState.OPEN]
        assert accepted.result() == [Verdict.ACCEPTED]
        assert closed.result()
        assert len(store.tasks.counted("fed", 0)) == 1


def wait_for_waiting(connection: "psycopg.Connection[Any]", count: int) -> None:
    """Wait until so many transactions of this database wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    for _ in range(500):
        found = connection.execute(query).fetchone()
        if found is not None and found[0] >= count:
            return
        connection.execute("SELECT pg_stat_clear_snapshot()")
        time.sleep(0.01)
    raise AssertionError(f"{found} transactions wait, not {count}")


def test_the_same_updates_from_two_workers_are_accepted_once(store: Store, other: Store) -> None:
    devices = running(store, devices=20)
    for number in range(5):
        open_round(store, devices, number)
        uploads = [an_upload(device, number) for device in devices]
        one, two = at_once(partial(store.uploads.accept, uploads), partial(other.uploads.accept, uploads[::-1]))
        pairs = {frozenset(pair) for pair in zip(one, two[::-1], strict=True)}
        assert pairs == {frozenset({Verdict.ACCEPTED, Verdict.ALREADY})}
        assert len(store.tasks.counted("fed", number)) == len(devices)
        store.rounds.close("fed", number, because="enough", at=30.0, expire=True)
    assert {device.done for device in store.devices.of("fed")} == {5}


def test_an_update_and_a_refusal_of_the_same_task_do_not_both_count(store: Store, other: Store) -> None:
    devices = running(store, devices=16)
    open_round(store, devices)
    for device in devices:
        uploaded, refused = at_once(
            partial(store.uploads.accept, [an_upload(device)]),
            partial(other.uploads.refuse, name_of(device), device, "{}", 9.0),
        )
        assert (uploaded[0], refused) in {(Verdict.ACCEPTED, Verdict.ALREADY), (Verdict.CONFLICT, Verdict.ACCEPTED)}
    assert {device.done + device.failed for device in store.devices.of("fed")} == {1}


def test_a_round_is_opened_closed_and_finished_by_one_worker(store: Store, other: Store) -> None:
    devices = running(store, devices=4)
    workers = [store.rounds, other.rounds, store.rounds, other.rounds]
    for number in range(6):
        tasks = [a_task(device, number) for device in devices]
        wanted = [an_artifact(f"artifact {number} {part}", number) for part in range(5)]
        one_of(workers, "open", a_round(number), tasks, wanted)
        one_of(workers, "add_tasks", "fed", number, [], [], attempt=1, next_attempt=2, deadline_at=9.0)
        one_of(workers, "close", "fed", number, because="race", at=9.0, expire=True)
        ended = {"next_model": "m", "next_state_arrays": None, "report": "{}", "at": 9.0}
        one_of(workers, "finish", "fed", number, **ended)
    assert [found.state for found in store.rounds.of("fed")] == [RoundState.DONE] * 6
    assert {device.failed for device in store.devices.of("fed")} == {6}


def test_a_federation_is_moved_by_one_worker(store: Store, other: Store) -> None:
    store.federations.add(FEDERATION)
    there, back = FederationState.RUNNING, FederationState.CREATED
    for _ in range(6):
        workers = [store.federations, other.federations, store.federations, other.federations]
        one_of(workers, "move", "fed", there, since=[back], at=1.0)
        assert store.federations.move("fed", back, since=[there], at=1.0)


def test_no_task_is_left_open_by_an_abort_that_meets_an_opening(store: Store, other: Store) -> None:
    aborted, since = FederationState.ABORTED, [FederationState.RUNNING]
    for number in range(8):
        name = f"fed-{number}"
        tasks = [a_task(device, federation=name) for device in running(store, devices=3, name=name)]
        at_once(
            partial(store.rounds.open, a_round(federation=name), tasks, []),
            partial(other.federations.move, name, aborted, since=since, at=9.0),
        )
        assert store.tasks.count_open(name) == 0


def test_a_limited_key_lets_in_no_more_than_it_may(store: Store, other: Store) -> None:
    store.federations.add(FEDERATION)
    store.keys.add(replace(KEY, most_uses=5))

    def enrol(worker: Store, thread: int) -> int:
        names = [f"device-{thread}-{number}" for number in range(3)]
        answers = [worker.devices.enrol(a_device(name), KEY.hash)[0] for name in names]
        assert set(answers) <= {Admission.ADMITTED, Admission.SPENT_KEY}
        return answers.count(Admission.ADMITTED)

    let_in = at_once(*(partial(enrol, (store, other)[thread % 2], thread) for thread in range(8)))
    assert sum(let_in) == len(store.devices.of("fed")) == 5
    assert [key.uses for key in store.keys.of("fed")] == [5]


def test_a_device_that_asks_twice_at_once_is_one_device(store: Store, other: Store) -> None:
    store.federations.add(FEDERATION)
    for key in ("one", "two"):
        store.keys.add(replace(KEY, id=key, hash=f"hash of {key}"))

    def enrol(worker: Store, number: int) -> Admission:
        asked = a_device(f"name-{number}", enrolment="the same")
        return worker.devices.enrol(asked, f"hash of {('one', 'two')[number % 2]}")[0]

    answers = at_once(*(partial(enrol, (store, other)[number // 2 % 2], number) for number in range(8)))
    assert set(answers) == {Admission.ADMITTED}
    assert len(store.devices.of("fed")) == 1
    assert sum(key.uses for key in store.keys.of("fed")) == 1


def test_a_lease_that_ran_out_is_taken_over_by_one_worker(store: Store, other: Store) -> None:
    owners = {"a": store, "b": other, "c": store, "d": other}
    for now in range(10, 100, 10):
        takes = [
            partial(worker.workers.take_lease, "driver", owner, now=now, seconds=5.0)
            for owner, worker in owners.items()
        ]
        assert sorted(at_once(*takes)) == [False, False, False, True]


@pytest.mark.parametrize("replaces", [False, True])
def test_workers_that_start_at_once_agree_on_a_token(store: Store, other: Store, replaces: bool) -> None:
    workers = {1.0: store, 2.0: other, 3.0: store, 4.0: other}
    starts = []
    for at, worker in workers.items():
        token = replace(a_token("admin", at=at), from_start=True)
        starts.append(partial(worker.tokens.adopt, token, replaces=replaces))
    answers = at_once(*starts)
    valid = [token.id for token in store.tokens.all() if token.revoked_at is None]
    assert len(valid) == 1
    if not replaces:
        assert {answer.id for answer in answers} == set(valid)


def test_everything_at_once_ends_without_a_deadlock(store: Store, other: Store) -> None:
    devices = running(store, devices=12)
    open_round(store, devices)

    def seen() -> None:
        for step in range(10):
            other.devices.mark_seen(dict.fromkeys(reversed(devices), 90.0 + step))

    def artifacts(worker: Store, order: int) -> None:
        for number in range(10):
            worker.artifacts.add([an_artifact(str(part), number) for part in range(12)][::order])
            worker.artifacts.drop("fed", before_round=number, kinds=["weights"])

    def forget() -> None:
        for _ in range(10):
            other.artifacts.forget_updates([an_upload(device).update for device in devices])

    def change() -> None:
        for device in devices:
            other.devices.set_profile(device, digest(device))
            store.devices.revoke(device, 9.0)

    uploads = [an_upload(device) for device in devices]
    at_once(
        partial(store.uploads.accept, uploads[::-1]),
        partial(other.uploads.accept, uploads),
        seen,
        partial(artifacts, store, 1),
        partial(artifacts, other, -1),
        forget,
        change,
        partial(store.rounds.close, "fed", 0, because="race", at=9.0, expire=True),
    )
    assert store.tasks.count_open("fed") == 0
    assert {device.seen_at for device in store.devices.of("fed")} == {99.0}

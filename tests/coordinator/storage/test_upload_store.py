"""Updates and refusals: every one has an answer, and what was accepted is in the round that it was accepted into."""

from dataclasses import replace

import pytest

from coordinator.storage.records import FederationState, TaskState, Verdict
from coordinator.storage.store import Store
from tests.coordinator.storage.small_federation import (
    a_device,
    a_round,
    a_task,
    an_upload,
    digest,
    finish_round,
    name_of,
    open_round,
    running,
)


def test_an_accepted_update_ends_its_task_and_counts_for_its_device(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    upload = replace(an_upload(devices[0]), next_mask=digest("new mask"))
    assert store.uploads.accept([upload, an_upload(devices[1])]) == [Verdict.ACCEPTED, Verdict.ACCEPTED]
    ended = replace(
        a_task(devices[0]),
        state=TaskState.DONE,
        ended_at=20.0,
        counted_in=0,
        update=upload.update,
        result='{"loss": 1}',
        next_mask=digest("new mask"),
    )
    assert store.tasks.get(ended.id) == ended
    first, second, third = store.devices.of("fed")
    assert (first.done, first.failed, first.samples, first.mask_body) == (1, 0, 10, digest("new mask"))
    assert (second.done, second.mask_body) == (1, digest(f"mask of {devices[1]}"))  # the one that it was given
    assert (third.done, third.samples, third.mask_body) == (0, None, None)


def test_a_task_that_leaves_the_model_alone_leaves_the_mask_of_its_device(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    store.uploads.accept([replace(an_upload(devices[0]), keeps_mask=True), an_upload(devices[1])])
    finish_round(store)
    open_round(store, devices, 1)
    store.uploads.accept([replace(an_upload(device, 1), keeps_mask=True) for device in devices[:2]])
    first, second, _ = store.devices.of("fed")
    assert (first.done, first.samples, first.mask_body) == (2, 10, None)
    assert (second.done, second.mask_body) == (2, digest(f"mask of {devices[1]}"))


def test_counted_updates_come_in_the_order_of_devices(store: Store) -> None:
    devices = running(store, devices=12)
    open_round(store, devices)
    for device in reversed(devices):
        store.uploads.accept([an_upload(device)])
    assert [task.device for task in store.tasks.counted("fed", 0)] == devices


def test_ids_are_sorted_by_their_bytes_whatever_the_language_of_the_server(store: Store) -> None:
    running(store, devices=0)
    names = ["a-1", "a1", "A2", "B", "a_0", "b"]
    for name in names:
        store.devices.enrol(a_device(name), "hash of fed-key")
    open_round(store, names)
    store.uploads.accept([an_upload(name) for name in names])
    assert [device.id for device in store.devices.of("fed")] == sorted(names)
    assert [task.device for task in store.tasks.counted("fed", 0)] == sorted(names)


def test_the_same_update_again_is_known_and_another_one_conflicts(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    assert store.uploads.accept([an_upload(devices[0])]) == [Verdict.ACCEPTED]
    assert store.uploads.accept([an_upload(devices[0])]) == [Verdict.ALREADY]
    assert store.uploads.accept([an_upload(devices[0], body="other")]) == [Verdict.CONFLICT]
    finish_round(store)
    assert store.uploads.accept([an_upload(devices[0])]) == [Verdict.ALREADY]
    assert [task.update for task in store.tasks.counted("fed", 0)] == [an_upload(devices[0]).update]
    assert [device.done for device in store.devices.of("fed")] == [1, 0, 0]


def test_repetitions_within_a_batch_are_seen(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    batch = [an_upload(devices[2]), an_upload(devices[0]), an_upload(devices[2]), an_upload(devices[0], body="other")]
    assert store.uploads.accept(batch) == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.ALREADY, Verdict.CONFLICT]
    assert [device.done for device in store.devices.of("fed")] == [1, 0, 1]


def test_an_update_for_the_task_of_nobody_or_of_another_device_is_unknown(store: Store) -> None:
    devices = running(store)
    open_round(store, devices[:1])
    stolen = replace(an_upload(devices[1]), task=name_of(devices[0]))
    unknown = replace(an_upload(devices[0]), task="a\0task")
    assert store.uploads.accept([stolen, an_upload(devices[2]), unknown]) == [Verdict.UNKNOWN] * 3
    assert store.uploads.accept([]) == []
    assert store.tasks.count_open("fed") == 1


def test_a_late_update_keeps_its_report_and_does_not_count(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    finish_round(store)
    late = replace(an_upload(devices[0]), next_mask=digest("new mask"), at=70.0)
    assert store.uploads.accept([late]) == [Verdict.LATE]
    assert store.uploads.accept([late, replace(late, result="{}", update=digest("other"))]) == [
        Verdict.LATE,
        Verdict.LATE,
    ]
    assert store.tasks.get(late.task) == replace(
        a_task(devices[0]), state=TaskState.LATE, ended_at=70.0, result='{"loss": 1}'
    )
    assert store.tasks.counted("fed", 0) == []
    device = store.devices.of("fed")[0]
    assert (device.done, device.failed, device.samples, device.mask_body) == (0, 1, None, None)


def test_a_device_may_succeed_and_fail_in_one_batch(store: Store) -> None:
    devices = running(store, devices=1)
    open_round(store, devices)
    store.rounds.close("fed", 0, because="full", at=9.0, expire=False)
    open_round(store, devices, 1)
    batch = [an_upload(devices[0], 1), an_upload(devices[0], 0)]
    assert store.uploads.accept(batch) == [Verdict.ACCEPTED, Verdict.LATE]
    device = store.devices.of("fed")[0]
    assert (device.done, device.failed, device.samples) == (1, 1, 10)
    assert device.mask_body == digest(f"mask of {devices[0]}")


def test_a_late_update_leaves_the_mask_of_its_device(store: Store) -> None:
    devices = running(store, devices=1)
    open_round(store, devices)
    store.uploads.accept([replace(an_upload(devices[0]), next_mask=digest("first"))])
    finish_round(store)
    open_round(store, devices, 1)
    finish_round(store, 1, expire=False)
    late = replace(an_upload(devices[0], 1), next_mask=digest("second"), samples=99)
    assert store.uploads.accept([late]) == [Verdict.LATE]
    device = store.devices.of("fed")[0]
    assert (device.mask_body, device.samples, device.done, device.failed) == (digest("first"), 10, 1, 1)


def test_an_open_task_of_a_closed_round_is_late_and_fails(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    finish_round(store, expire=False)
    open_round(store, [], 1)
    assert store.uploads.accept([an_upload(devices[0])]) == [Verdict.LATE]
    assert [device.failed for device in store.devices.of("fed")] == [1, 0, 0]


def test_a_buffered_update_counts_in_the_round_that_is_open(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    for number in range(3):
        finish_round(store, number, expire=False)
        open_round(store, [], number + 1)
    assert store.uploads.accept([an_upload(devices[0], staleness=3)]) == [Verdict.ACCEPTED]
    assert store.uploads.accept([an_upload(devices[1], staleness=2)]) == [Verdict.LATE]
    assert [(task.device, task.round) for task in store.tasks.counted("fed", 3)] == [(devices[0], 0)]
    assert store.tasks.counts("fed", 3).done == 1
    assert store.tasks.counts("fed", 0).late == 1


def test_a_buffered_update_waits_while_no_round_is_open(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    store.rounds.close("fed", 0, because="full", at=9.0, expire=False)
    before = store.tasks.of("fed")
    assert store.uploads.accept([an_upload(devices[0], staleness=1)]) == [Verdict.WAIT]
    assert store.tasks.of("fed") == before
    assert store.uploads.accept([an_upload(devices[1], staleness=0)]) == [
        Verdict.LATE
    ]  # whatever opens next is too far
    open_round(store, [], 1)
    assert store.uploads.accept([an_upload(devices[0], staleness=1)]) == [Verdict.ACCEPTED]


def test_a_batch_may_have_updates_of_several_federations(store: Store) -> None:
    devices, others = running(store), running(store, name="other")
    open_round(store, devices)
    open_round(store, others, federation="other")
    store.rounds.close("other", 0, because="enough", at=9.0, expire=True)
    batch = [an_upload(others[0]), an_upload(devices[0]), an_upload(others[1])]
    assert store.uploads.accept(batch) == [Verdict.LATE, Verdict.ACCEPTED, Verdict.LATE]


def test_a_refusal_ends_a_task_and_counts_as_failed_once(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    task = name_of(devices[0])
    assert store.uploads.refuse(task, devices[0], '{"reason": "power"}', 15.0) is Verdict.ACCEPTED
    assert store.uploads.refuse(task, devices[0], '{"reason": "power"}', 16.0) is Verdict.ALREADY
    assert store.uploads.refuse(task, devices[0], '{"reason": "hours"}', 17.0) is Verdict.ALREADY
    refused = replace(a_task(devices[0]), state=TaskState.REFUSED, ended_at=15.0, refusal='{"reason": "power"}')
    assert store.tasks.get(task) == refused
    assert store.devices.of("fed")[0].failed == 1
    assert store.uploads.accept([an_upload(devices[0])]) == [Verdict.CONFLICT]
    assert store.tasks.get(task) == refused


def test_a_refusal_after_the_end_changes_nothing_that_counts(store: Store) -> None:
    devices = running(store)
    open_round(store, devices[:2])
    store.uploads.accept([an_upload(devices[0])])
    assert store.uploads.refuse(name_of(devices[0]), devices[0], "{}", 15.0) is Verdict.ALREADY
    assert store.uploads.refuse(name_of(devices[0]), devices[1], "{}", 15.0) is Verdict.UNKNOWN
    assert store.uploads.refuse("none", devices[1], "{}", 15.0) is Verdict.UNKNOWN
    finish_round(store)
    assert store.uploads.refuse(name_of(devices[1]), devices[1], '{"reason": "hours"}', 60.0) is Verdict.LATE
    expired = store.tasks.get(name_of(devices[1]))
    assert expired is not None
    assert (expired.state, expired.refusal) == (TaskState.EXPIRED, '{"reason": "hours"}')
    assert [device.failed for device in store.devices.of("fed")] == [0, 1, 0]


def test_a_device_is_given_its_oldest_open_task_while_its_federation_goes_on(store: Store) -> None:
    devices = running(store)
    open_round(store, devices[:2])
    store.rounds.close("fed", 0, because="full", at=9.0, expire=False)
    newer = replace(a_task(devices[0], 1), created_at=8.0)
    assert store.rounds.open(a_round(1), [newer], [])
    assert store.tasks.oldest_open(devices[0]) == a_task(devices[0])
    store.uploads.accept([an_upload(devices[0], staleness=5)])
    assert store.tasks.oldest_open(devices[0]) == newer
    assert store.tasks.busy_devices() == dict.fromkeys(devices[:2], "fed")
    store.federations.move("fed", FederationState.PAUSED, since=[FederationState.RUNNING], at=9.0)
    assert store.tasks.oldest_open(devices[0]) == newer
    assert store.tasks.busy_devices() == dict.fromkeys(devices[:2], "fed")
    store.federations.move("fed", FederationState.CREATED, since=[FederationState.PAUSED], at=9.0)
    assert store.tasks.oldest_open(devices[0]) is None
    assert store.tasks.busy_devices() == {}


@pytest.mark.parametrize("name", ["none", "", "a\0b", "\ud800", "ü", "x" * 10_000, "'; DROP TABLE tasks; --"])
def test_a_task_that_was_never_opened_is_not_there(store: Store, name: str) -> None:
    devices = running(store)
    open_round(store, devices)
    assert store.tasks.get(name) is None
    assert store.tasks.oldest_open(name) is None
    assert store.tasks.get(name_of(devices[0])) == a_task(devices[0])


def test_a_task_is_handed_out_first_only_once(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    store.tasks.mark_handed_out({name_of(devices[0]): 12.0})
    store.tasks.mark_handed_out({name_of(devices[0]): 13.0, "none": 13.0})
    store.tasks.mark_handed_out({})
    assert [task.handed_at for task in store.tasks.of("fed")] == [12.0, None, None]


def test_old_tasks_expire_as_failures(store: Store) -> None:
    devices = running(store)
    open_round(store, devices[:2])
    store.uploads.accept([an_upload(devices[0])])
    younger = replace(a_task(devices[2]), created_at=30.0)
    assert store.rounds.add_tasks("fed", 0, [younger], [], attempt=1, next_attempt=1, deadline_at=99.0)
    assert store.tasks.expire("fed", created_before=30.0, at=40.0) == [devices[1]]
    assert [task.state for task in store.tasks.of("fed")] == [TaskState.DONE, TaskState.EXPIRED, TaskState.OPEN]
    assert [device.failed for device in store.devices.of("fed")] == [0, 1, 0]
    assert store.tasks.expire("fed", created_before=30.0, at=40.0) == []


def test_tasks_are_found_by_round_state_and_device(store: Store) -> None:
    devices = running(store)
    first = open_round(store, devices)
    finish_round(store)
    second = open_round(store, devices[1:], 1)
    assert [task.id for task in store.tasks.of("fed")] == first + second
    assert [task.id for task in store.tasks.of("fed", number=1)] == second
    assert [task.id for task in store.tasks.of("fed", state=TaskState.OPEN, device=devices[2])] == second[1:]
    assert [task.id for task in store.tasks.of("fed", device=devices[1])] == [first[1], second[0]]
    assert store.tasks.of("none") == []


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_a_batch_may_have_any_size(store: Store, size: int) -> None:
    devices = running(store, devices=2)
    open_round(store, devices)
    batch = [an_upload(devices[0])] + [replace(an_upload(devices[1]), task=f"none-{number}") for number in range(size)]
    assert store.uploads.accept(batch) == [Verdict.ACCEPTED] + [Verdict.UNKNOWN] * size

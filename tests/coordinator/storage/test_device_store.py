"""Enrolment, join keys, and which devices may get a task."""

from dataclasses import replace

from coordinator.storage.records import Admission, Device, TaskState, Verdict
from coordinator.storage.store import Store
from tests.coordinator.storage.small_federation import (
    FEDERATION,
    KEY,
    a_device,
    an_upload,
    digest,
    finish_round,
    open_round,
    running,
)


def with_key(store: Store, **changes: object) -> None:
    store.federations.add(FEDERATION)
    store.keys.add(replace(KEY, **changes))  # type: ignore[arg-type]


def admitted(answer: tuple[Admission, Device | None]) -> Device:
    assert answer[0] is Admission.ADMITTED
    assert answer[1] is not None
    return answer[1]


def test_an_enrolled_device_belongs_to_the_federation_of_its_key(store: Store) -> None:
    with_key(store)
    device = admitted(store.devices.enrol(a_device("pi"), KEY.hash))
    assert device == replace(a_device("pi"), federation="fed", key="key")
    assert store.devices.get("pi") == store.devices.by_token(device.token_hash) == device
    assert store.devices.of("fed") == [device]
    assert store.keys.of("fed") == [replace(KEY, uses=1)]


def test_a_device_that_enrols_again_is_the_same_one_with_a_new_token(store: Store) -> None:
    with_key(store, most_uses=1)
    first = admitted(store.devices.enrol(a_device("pi"), KEY.hash))
    asked = replace(
        a_device("another name", enrolment=first.enrolment_id, at=9.0), profile='{"memory": 2}', software="edgefl 0.2.0"
    )
    again = admitted(store.devices.enrol(asked, KEY.hash))
    assert again == store.devices.get("pi")
    assert again == replace(
        first, token_hash=asked.token_hash, profile=asked.profile, software=asked.software, seen_at=9.0
    )
    assert store.devices.by_token(first.token_hash) is None
    assert store.devices.by_token(asked.token_hash) == again
    assert [key.uses for key in store.keys.of("fed")] == [1]
    assert len(store.devices.of("fed")) == 1


def test_the_same_enrolment_id_in_another_federation_is_another_device(store: Store) -> None:
    with_key(store)
    store.federations.add(replace(FEDERATION, id="other"))
    store.keys.add(replace(KEY, id="other key", federation="other", hash="hash of other key"))
    admitted(store.devices.enrol(a_device("one", enrolment="same"), KEY.hash))
    other = admitted(store.devices.enrol(a_device("two", enrolment="same"), "hash of other key"))
    assert (other.id, other.federation) == ("two", "other")


def test_keys_that_do_not_open(store: Store) -> None:
    with_key(store, most_uses=1, expires_at=10.0)
    assert store.devices.enrol(a_device("pi"), "wrong") == (Admission.UNKNOWN_KEY, None)
    assert store.devices.enrol(a_device("pi", at=10.0), KEY.hash) == (Admission.EXPIRED_KEY, None)
    admitted(store.devices.enrol(a_device("pi", at=9.0), KEY.hash))
    assert store.devices.enrol(a_device("second"), KEY.hash) == (Admission.SPENT_KEY, None)
    assert store.keys.revoke("fed", "key", 9.5)
    assert store.devices.enrol(a_device("pi"), KEY.hash) == (Admission.REVOKED_KEY, None)
    assert len(store.devices.of("fed")) == 1


def test_a_taken_name_is_refused_and_uses_up_nothing(store: Store) -> None:
    with_key(store)
    admitted(store.devices.enrol(a_device("pi"), KEY.hash))
    thief = replace(a_device("pi", enrolment="other"), token_hash=digest("other"))
    assert store.devices.enrol(thief, KEY.hash) == (Admission.NAME_TAKEN, None)
    assert [key.uses for key in store.keys.of("fed")] == [1]


def test_a_revoked_device_stays_out_and_loses_its_open_tasks(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    assert store.devices.revoke(devices[0], 12.0)
    assert not store.devices.revoke(devices[0], 13.0)
    assert not store.devices.revoke("none", 13.0)
    assert store.tasks.oldest_open(devices[0]) is None
    assert [task.state for task in store.tasks.of("fed")] == [TaskState.EXPIRED, TaskState.OPEN, TaskState.OPEN]
    assert store.uploads.accept([an_upload(devices[0])]) == [Verdict.LATE]
    known = store.devices.by_token(a_device(devices[0]).token_hash)
    assert known is not None
    assert known.revoked_at == 12.0
    assert store.devices.enrol(a_device(devices[0]), "hash of fed-key") == (Admission.REVOKED_DEVICE, None)


def test_keys_are_listed_oldest_first_and_revoked_once(store: Store) -> None:
    store.federations.add(FEDERATION)
    for name, at in (("b", 3.0), ("a", 2.0)):
        store.keys.add(replace(KEY, id=name, hash=f"hash of {name}", created_at=at))
    assert [key.id for key in store.keys.of("fed")] == ["a", "b"]
    assert not store.keys.revoke("other", "a", 4.0)
    assert store.keys.revoke("fed", "a", 4.0)
    assert not store.keys.revoke("fed", "a", 5.0)
    found = store.keys.by_hash("hash of a")
    assert found is not None
    assert found.revoked_at == 4.0
    assert store.keys.by_hash("hash of none") is None


def test_free_devices_were_heard_of_and_have_nothing_to_do(store: Store) -> None:
    devices = running(store, devices=5)
    store.devices.mark_seen(dict.fromkeys(devices[:4], 100.0))
    open_round(store, devices[:1])
    store.devices.revoke(devices[1], 101.0)
    assert [device.id for device in store.devices.free("fed", seen_since=100.0)] == devices[2:4]
    assert [device.id for device in store.devices.free("fed", seen_since=3.0)] == devices[2:]
    store.uploads.accept([an_upload(devices[0])])
    assert [device.id for device in store.devices.free("fed", seen_since=100.0)] == [devices[0], *devices[2:4]]


def test_the_time_of_a_device_never_goes_back(store: Store) -> None:
    devices = running(store)
    store.devices.mark_seen({devices[0]: 50.0, devices[1]: 40.0, "none": 60.0})
    store.devices.mark_seen({devices[0]: 45.0, devices[1]: 45.0})
    store.devices.mark_seen({})
    assert [device.seen_at for device in store.devices.of("fed")] == [50.0, 45.0, 3.0]


def test_a_profile_and_a_correction_may_change(store: Store) -> None:
    devices = running(store)
    store.devices.set_profile(devices[1], '{"memory": 3}')
    store.devices.set_profile("none", "{}")
    store.devices.set_corrections({devices[1]: '{"seconds": 2}', "none": "{}"})
    store.devices.set_corrections({})
    assert [device.profile for device in store.devices.of("fed")] == ['{"memory": 1}', '{"memory": 3}', '{"memory": 1}']
    assert [device.correction for device in store.devices.of("fed")] == [None, '{"seconds": 2}', None]


def test_pulses_tell_of_every_device_what_it_was_given_last_and_leave_out_the_revoked(store: Store) -> None:
    first, second, third = running(store)
    open_round(store, [first, third])
    store.tasks.mark_handed_out({"task-0-" + first: 7.0})
    assert store.uploads.accept([an_upload(first)]) == [Verdict.ACCEPTED]
    assert store.devices.revoke(third, 9.0)
    pulses = store.devices.pulses("fed")
    assert [pulse.device for pulse in pulses] == [first, second]
    done, idle = pulses
    assert (done.task, done.state, done.round, done.handed_at) == ("task-0-" + first, TaskState.DONE, 0, 7.0)
    assert (done.done, done.failed) == (1, 0)
    assert (idle.task, idle.state, idle.round, idle.ended_at) == (None, None, None, None)
    assert store.devices.count("fed") == 3
    assert store.devices.pulses("elsewhere") == []


def test_the_newest_task_of_a_device_is_the_one_that_it_was_given_last(store: Store) -> None:
    device = running(store, 1)[0]
    open_round(store, [device])
    finish_round(store)
    open_round(store, [device], 1)
    assert [pulse.task for pulse in store.devices.pulses("fed")] == [f"task-1-{device}"]
    assert {task.id for task in store.tasks.get_all([f"task-0-{device}", f"task-1-{device}", "none"])} == {
        f"task-0-{device}",
        f"task-1-{device}",
    }
    assert store.tasks.get_all([]) == []

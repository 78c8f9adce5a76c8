"""Which bodies devices may download, and which bodies nobody needs any more."""

from dataclasses import replace
from typing import Any

from coordinator.storage.records import FederationState
from coordinator.storage.store import Store
from tests.coordinator.storage.small_federation import (
    FEDERATION,
    a_round,
    a_task,
    an_artifact,
    an_upload,
    digest,
    finish_round,
    open_round,
    running,
)

KINDS = ["weights", "mask"]


def test_an_artifact_is_for_the_devices_of_its_federation(store: Store) -> None:
    running(store)
    running(store, name="other")
    store.artifacts.add([an_artifact("graph"), an_artifact("weights", 0)])
    store.artifacts.add([])
    assert store.artifacts.get("fed", digest("graph")) == an_artifact("graph")
    assert store.artifacts.get("other", digest("graph")) is None


def test_an_artifact_lasts_as_long_as_the_latest_round_that_needs_it(store: Store) -> None:
    running(store)
    store.artifacts.add([an_artifact("a", 3), an_artifact("b", 3), an_artifact("c")])
    store.artifacts.add([an_artifact("a", 2), an_artifact("b", 5), an_artifact("c", 6)])
    found = [store.artifacts.get("fed", digest(text)) for text in "abc"]
    assert [None if artifact is None else artifact.round for artifact in found] == [3, 5, None]
    store.artifacts.add([an_artifact("a"), an_artifact("d", 1), an_artifact("d", 7), an_artifact("d", 2)])
    found = [store.artifacts.get("fed", digest(text)) for text in "ad"]
    assert [None if artifact is None else artifact.round for artifact in found] == [None, 7]


def test_only_artifacts_of_earlier_rounds_and_named_kinds_are_dropped(store: Store) -> None:
    running(store)
    store.artifacts.add([an_artifact(text, number) for text, number in (("a", 0), ("b", 1), ("c", 2), ("d", None))])
    store.artifacts.add([an_artifact("graph", 0, kind="graph")])
    assert sorted(store.artifacts.drop("fed", before_round=2, kinds=KINDS)) == sorted([digest("a"), digest("b")])
    left = [text for text in ("a", "b", "c", "d", "graph") if store.artifacts.get("fed", digest(text))]
    assert left == ["c", "d", "graph"]
    assert store.artifacts.drop("fed", before_round=2, kinds=KINDS) == []


def test_what_a_task_names_stays_until_its_update_is_combined(store: Store) -> None:
    devices = running(store)
    named = a_task(devices[0], names=[digest("a")])
    assert store.rounds.open(a_round(), [named], [an_artifact("a", 0), an_artifact("b", 0)])
    assert store.artifacts.drop("fed", before_round=1, kinds=KINDS) == [digest("b")]
    assert store.artifacts.get("fed", digest("a")) is not None
    store.uploads.accept([an_upload(devices[0])])
    assert store.artifacts.drop("fed", before_round=1, kinds=KINDS) == []
    finish_round(store)
    assert store.artifacts.drop("fed", before_round=1, kinds=KINDS) == [digest("a")]


def test_bodies_that_something_else_refers_to_are_not_given_away(store: Store) -> None:
    devices = running(store)
    running(store, name="other")
    store.federations.add(replace(FEDERATION, id="third", bundle=digest("bundle")))
    store.rounds.open(replace(a_round(), state_arrays=digest("arrays")), [a_task(devices[0])], [])
    store.uploads.accept([replace(an_upload(devices[0]), next_mask=digest("mask"))])
    store.rounds.close("fed", 0, because="enough", at=9.0, expire=True)
    ended: dict[str, Any] = {"next_model": digest("next model"), "next_state_arrays": digest("next arrays")}
    store.rounds.finish("fed", 0, **ended, report="{}", at=10.0)
    needed = ["model 0", "arrays", "next model", "next arrays", "bundle", "mask", "shared"]
    store.artifacts.add([an_artifact(text, 0) for text in [*needed, "free"]])
    store.artifacts.add([an_artifact("shared", 9, federation="other")])
    assert store.artifacts.drop("fed", before_round=5, kinds=KINDS) == [digest("free")]
    assert all(store.artifacts.get("fed", digest(text)) is None for text in needed)
    assert store.artifacts.drop("other", before_round=10, kinds=KINDS) == [digest("shared")]


def test_thousands_of_artifacts_are_dropped_at_once(store: Store) -> None:
    running(store)
    store.artifacts.add([an_artifact(f"body {number}", 0) for number in range(5000)])
    assert len(store.artifacts.drop("fed", before_round=1, kinds=KINDS)) == 5000


def test_update_bodies_may_go_when_their_round_is_done(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    store.uploads.accept([an_upload(device) for device in devices[:2]])
    updates = sorted(an_upload(device).update for device in devices[:2])
    assert store.artifacts.unneeded_updates("fed", before_round=1) == []
    finish_round(store)
    assert store.artifacts.unneeded_updates("fed", before_round=0) == []
    assert store.artifacts.unneeded_updates("fed", before_round=1) == updates
    store.artifacts.forget_updates(updates[:1])
    store.artifacts.forget_updates([])
    assert store.artifacts.unneeded_updates("fed", before_round=1) == updates[1:]
    assert [task.update for task in store.tasks.counted("fed", 0)] == [
        an_upload(device).update for device in devices[:2]
    ]


def test_update_bodies_may_go_when_their_federation_is_over(store: Store) -> None:
    devices = running(store)
    open_round(store, devices)
    store.uploads.accept([an_upload(devices[0])])
    running_state, aborted = FederationState.RUNNING, FederationState.ABORTED
    assert store.federations.move("fed", aborted, since=[running_state], at=9.0)
    assert store.artifacts.unneeded_updates("fed", before_round=1) == [an_upload(devices[0]).update]


def test_an_update_body_stays_while_another_round_counts_the_same_one(store: Store) -> None:
    devices = running(store)
    others = running(store, name="other")
    open_round(store, devices[:1])
    store.uploads.accept([an_upload(devices[0], body="same")])
    finish_round(store)
    open_round(store, devices[1:2], 1)
    store.uploads.accept([an_upload(devices[1], 1, body="same")])
    assert store.artifacts.unneeded_updates("fed", before_round=2) == []
    finish_round(store, 1)
    assert store.artifacts.unneeded_updates("fed", before_round=1) == []
    assert store.artifacts.unneeded_updates("fed", before_round=2) == [digest("same")]
    open_round(store, others, federation="other")
    store.uploads.accept([an_upload(others[0], body="same")])
    assert store.artifacts.unneeded_updates("fed", before_round=2) == []

"""A backup that is taken while rounds run goes on from there, with every update that was acknowledged before it."""

import contextlib
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.federations.tokens import hash_of
from coordinator.rounds.context import Context
from coordinator.rounds.uploads import UploadQueue
from coordinator.storage import backup
from coordinator.storage.backup import back_up, check_backup
from coordinator.storage.open import open_blobs, open_store
from coordinator.storage.records import FederationState, RoundState, TaskState
from edgefl.errors import EdgeFLError
from edgefl.federation.settings import RoundSettings, SelectionSettings
from edgefl.values import Outcome
from tests.coordinator.fleet import Clock
from tests.coordinator.stage import Stage


@contextlib.contextmanager
def opened(state: Path, clock: Clock) -> Iterator[Stage]:
    """A federation in a state folder, as `edgefl serve` lays it out."""
    store, blobs = open_store(f"sqlite:///{state / 'coordinator.sqlite'}"), open_blobs(str(state / "blobs"))
    context = Context(store, blobs, now=clock)
    intake = UploadQueue(context)
    intake.start()
    try:
        yield Stage(context, clock, intake, store.federations.get("digits"))
    finally:
        intake.stop()
        store.close()
        blobs.close()


def begun(stage: Stage, devices: int = 3, rounds: int = 2) -> None:
    stage.begin(
        devices,
        rounds=RoundSettings(count=rounds, deadline=60, at_least=devices),
        selection=SelectionSettings(devices=devices, wait_for=devices),
    )


def finish(stage: Stage) -> None:
    """Let every device do what it is given until the federation has finished."""
    for _ in range(50):
        stage.advance()
        federation = stage.context.store.federations.get("digits")
        assert federation is not None
        if federation.state is FederationState.FINISHED:
            return
        for device in stage.context.store.devices.of("digits"):
            if stage.has_task(device):
                assert stage.do(device) is Outcome.ACCEPTED
    raise AssertionError("it does not end")


def test_a_federation_that_was_backed_up_during_a_round_goes_on_and_has_lost_no_update(tmp_path: Path) -> None:
    clock, state, copy = Clock(), tmp_path / "state", tmp_path / "backup"
    with opened(state, clock) as stage:
        begun(stage)
        stage.advance()
        first, second, third = stage.context.store.devices.of("digits")
        for device in (first, second):
            assert stage.do(device) is Outcome.ACCEPTED
        (state / "admin-token").write_text("a secret of forty characters, or more...")
        done = back_up(state, copy)
        assert done.bodies > 0
        before = {task.id: (task.state, task.update) for task in stage.context.store.tasks.of("digits")}
        late = stage.plan(third)
        assert stage.do(third) is Outcome.ACCEPTED  # after the backup
        finish(stage)
        weights = stage.context.store.rounds.of("digits")[-1].next_model
    shutil.rmtree(state)  # the disk is gone
    shutil.copytree(copy, state)
    assert check_backup(state).bodies == done.bodies
    with opened(state, clock) as stage:
        tasks = stage.context.store.tasks.of("digits")
        assert {task.id: (task.state, task.update) for task in tasks} == before
        assert sorted(task.state for task in tasks) == [TaskState.DONE, TaskState.DONE, TaskState.OPEN]
        known = stage.context.store.devices.by_token(hash_of("token-of-device-2"))
        assert known is not None, "devices go on with their tokens"
        assert stage.plan(known) == late
        assert stage.upload(known, late) is Outcome.ACCEPTED
        finish(stage)
        last = stage.context.store.rounds.of("digits")[-1]
        assert (last.state, last.next_model) == (RoundState.DONE, weights), "to the bit, as if nothing had happened"


def test_backups_while_rounds_end_are_all_complete(tmp_path: Path) -> None:
    clock, state, copy, over = Clock(), tmp_path / "state", tmp_path / "backup", threading.Event()
    with opened(state, clock) as stage:
        begun(stage, rounds=1000)

        def train() -> None:
            while not over.is_set():
                stage.advance()
                for device in stage.context.store.devices.of("digits"):
                    if stage.has_task(device):
                        stage.do(device)

        trainer = threading.Thread(target=train)
        trainer.start()
        try:
            done = 0
            for number in range(6):
                before = {task.id for task in stage.context.store.tasks.of("digits") if task.state is TaskState.DONE}
                back_up(state, copy)  # to the same folder: only what is new is copied
                restored = tmp_path / f"restored-{number}"
                shutil.copytree(copy, restored)
                check_backup(restored)
                with opened(restored, clock) as again:
                    have = {task.id for task in again.context.store.tasks.of("digits") if task.state is TaskState.DONE}
                    assert before <= have
                    done = len(again.context.store.rounds.of("digits"))
                    for _ in range(8):
                        again.advance()
                        for device in again.context.store.devices.of("digits"):
                            if again.has_task(device):
                                assert again.do(device) is Outcome.ACCEPTED
                    assert len(again.context.store.rounds.of("digits")) > done
                time.sleep(0.05)
        finally:
            over.set()
            trainer.join()
    assert done > 1


def test_a_body_that_is_dropped_while_it_is_copied_means_another_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, state = Clock(), tmp_path / "state"
    with opened(state, clock) as stage:
        begun(stage)
        stage.advance()
        first, second, third = stage.context.store.devices.of("digits")
        copy_bodies, needed = backup._copy_bodies, backup._needed
        snapshots: list[set[str]] = []

        def slow_copy(source: Path, target: Path) -> int:
            copied = copy_bodies(source, target)
            for device in (first, second, third):  # updates that come after the bodies were copied
                stage.do(device)
            return copied

        def slow_needed(database: Path) -> set[str]:
            if not snapshots:
                stage.advance(4)  # and that are aggregated and dropped after the snapshot
                for digest in stage.context.store.artifacts.unneeded_updates("digits", before_round=1):
                    stage.context.blobs.drop(digest)
            snapshots.append(needed(database))
            return snapshots[-1]

        monkeypatch.setattr(backup, "_copy_bodies", slow_copy)
        monkeypatch.setattr(backup, "_needed", slow_needed)
        assert back_up(state, tmp_path / "backup").snapshots == 2
    assert len(snapshots) == 2
    assert check_backup(tmp_path / "backup").bodies > 0


def test_a_backup_is_for_its_owner_alone_and_drops_what_the_coordinator_dropped(tmp_path: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "backup"
    with opened(state, Clock()) as stage:
        begun(stage)
        (state / "viewer-token").write_text("secret")
        old = stage.context.blobs.put(b"large" * 100_000)
        back_up(state, copy)
        assert (copy / "blobs" / "content" / old.removeprefix("sha256:")).exists()
        stage.context.blobs.drop(old)
        assert back_up(state, copy).copied_bytes < 500_000
        assert not (copy / "blobs" / "content" / old.removeprefix("sha256:")).exists()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in copy.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    assert (copy / "viewer-token").read_text() == "secret"
    assert not list(copy.rglob("*-new"))


def test_a_damaged_or_incomplete_backup_is_found(tmp_path: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "backup"
    with opened(state, Clock()) as stage:
        begun(stage)
        bundle = stage.federation
        assert bundle is not None
        back_up(state, copy)
        with contextlib.closing(sqlite3.connect(copy / "blobs" / "small.sqlite")) as small:
            digits = bundle.bundle.removeprefix("sha256:")
            small.execute("UPDATE bodies SET data = x'00' WHERE name = ?", (digits,))
            small.commit()
            with pytest.raises(EdgeFLError, match="is damaged"):
                check_backup(copy)
            small.execute("DELETE FROM bodies WHERE name = ?", (digits,))
            small.commit()
        with pytest.raises(EdgeFLError, match="lacks the body"):
            check_backup(copy)
        back_up(state, copy)
        check_backup(copy)
    (copy / "coordinator.sqlite").write_bytes(b"nothing" * 1000)
    with pytest.raises(EdgeFLError, match="damaged"):
        check_backup(copy)


def test_places_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with pytest.raises(EdgeFLError, match=r"has no file coordinator\.sqlite"):
        back_up(state, tmp_path / "backup")
    with opened(state, Clock()):
        for place in (state, state / "backup", state / "blobs" / "content" / ".." / "x"):
            with pytest.raises(EdgeFLError, match="in the state folder itself"):
                back_up(state, place)
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "cat.jpg").touch()
        with pytest.raises(EdgeFLError, match="neither empty nor a backup"):
            back_up(state, tmp_path / "photos")
    with pytest.raises(EdgeFLError, match="is not a backup"):
        check_backup(tmp_path / "photos")

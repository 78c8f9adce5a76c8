"""Bodies that no round needs any more go, a little at a time, and nothing else does."""

import threading
from collections.abc import Collection

import pytest

from coordinator.federations.lifecycle import Verb, move
from coordinator.rounds import garbage_collection
from coordinator.rounds.context import Context
from coordinator.rounds.driver import Driver
from coordinator.rounds.garbage_collection import GarbageCollector, drop_updates
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.storage.records import Device
from edgefl.federation.settings import RoundSettings as RoundSettings
from tests.coordinator.stage import Stage, until


def untidied(stage: Stage, devices: int = 4) -> list[str]:
    """Do a round that nobody tidies after; return the digests of its updates."""
    there = stage.begin(devices, rounds=RoundSettings(count=3))
    assert stage.federation is not None
    asked: list[str] = []
    for _ in range(2):
        _advance(stage, asked)
    for device in there:
        if stage.has_task(device):
            stage.do(device)
    for _ in range(2):
        _advance(stage, asked)
    assert asked == [stage.federation.id]
    return [
        task.update for task in stage.context.store.tasks.counted(stage.federation.id, 0) if task.update is not None
    ]


def _advance(stage: Stage, asked: list[str]) -> None:
    assert stage.federation is not None
    federation = stage.context.store.federations.get(stage.federation.id)
    assert federation is not None
    RoundStateMachine(stage.context, federation, collect_garbage=asked.append).advance()


def kept(context: Context, digests: Collection[str]) -> int:
    return sum(context.blobs.size(digest) is not None for digest in digests)


def test_it_is_done_in_steps_and_goes_on_after_a_stop(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "_BATCH", 1)
    updates = untidied(stage)
    assert stage.federation is not None
    assert len(updates) > 1
    stop = threading.Event()
    stop.set()
    drop_updates(stage.context, stage.federation.id, stop)
    assert kept(stage.context, updates) == len(updates) - 1
    drop_updates(stage.context, stage.federation.id)
    assert kept(stage.context, updates) == 0
    assert len(stage.context.store.tasks.counted(stage.federation.id, 0)) == len(updates)  # what happened stays known


def test_a_failure_after_one_federation_keeps_none_from_the_next(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    updates = untidied(stage)
    assert stage.federation is not None
    latest_round = stage.context.store.rounds.latest

    def failing(federation: str) -> object:
        if federation == "broken":
            raise OSError("the disk is on fire")
        return latest_round(federation)

    monkeypatch.setattr(stage.context.store.rounds, "latest", failing)
    thread = GarbageCollector(stage.context)
    thread.start()
    thread.request("broken")
    thread.request(stage.federation.id)
    until(lambda: not kept(stage.context, updates))
    thread.stop()


def test_what_is_still_to_be_combined_stays(stage: Stage) -> None:
    one, _ = stage.begin()
    stage.advance()
    stage.do(one)
    assert stage.federation is not None
    (update,) = (task.update for task in stage.context.store.tasks.of(stage.federation.id) if task.update is not None)
    drop_updates(stage.context, stage.federation.id)
    assert kept(stage.context, [update]) == 1


def test_a_coordinator_tidies_after_what_ended_before_it_was_started(stage: Stage) -> None:
    updates = untidied(stage)
    assert stage.federation is not None
    move(stage.context, stage.federation.id, Verb.ABORT, "enough seen")
    driver = Driver(stage.context)
    driver.start()
    until(lambda: not kept(stage.context, updates))
    driver.stop()


def test_an_aborted_federations_updates_go(stage: Stage) -> None:
    one: Device
    one, _ = stage.begin()
    stage.advance()
    stage.do(one)
    assert stage.federation is not None
    (update,) = (task.update for task in stage.context.store.tasks.of(stage.federation.id) if task.update is not None)
    move(stage.context, stage.federation.id, Verb.ABORT, "enough seen")
    drop_updates(stage.context, stage.federation.id)
    assert kept(stage.context, [update]) == 0


def test_updates_are_forgotten_once_their_round_is_done_and_models_are_not(stage: Stage) -> None:
    devices = stage.begin()
    updates = []
    for _ in range(2):
        stage.advance()
        for device in devices:
            plan = stage.plan(device)
            stage.upload(device, plan)
            task = stage.context.store.tasks.get(plan.task_id)
            assert task is not None
            updates.append(task.update)
        stage.advance(2)
    assert all(stage.context.blobs.size(digest) is None for digest in updates if digest)
    assert stage.weights(0) is not None

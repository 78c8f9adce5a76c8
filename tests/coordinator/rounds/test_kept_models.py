"""Which models stay on the coordinator: the newest, the first, the best, and whatever something still needs."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from coordinator.errors import CoordinatorError
from coordinator.federations.lifecycle import create
from coordinator.federations.model_downloads import global_model
from coordinator.rounds.context import Context
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.rounds.uploads import UploadQueue
from coordinator.storage.open import open_blobs, open_store
from edgefl.artifacts.bundle import pack_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import EdgeFLError
from edgefl.federation.evaluation import Score
from edgefl.federation.settings import (
    BufferingSettings,
    EvaluationSettings,
    FederationMode,
    RoundSettings,
    SelectionSettings,
)
from edgefl.masks import Weights
from edgefl.wire import BodyKind, decode
from tests.coordinator.fleet import Clock, enrol, settings_of
from tests.coordinator.postgresql import new_database
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle

ONE = SelectionSettings(devices=1)


def play(stage: Stage, rounds: int, accuracies: dict[int, float] | None = None, shift: float = 1.0) -> None:
    """Play rounds with one device; `accuracies` are those of the evaluation, by round."""
    assert stage.federation is not None
    (device,) = stage.context.store.devices.of(stage.federation.id)
    for _ in range(rounds):
        stage.advance()
        stage.do(device, shift=shift)
        stage.advance()
        number = stage.round.number

        def score(networks: Sequence[Weights], number: int = number) -> Score:
            return Score((accuracies or {})[number], 1.0, 10)

        RoundStateMachine(stage.context, stage.federation, score if accuracies else None).advance()
        assert stage.state == "done"


def kept(stage: Stage, federation: str = "digits") -> list[int]:
    """Return the rounds whose models are stored; what the database says must be so."""
    done = [one for one in stage.context.store.rounds.of(federation) if one.next_model is not None]
    for one in done:
        assert (stage.context.blobs.size(one.next_model or "") is not None) == one.model_kept
    return [one.number for one in done if one.model_kept]


def test_the_newest_models_and_the_first_stay(stage: Stage) -> None:
    stage.begin(1, rounds=RoundSettings(count=9, deadline=60, keep_models=3), selection=ONE)
    play(stage, 8)
    assert kept(stage) == [0, 5, 6, 7]
    assert stage.context.blobs.size(stage.context.store.rounds.of("digits")[0].model) is not None


def test_five_models_stay_unless_the_federation_says_otherwise(stage: Stage) -> None:
    stage.begin(1, rounds=RoundSettings(count=9, deadline=60), selection=ONE)
    play(stage, 8)
    assert kept(stage) == [0, 3, 4, 5, 6, 7]


def test_without_a_limit_every_model_stays(stage: Stage) -> None:
    stage.begin(1, rounds=RoundSettings(count=9, deadline=60, keep_models=None), selection=ONE)
    play(stage, 8)
    assert kept(stage) == list(range(8))


def test_the_best_model_stays_until_a_better_one_comes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.federations.lifecycle.check_data", lambda *_: None)
    stage.begin(
        1,
        rounds=RoundSettings(count=12, deadline=60, keep_models=2),
        selection=ONE,
        evaluation=EvaluationSettings(data="digits"),
    )
    accuracies = dict(enumerate([0.1, 0.2, 0.8, 0.5, 0.8, 0.4, 0.3, 0.9, 0.5, 0.4]))
    play(stage, 7, accuracies)
    assert kept(stage) == [0, 2, 5, 6]
    play(stage, 3, accuracies)
    assert kept(stage) == [0, 7, 8, 9]


def test_an_earlier_model_can_be_downloaded_until_it_is_dropped(stage: Stage) -> None:
    stage.begin(1, rounds=RoundSettings(count=9, deadline=60, keep_models=2), selection=ONE)
    with pytest.raises(CoordinatorError, match="round 1 of 'digits' is not done"):
        global_model(stage.context, "digits", "weights", number=0)
    play(stage, 3)
    before = bundle_weights(bundle())
    name = next(name for name in before if name.endswith("weight"))
    for number in (0, 1, 2):
        body = global_model(stage.context, "digits", "weights", number=number)
        found = decode(body, kind=BodyKind.WEIGHTS).arrays[name]
        np.testing.assert_allclose(found, before[name] + number + 1, rtol=1e-5, atol=1e-5)
    assert global_model(stage.context, "digits", "weights") == body
    play(stage, 2)
    with pytest.raises(CoordinatorError, match=r"round 3 of 'digits' was dropped: .* the newest 2, the first and the"):
        global_model(stage.context, "digits", "weights", number=2)
    stage.advance()  # while a round is open, the newest model is the one that it starts from
    newest = decode(global_model(stage.context, "digits", "weights"), kind=BodyKind.WEIGHTS).arrays[name]
    np.testing.assert_allclose(newest, before[name] + 5, rtol=1e-5, atol=1e-5)


def test_a_model_that_does_not_change_is_never_dropped(stage: Stage) -> None:
    stage.begin(
        1,
        rounds=RoundSettings(count=9, deadline=60, keep_models=1),
        selection=ONE,
    )
    play(stage, 5, shift=0.0)
    assert kept(stage) == [0, 1, 2, 3, 4]
    assert len({one.next_model for one in stage.context.store.rounds.of("digits")}) == 1


def test_a_model_that_a_task_started_from_stays_until_its_update_is_aggregated(stage: Stage) -> None:
    slow, fast = stage.begin(
        2,
        mode=FederationMode.BUFFERED,
        rounds=RoundSettings(count=20, deadline=6000, keep_models=1),
        buffering=BufferingSettings(size=1, at_once=2),
    )
    stage.advance()
    stage.do(fast)
    stage.advance(3)
    stage.do(slow)
    stage.advance(4)  # now the slow one gets a task that starts from the model of round 1
    started = stage.plan(slow).round
    assert started > 0
    for _ in range(4):
        stage.do(fast)
        stage.advance(4)
    assert started - 1 in kept(stage)
    assert stage.upload(slow, stage.plan(slow)) == "accepted"
    for _ in range(3):
        stage.advance(4)
        stage.do(fast)
    stage.advance(2)
    assert stage.state == "done"
    assert started - 1 == 0 or started - 1 not in kept(stage)


def test_equal_models_of_another_federation_stay(stage: Stage) -> None:
    stage.begin(1, name="other", rounds=RoundSettings(count=9, deadline=60, keep_models=None), selection=ONE)
    play(stage, 4)
    other = stage.context.store.rounds.of("other")
    stage.federation = None
    stage.begin(0, name="digits", rounds=RoundSettings(count=9, deadline=60, keep_models=1), selection=ONE)
    assert stage.federation is not None
    enrol(stage.context, stage.federation, "device-x")
    play(stage, 4)
    mine = stage.context.store.rounds.of("digits")
    assert [one.next_model for one in mine] == [one.next_model for one in other]
    assert [one.model_kept for one in mine] == [True, False, True, True]
    assert all(stage.context.blobs.size(one.next_model or "") is not None for one in other)


def test_a_model_that_is_dropped_while_an_equal_one_is_stored_is_stored_again(stage: Stage) -> None:
    (device,) = stage.begin(1, selection=ONE)
    stage.advance()
    stage.do(device)
    stage.advance()
    blobs, put = stage.context.blobs, stage.context.blobs.put
    losses: list[str] = []

    def lost(data: bytes) -> str:
        digest = put(data)
        if not losses:  # another worker drops an equal model of another federation at this moment
            losses.append(digest)
            blobs.drop(digest)
        return digest

    blobs.put = lost  # type: ignore[method-assign]
    stage.advance()
    assert stage.state == "closed"
    stage.advance()
    assert stage.state == "done"
    assert blobs.size(stage.round.next_model) is not None


def test_a_blob_store_that_fails_to_drop_does_not_stop_the_federation(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.begin(1, rounds=RoundSettings(count=9, deadline=60, keep_models=1), selection=ONE)
    play(stage, 2)
    with monkeypatch.context() as patch:

        def broken(*_: object) -> None:
            raise OSError("no answer")

        patch.setattr(stage.context.store.artifacts, "drop_models", broken)
        play(stage, 2)
    assert kept(stage) == [0, 1, 2, 3]
    play(stage, 1)
    assert kept(stage) == [0, 3, 4]


def test_creating_a_federation_again_after_an_upgrade_finds_the_same_one(stage: Stage) -> None:
    stage.begin(0)
    federation = stage.context.store.federations.get("digits")
    assert federation is not None
    older = json.loads(federation.settings)
    del older["rounds"]["keep_models"]
    with stage.context.store._database._writer.begin() as connection:
        connection.exec_driver_sql("UPDATE federations SET settings = ?", (json.dumps(older),))
    _, new = create(stage.context, settings_of(), pack_bundle(bundle()))
    assert not new
    with pytest.raises(EdgeFLError, match="already exists with other settings"):
        create(stage.context, settings_of(seed=8), pack_bundle(bundle()))


@contextlib.contextmanager
def staged(database: str, blobs: str) -> Iterator[Stage]:
    clock = Clock()
    context = Context(open_store(database), open_blobs(blobs), now=clock)
    intake = UploadQueue(context)
    intake.start()
    yield Stage(context, clock, intake)
    intake.stop()
    context.store.close()
    context.blobs.close()


def test_models_of_a_remote_store_are_dropped(tmp_path: Path) -> None:
    with staged(f"sqlite:///{tmp_path}/c.db", f"memory://{tmp_path.name}") as stage:
        stage.begin(1, rounds=RoundSettings(count=9, deadline=60, keep_models=2), selection=ONE)
        play(stage, 5)
        assert kept(stage) == [0, 3, 4]


def test_two_workers_on_postgresql_keep_the_same_models(tmp_path: Path, server: str) -> None:
    url = new_database(server)
    with staged(url, str(tmp_path)) as one, staged(url, str(tmp_path)) as two:
        one.begin(1, rounds=RoundSettings(count=9, deadline=60, keep_models=2), selection=ONE)
        two.federation = one.federation
        for _ in range(3):
            play(one, 1)
            play(two, 1)
        assert kept(one) == kept(two) == [0, 4, 5]

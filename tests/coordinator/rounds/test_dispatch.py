"""The tasks that a round hands out, and the bodies that their devices download."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from coordinator.rounds.garbage_collection import drop_old_artifacts
from coordinator.storage.blobs import Spooled
from edgefl.federation.settings import RoundSettings as RoundSettings
from edgefl.federation.settings import (
    SelectionSettings,
    StrategyChoice,
)
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import full_mask
from edgefl.values import ClientPlan, Outcome, Submodel, loads
from edgefl.wire import Counts, decode, decode_result, encode_result
from tests.coordinator.fleet import answer
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle


def test_who_has_the_whole_model_downloads_what_is_stored_of_it_and_nothing_is_read_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = stage.begin()
    asked: list[str] = []
    size = stage.context.blobs.size

    def noted(digest: str) -> int | None:
        asked.append(digest)
        return size(digest)

    monkeypatch.setattr(stage.context.blobs, "size", noted)
    stage.advance()
    assert stage.plan(one).weights == stage.round.model
    assert asked.count(stage.round.model) == 2  # once for both devices, and once when the first round opens
    stage.do(one, shift=1.0)
    stage.do(two, shift=2.0)
    stage.advance()
    kept: list[int] = []
    put_all = stage.context.blobs.put_all

    def counted(bodies: Sequence[bytes | Spooled]) -> list[str]:
        kept.extend(len(body) for body in bodies if isinstance(body, bytes))
        return put_all(bodies)

    monkeypatch.setattr(stage.context.blobs, "put_all", counted)
    read: list[str] = []
    monkeypatch.setattr(stage.context.blobs, "get", read.append)
    stage.advance(2)
    model = stage.round.model
    assert stage.plan(one).weights == model
    assert sum(size == stage.context.blobs.size(model) for size in kept) == 1  # once, as the result of the round
    assert not read
    monkeypatch.undo()
    stored = decode(stage.context.blobs.get(model)).arrays
    remembered = stage.context.repository.arrays(model)
    assert list(stored) == list(remembered)
    for name, array in stored.items():
        assert np.array_equal(array, remembered[name])
        assert not remembered[name].flags.writeable


def test_the_tensors_of_a_task_can_be_downloaded_until_no_task_needs_them(stage: Stage) -> None:
    one, two = stage.begin(rounds=RoundSettings(count=1))
    stage.advance()
    assert stage.federation is not None
    context, federation = stage.context, stage.federation.id
    tasks = [context.store.tasks.oldest_open(device.id) for device in (one, two)]
    plan, other = (loads(ClientPlan, task.plan) for task in tasks if task is not None)
    assert plan.tensors is not None
    named = loads(Submodel, context.blobs.get(plan.tensors))
    assert [tensor.name for tensor in named.tensors] == list(bundle().graph.tensor)
    assert other.tensors == plan.tensors  # which are equal submodels
    drop_old_artifacts(context, federation, plan.round + 100)
    artifact = context.store.artifacts.get(federation, plan.tensors)
    assert artifact is not None
    assert (artifact.kind, artifact.size) == ("tensors", context.blobs.size(plan.tensors))
    stage.do(one)
    stage.do(two)
    stage.advance(3)
    drop_old_artifacts(context, federation, plan.round + 100)
    assert context.store.artifacts.get(federation, plan.tensors) is None
    assert context.blobs.size(plan.tensors) is None


def test_a_device_that_learned_a_mask_has_the_part_that_it_had(stage: Stage) -> None:
    fedmap = StrategyChoice(
        name="fedmap",
        settings={"granularity": "channel", "capacities": "0.25", "mask_rounds": 1, "weight_rounds": 1},
    )
    one, *_ = stage.begin(1, strategy=fedmap, selection=SelectionSettings(devices=1))
    stage.advance()
    groups = prunable_groups(full_mask(bundle().graph))
    counts = {f"m/{group.name}": Counts.of(np.ones(group.width, np.int64), 1) for group in groups}
    has = []
    for number in range(3):
        plan = stage.plan(one)
        body = answer(stage.context, plan)
        if number != 1:
            body = encode_result(replace(decode_result(body, bundle().graph), tensors=counts), bundle().graph)
        assert stage.upload(one, plan, body) is Outcome.ACCEPTED
        stage.advance(3)
        device = stage.context.store.devices.get(one.id)
        assert device is not None
        has.append((plan.mask_body, device.mask_body))
    (_, none), (given, trained), (whole, learned) = has
    assert none is None
    assert trained == learned == given != whole

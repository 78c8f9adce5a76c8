"""Hermes at the coordinator: an accepted report makes the next download smaller, and a bad one is refused."""

from dataclasses import replace

import numpy as np
import pytest

from coordinator.storage.records import Device
from device_runtime.agent.own_capabilities import own_capabilities
from edgefl.errors import WireFormatError
from edgefl.federation.settings import RoundSettings, SelectionSettings, StrategyChoice
from edgefl.local_rules.sensitivity import report_forms
from edgefl.masks import Mask
from edgefl.values import ClientPlan, Outcome, dumps
from edgefl.wire import Dense, decode_result, encode_result
from tests.coordinator.fleet import answer
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle

GRAPH = bundle().graph
HERMES = StrategyChoice(name="hermes", settings={"channel_multiple": 1})


def begun(stage: Stage) -> list[Device]:
    devices = stage.begin(
        2, strategy=HERMES, rounds=RoundSettings(count=3, deadline=60), selection=SelectionSettings(devices=2)
    )
    for device in devices:
        stage.context.store.devices.set_capabilities(device.id, dumps(own_capabilities("onnx")))
    stage.advance(2)
    return devices


def mask_of(stage: Stage, plan: ClientPlan) -> Mask:
    return stage.context.repository.mask(GRAPH, plan.mask_body)


def update(stage: Stage, plan: ClientPlan, accuracy: float | None, first: float = 1.0) -> bytes:
    """An update whose channels are the more sensitive, the higher their number; the first sums are `first`."""
    report = decode_result(answer(stage.context, plan), GRAPH)
    sums = {
        name: Dense(np.concatenate([[first], np.arange(2, form.shape[0] + 1)]).astype(np.float32))
        for name, form in report_forms(mask_of(stage, plan)).items()
    }
    result = replace(report.result, accuracy=accuracy)
    return encode_result(replace(report, result=result, tensors={**report.tensors, **sums}), GRAPH)


def test_the_next_download_of_an_accurate_device_is_smaller(stage: Stage) -> None:
    accurate, other = begun(stage)
    sizes = []
    for _ in range(3):
        plans = [stage.plan(device) for device in (accurate, other)]
        masks = [mask_of(stage, plan) for plan in plans]
        sizes.append([mask.cost.parameters for mask in masks])
        for device, plan, accuracy in zip((accurate, other), plans, (0.9, 0.4), strict=True):
            assert stage.upload(device, plan, update(stage, plan, accuracy)) is Outcome.ACCEPTED
        stage.advance(3)
    assert sizes[0] == [GRAPH.parameters, GRAPH.parameters]
    assert GRAPH.parameters > sizes[1][0] > sizes[2][0]
    assert sizes[1][1] == sizes[2][1] == GRAPH.parameters
    kept = masks[0].kept
    cut = [group.name for group in GRAPH.groups if group.fixed is None and kept[group.name].size < group.width]
    assert cut
    for name in cut:  # the first channels went
        assert kept[name].max() == GRAPH.group[name].width - 1


def test_a_report_that_is_not_one_of_sums_is_refused_and_changes_nothing(stage: Stage) -> None:
    device, _ = begun(stage)
    plan = stage.plan(device)
    with pytest.raises(WireFormatError, match="negative sum of squares"):
        stage.upload(device, plan, update(stage, plan, 0.9, first=-1.0))
    with pytest.raises(WireFormatError, match="sensitivity/"):
        stage.upload(device, plan, answer(stage.context, plan))
    known = stage.context.store.devices.get(device.id)
    assert known is not None
    assert known.mask_body is None
    assert stage.upload(device, plan, update(stage, plan, 0.9)) is Outcome.ACCEPTED

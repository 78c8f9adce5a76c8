"""A federation goes on, whatever one of its devices claims or sends."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from coordinator.federations.overview import overview_of
from coordinator.federations.telemetry_table import as_csv, rows, write_parquet
from coordinator.http.routes.conversion import LIVE_JSON, device_view, federation_view, round_view, task_view
from coordinator.observability.metrics import Metrics
from coordinator.page.charts import Charts
from coordinator.page.live_snapshot import LiveSnapshot
from coordinator.rounds.report import round_report
from coordinator.rounds.uploads import UploadQueue
from coordinator.storage.records import RoundState, Task, TaskCounts, TaskState
from device_runtime.agent.own_capabilities import own_capabilities
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import EdgeFLError, WireFormatError
from edgefl.federation.settings import RoundSettings, SelectionSettings, StrategyChoice
from edgefl.strategies import STRATEGIES, FedAvg, Model
from edgefl.values import LARGEST_INTEGER, Energy, LocalResult, Outcome, Provenance, Scope, Telemetry, dumps
from edgefl.wire import decode_result, encode_result
from tests.coordinator.fleet import Clock, answer, enrol, make_context
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle
from tests.federation.hostile import COUNTS, NUMBERS, telemetries
from tests.values.samples import PROFILE

HOSTILE = replace(PROFILE.cost, memory_base_bytes=LARGEST_INTEGER)
ALL = {"memory_total_bytes": LARGEST_INTEGER, "memory_free_bytes": LARGEST_INTEGER}


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_profile_with_the_largest_numbers_does_not_stop_a_federation(stage: Stage, name: str) -> None:
    devices = stage.begin(2, strategy=StrategyChoice(name=name), selection=SelectionSettings(devices=3))
    assert stage.federation is not None
    hostile = enrol(stage.context, stage.federation, "hostile", cost=HOSTILE, **ALL)
    for device in (*devices, hostile):
        stage.context.store.devices.set_capabilities(device.id, dumps(own_capabilities("onnx")))
    stage.advance()
    assert stage.round is not None
    assert all(stage.has_task(device) for device in devices)


def test_a_device_whose_planning_fails_is_left_out_and_the_operator_sees_why(stage: Stage) -> None:
    devices = stage.begin(3, rounds=RoundSettings(count=2, deadline=60), selection=SelectionSettings(devices=3))
    plan = FedAvg.plan

    def fussy(self: FedAvg, model: Model, participants: object, context: object) -> object:
        if any(one.device_id == "device-1" for one in participants):  # type: ignore[attr-defined]
            raise OverflowError("cannot convert float infinity to integer")
        return plan(self, model, participants, context)  # type: ignore[arg-type]

    with patch.object(FedAvg, "plan", fussy):
        stage.advance()
    assert [stage.has_task(device) for device in devices] == [True, False, True]
    seen = stage.context.store.devices.get(devices[1].id)
    assert seen is not None
    assert seen.left_out == "OverflowError: cannot convert float infinity to integer"
    stage.do(devices[0])
    stage.do(devices[2])
    stage.advance(2)
    assert json.loads(stage.round.report)["left_out"] == {devices[1].id: seen.left_out}
    stage.advance()  # its planning works now, and it gets a task
    assert stage.has_task(devices[1])
    assert stage.context.store.devices.left_out("digits") == {}


def test_an_update_that_cannot_be_aggregated_is_left_out_of_the_model_and_reported(stage: Stage) -> None:
    devices = stage.begin(3, selection=SelectionSettings(devices=3))
    stage.advance()
    for device, shift in zip(devices, (1.0, 1000.0, 3.0), strict=True):
        assert stage.do(device, shift=shift) is Outcome.ACCEPTED
    combine = FedAvg.combine

    def fussy(self: FedAvg, model: Model, updates: object, context: object) -> Model:
        if any(update.device_id == "device-1" for update in updates):  # type: ignore[attr-defined]
            raise WireFormatError("its tensors cannot be read", fix="Send others.")
        return combine(self, model, updates, context)  # type: ignore[arg-type]

    with patch.object(FedAvg, "combine", fussy):
        stage.advance(2)
    assert stage.state == RoundState.DONE
    report = json.loads(stage.round.report)
    assert report["updates"] == 2
    assert report["left_out"] == {devices[1].id: "its update was left out: its tensors cannot be read"}
    name = next(name for name in stage.weights(0) if name.endswith("weight"))
    np.testing.assert_allclose(stage.weights(0)[name], bundle_weights(bundle())[name] + 2.0, rtol=1e-6, atol=1e-6)


def test_personalisation_goes_on_without_a_device_for_which_it_fails(stage: Stage) -> None:
    devices = stage.begin(
        2,
        rounds=RoundSettings(count=1, deadline=60),
        strategy=StrategyChoice(name="fedavg", settings={"fine_tune_epochs": 1}),
    )
    stage.advance()
    for device in devices:
        stage.do(device)
    stage.advance(2)
    personalise = FedAvg.personalise

    def fussy(self: FedAvg, model: Model, participants: object, context: object) -> object:
        if any(one.device_id == "device-0" for one in participants):  # type: ignore[attr-defined]
            raise ValueError("no epochs")
        return personalise(self, model, participants, context)  # type: ignore[arg-type]

    with patch.object(FedAvg, "personalise", fussy):
        stage.advance()
    assert [stage.has_task(device) for device in devices] == [False, True]


@effort(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(telemetries(), COUNTS, NUMBERS, st.sampled_from([None, 0.0, 1.0])), min_size=1, max_size=5))
def test_a_report_of_hostile_telemetry_is_plain_json(claims: list[tuple[Telemetry, int, float, float | None]]) -> None:
    tasks = [
        Task(
            id=f"task-{number}",
            federation="digits",
            round=0,
            device=f"device-{number}",
            plan="",
            created_at=0,
            state=TaskState.DONE,
            result=dumps(
                LocalResult(
                    task_id=f"task-{number}",
                    device_id="device",
                    round=0,
                    samples=samples,
                    steps=samples,
                    loss=loss,
                    telemetry=telemetry,
                    accuracy=accuracy,
                )
            ),
        )
        for number, (telemetry, samples, loss, accuracy) in enumerate(claims)
    ]
    report = round_report(tasks, TaskCounts(0, len(tasks), 0, 0, 0), None, combine_seconds=0.0)
    json.dumps(report, allow_nan=False)


def test_energies_whose_sum_is_too_large_are_reported_as_unknown(stage: Stage) -> None:
    energy = Energy(joules=1.7e308, source="claimed", scope=Scope.DEVICE, provenance=Provenance.ESTIMATED)
    devices = stage.begin(2)
    stage.advance()
    for device in devices:
        body = decode_result(answer(stage.context, stage.plan(device)), bundle().graph)
        result = replace(body.result, telemetry=replace(body.result.telemetry, energy=energy))
        stage.upload(device, stage.plan(device), encode_result(replace(body, result=result), bundle().graph))
    stage.advance(2)
    assert json.loads(stage.round.report, parse_constant=pytest.fail)["joules"] is None


def test_one_claim_of_samples_does_not_decide_the_accuracy_that_is_reported(stage: Stage) -> None:
    devices = stage.begin(3, selection=SelectionSettings(devices=3))
    stage.advance()
    for device, samples in zip(devices, (10, 10, LARGEST_INTEGER), strict=True):
        stage.do(device, shift=3.0 if samples == 10 else 0.0, samples=samples)
    stage.advance(2)
    name = next(name for name in stage.weights(0) if name.endswith("weight"))
    np.testing.assert_allclose(
        stage.weights(0)[name], bundle_weights(bundle())[name] + 3.0 * 20 / 120, rtol=1e-5, atol=1e-6
    )


@effort(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(telemetries(), COUNTS, COUNTS, NUMBERS, st.sampled_from([None, 0.0, 1.0]))
def test_whatever_a_device_reports_the_round_ends_and_everything_can_be_shown(
    tmp_path_factory: pytest.TempPathFactory,
    telemetry: Telemetry,
    samples: int,
    steps: int,
    number: float,
    accuracy: float | None,
) -> None:
    clock = Clock()
    context = make_context(tmp_path_factory.mktemp("hostile"), clock)
    intake = UploadQueue(context)
    intake.start()
    stage = Stage(context, clock, intake)
    honest, hostile = stage.begin(2, rounds=RoundSettings(count=2, deadline=60))
    try:
        stage.advance()
        stage.do(honest)
        body = decode_result(answer(context, stage.plan(hostile), samples=samples), bundle().graph)
        metrics = {"accuracy_before": number, "other": -number}
        result = replace(body.result, telemetry=telemetry, steps=steps, loss=number, accuracy=accuracy, metrics=metrics)
        sent = encode_result(replace(body, result=result), bundle().graph)
        with contextlib.suppress(EdgeFLError):  # refused with a message, as a count of bytes may be full
            stage.upload(hostile, stage.plan(hostile), sent)
        stage.clock.time += 60
        stage.advance(2)
        assert stage.state == RoundState.DONE
        assert all(np.isfinite(array).all() for array in stage.weights(0).values())
        _show_all(stage, tmp_path_factory.mktemp("shown"))
        stage.context.store.devices.mark_seen({honest.id: stage.clock(), hostile.id: stage.clock()})
        stage.advance()
        assert stage.has_task(honest)
    finally:
        intake.stop()
        context.store.close()


def _show_all(stage: Stage, folder: Path) -> None:
    """Show everything that an operator can see."""
    context = stage.context
    federation = context.store.federations.get("digits")
    assert federation is not None
    views = [
        federation_view(overview_of(context, federation), whole=True),
        round_view(stage.round),
        *(task_view(task) for task in context.store.tasks.of("digits")),
        *(device_view(device, available_since=0.0) for device in context.store.devices.of("digits")),
    ]
    for view in views:
        json.loads(view.model_dump_json(), parse_constant=pytest.fail)
    assert b"".join(as_csv(rows(context.store, "digits")))
    write_parquet(rows(context.store, "digits"), folder / "telemetry.parquet")
    json.dumps(LiveSnapshot(context, "digits", LIVE_JSON).refresh(()), allow_nan=False)
    charts = Charts(context)
    json.dumps([charts.rounds("digits"), charts.masks("digits")], allow_nan=False)
    assert Metrics(context).text()

"""Devices whose engine runs compiled programs: what a federation has and wants, and what hostile ones cannot do."""

from dataclasses import replace
from typing import Any

from coordinator.federations.lifecycle import Verb, create, move
from coordinator.federations.programs import deliver, keep_file
from coordinator.rounds.garbage_collection import drop_old_artifacts
from coordinator.storage.records import COORDINATOR, Device, ProgramState
from edgefl.artifacts.bundle import pack_bundle
from edgefl.federation.settings import RoundSettings, SelectionSettings
from edgefl.values import Capabilities, Outcome, Program, ProgramSpec, dumps, loads
from tests.coordinator.fleet import enrol, settings_of
from tests.coordinator.programs import EXECUTORCH, bundle_with, file_of, ladder, program_of, specs_of
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle
from tests.values.samples import CAPABILITIES

BATCH = settings_of().work.batch_size
FULL = specs_of((1.0,), batch=BATCH, cuts=["0"])[0]
SMALL = specs_of((0.25,), batch=BATCH, cuts=["0"])[0]


def begin(stage: Stage, specs: list[ProgramSpec], devices: int = 2, **changes: Any) -> list[Device]:
    """A federation whose bundle has programs, and devices that say nothing yet."""
    packed = pack_bundle(bundle_with(specs) if specs else bundle())
    federation, _ = create(stage.context, settings_of(**changes), packed)
    stage.federation = move(stage.context, federation.id, Verb.START)
    return [enrol(stage.context, stage.federation, f"device-{number}") for number in range(devices)]


def say(stage: Stage, device: Device, capabilities: Capabilities = EXECUTORCH) -> Device:
    """Let a device say what its software can run; return its new record."""
    stage.context.store.devices.set_capabilities(device.id, dumps(capabilities))
    return replace(device, capabilities=dumps(capabilities))


def upload(stage: Stage, spec: ProgramSpec) -> bool:
    keep_file(stage.context, file_of(spec), by=COORDINATOR)
    return deliver(stage.context, "digits", spec.key, program_of(spec), "w1", by=COORDINATOR)


def wanted(stage: Stage) -> dict[str, ProgramState]:
    return {one.key: one.state for one in stage.context.store.programs.of("digits")}


def rung(stage: Stage, device: Device) -> str | None:
    (task,) = stage.context.store.tasks.of("digits", device=device.id)
    return task.rung


def test_programs_of_the_bundle_are_ready_at_once_and_devices_run_them(stage: Stage) -> None:
    one, two = begin(stage, [FULL])
    assert wanted(stage) == {FULL.key: ProgramState.READY}
    one = say(stage, one)
    stage.advance(2)
    plan = stage.plan(one)
    assert plan.program is not None
    document = stage.context.blobs.get(plan.program)
    assert loads(Program, document) == program_of(FULL)
    for digest in (plan.program, program_of(FULL).pte):
        artifact = stage.context.store.artifacts.get("digits", digest)
        assert artifact is not None
        assert artifact.round is None
    assert rung(stage, one) == f"1 all layers, batch {BATCH}"
    assert stage.plan(two).program is None
    assert rung(stage, two) is None
    assert stage.do(one) is Outcome.ACCEPTED
    assert stage.do(two) is Outcome.ACCEPTED


def test_programs_outlive_the_rounds_that_use_them(stage: Stage) -> None:
    one, _ = begin(stage, [FULL])
    say(stage, one)
    stage.advance(2)
    drop_old_artifacts(stage.context, "digits", 1000)
    assert stage.context.blobs.get(program_of(FULL).pte) == file_of(FULL)
    assert stage.context.store.artifacts.get("digits", program_of(FULL).pte) is not None


def test_a_device_without_a_program_waits_with_the_reason_and_gets_a_task_once_there_is_one(stage: Stage) -> None:
    (one,) = begin(stage, [], 1)
    say(stage, one)
    stage.advance(2)
    assert not stage.has_task(one)
    known = stage.context.store.devices.get(one.id)
    assert known is not None
    assert known.left_out is not None
    assert "no program for its engine executorch 1.4.1 is compiled yet" in known.left_out
    states = wanted(stage)
    assert set(states.values()) == {ProgramState.WANTED}
    assert FULL.key in states
    assert upload(stage, FULL)
    stage.advance()
    assert stage.has_task(one)
    known = stage.context.store.devices.get(one.id)
    assert known is not None
    assert known.left_out is None
    assert rung(stage, one) == f"1 all layers, batch {BATCH}"


def test_a_device_takes_a_rung_down_until_the_one_it_wants_is_compiled(stage: Stage) -> None:
    (one,) = begin(stage, [SMALL], 1, selection=SelectionSettings(devices=1))
    say(stage, one)
    stage.advance(2)
    assert rung(stage, one) == f"0.25 all layers, batch {BATCH}"
    assert wanted(stage)[FULL.key] is ProgramState.WANTED
    assert upload(stage, FULL)
    assert stage.do(one) is Outcome.ACCEPTED
    stage.advance(4)
    rungs = {task.round: task.rung for task in stage.context.store.tasks.of("digits", device=one.id)}
    assert rungs == {0: f"0.25 all layers, batch {BATCH}", 1: f"1 all layers, batch {BATCH}"}


def test_a_program_that_is_taken_back_is_not_planned_with(stage: Stage) -> None:
    (one,) = begin(stage, [], 1)
    upload(stage, FULL)
    say(stage, one)
    stage.context.store.programs.want_again("digits", FULL.key, at=stage.clock())
    stage.clock.time += 2
    stage.advance(2)
    assert not stage.has_task(one)


def test_what_is_wanted_is_noted_once_however_often_a_waiting_federation_plans(stage: Stage) -> None:
    (one,) = begin(stage, [], 1)
    say(stage, one)
    for _ in range(10):
        stage.advance()
        stage.clock.time += 0.5
    found = stage.context.store.programs.get("digits", FULL.key)
    assert found is not None
    assert found.demand == 1
    stage.context.store.devices.mark_seen({one.id: stage.clock() + 60})
    stage.clock.time += 60
    stage.advance()
    found = stage.context.store.programs.get("digits", FULL.key)
    assert found is not None
    assert found.demand == 2


def test_a_device_that_changes_what_it_claims_cannot_ask_for_more_than_the_ladder(stage: Stage) -> None:
    (one,) = begin(stage, [], 1)
    known = stage.context.store.devices.get(one.id)
    assert known is not None
    own = ladder()
    most = len(own.widths) * len(own.cuts) + len(own.widths)
    engine = EXECUTORCH.engines[0]
    for number in range(40):
        stage.clock.time += 40
        free = 10_000 * 2 ** (number % 14)
        profile = dumps(replace(stage.context.repository.profile(known), memory_free_bytes=free))
        stage.context.store.devices.set_profile(one.id, profile)
        claim = replace(engine, version=f"1.{number}")
        say(stage, one, replace(EXECUTORCH, engines=(claim,), batch_sizes=(BATCH, BATCH + number)))
        stage.context.store.devices.mark_seen({one.id: stage.clock()})
        stage.advance()
    assert 0 < len(wanted(stage)) <= most


def test_a_device_that_says_that_it_runs_graphs_first_gets_a_graph(stage: Stage) -> None:
    (one,) = begin(stage, [FULL], 1)
    one = say(stage, one, replace(CAPABILITIES, engines=(*CAPABILITIES.engines, *EXECUTORCH.engines)))
    stage.advance(2)
    assert stage.plan(one).program is None
    assert rung(stage, one) is None


def test_a_missing_file_costs_its_device_the_round_and_nobody_else(stage: Stage) -> None:
    one, two = begin(stage, [FULL], rounds=RoundSettings(count=3, deadline=60, at_least=1))
    say(stage, one)
    stage.context.blobs.drop(program_of(FULL).pte)
    stage.advance(2)
    assert stage.has_task(two)
    assert not stage.has_task(one)


def test_creating_a_federation_again_adds_no_programs_twice(stage: Stage) -> None:
    packed = pack_bundle(bundle_with([FULL]))
    create(stage.context, settings_of(), packed)
    _, new = create(stage.context, settings_of(), packed)
    assert not new
    assert wanted(stage) == {FULL.key: ProgramState.READY}

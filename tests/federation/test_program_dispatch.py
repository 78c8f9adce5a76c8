"""Plans name the programs that devices run, and devices can download them in that round."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from edgefl.artifacts.bundle import TRAIN
from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import SchemaError
from edgefl.federation import FederationSettings
from edgefl.federation.dispatch import BodyRole, DispatchedTask, Dispatcher
from edgefl.federation.measurement import make_measurement, make_program_measurement
from edgefl.federation.programs import ProgramCatalogue
from edgefl.masks import Mask
from edgefl.model_graph import cost_of
from edgefl.strategies import FedAvg, Model, PlannedTask
from edgefl.values import LocalWork, Program, ProgramSpec, digest_of, dumps, loads
from tests.device_runtime.federation import bundle
from tests.federation.catalogues import catalogue, inference, ladder_of, training

GRAPH = bundle().graph
LADDER = ladder_of(GRAPH)
EVERYTHING = catalogue(LADDER, [*training(LADDER, (0.5,)), *inference(LADDER, (0.5,))])
TRAINS = LADDER.training_spec(LADDER.widths[0.5], GRAPH.trainable_layers, 32)
PREDICTS = LADDER.inference_spec(LADDER.widths[0.5], 32)
HALF = Mask.of(GRAPH, kept={name: range(width) for name, width in LADDER.widths[0.5].items()})
TASK = PlannedTask(HALF, FedAvg().uplink.rule, LocalWork())


@dataclass
class Store:
    """Keeps bodies, and the files of programs that workers brought."""

    files: set[str] = field(default_factory=lambda: {one.pte for one in EVERYTHING.programs.values()})
    bodies: dict[str, tuple[BodyRole, bytes]] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)

    def store(self, bodies: Any) -> list[str]:
        digests = [digest_of(body) for _, body in bodies]
        self.bodies.update(zip(digests, bodies, strict=True))
        return digests

    def reuse(self, role: BodyRole, digest: str) -> bool:
        if role is BodyRole.PROGRAM_FILE and digest in self.files:
            self.reused.append(digest)
            return True
        return False


def dispatch(store: Store, programs: ProgramCatalogue | None, **tasks: PlannedTask) -> dict[str, DispatchedTask]:
    dispatcher = Dispatcher(
        settings=FederationSettings(name="named"),
        bundle=bundle(),
        training_graph=lambda mask: cut_training_graph(bundle().files[TRAIN], mask),
        task_id=lambda number, serial, device: f"{number}-{device}",
        programs=programs,
    )
    made = dispatcher.dispatch(Model(GRAPH, bundle_weights(bundle())), tasks, store, number=0)
    return {one.plan.device_id: one for one in made}


def test_a_plan_names_the_documents_of_its_programs_and_their_files_can_be_downloaded() -> None:
    store, task = Store(), replace(TASK, program=TRAINS, inference_program=PREDICTS)
    plan = dispatch(store, EVERYTHING, a=task, b=task)["a"].plan
    named: list[ProgramSpec] = []
    for digest in (plan.program, plan.inference_program):
        assert digest is not None
        role, body = store.bodies[digest]
        assert role is BodyRole.PROGRAM
        program = loads(Program, body)
        assert program.pte in store.reused
        named.append(program.spec)
    assert named == [TRAINS, PREDICTS]
    assert len(store.reused) == 2  # once for both devices
    assert plan.graph is not None
    assert plan.inference is not None


def test_a_device_that_runs_graphs_gets_the_plan_that_it_always_got() -> None:
    task = replace(TASK, program=TRAINS, inference_program=PREDICTS)
    with_programs = dispatch(Store(), EVERYTHING, a=TASK, b=task)["a"].plan
    without = dispatch(Store(), None, a=TASK)["a"].plan
    assert dumps(with_programs) == dumps(without)
    assert "program" not in dumps(without)


@pytest.mark.parametrize("gone", ["document", "file"])
def test_a_task_whose_program_vanished_cannot_be_dispatched(gone: str) -> None:
    store, programs = (Store(), catalogue(LADDER, [])) if gone == "document" else (Store(set()), EVERYTHING)
    with pytest.raises(SchemaError, match="no longer there"):
        dispatch(store, programs, a=replace(TASK, program=TRAINS))


def test_a_program_for_inference_that_vanished_costs_the_evaluation_alone() -> None:
    trains = catalogue(LADDER, [TRAINS])
    plan = dispatch(Store(), trains, a=replace(TASK, program=TRAINS, inference_program=PREDICTS))["a"].plan
    assert plan.program is not None
    assert plan.inference_program is None


def test_a_measurement_of_programs_has_a_case_for_each_of_a_few() -> None:
    programs = catalogue(LADDER, [*training(LADDER, LADDER.widths), *inference(LADDER, LADDER.widths)])
    made = make_program_measurement(
        bundle(), programs.programs.values(), lambda mask: b"graph of %d" % len(mask.trained)
    )
    cases = made.measurement.cases
    assert len(cases) == 12
    work = [case.forward_multiply_adds + case.backward_multiply_adds for case in cases]
    assert work == sorted(work)
    assert len(set(work)) > 6
    for case in cases:
        assert case.program is not None
        kind, body = made.bodies[case.program]
        spec = loads(Program, body).spec
        cost = cost_of(GRAPH, spec.widths, spec.trained)
        assert kind == "program"
        assert case.batch_size == spec.batch_size
        assert case.trained_parameters == cost.trained_parameters
        assert case.backward_multiply_adds == spec.batch_size * cost.backward_multiply_adds
    largest = max(training(LADDER, [1.0]), key=lambda spec: len(spec.trained))
    last = made.bodies[cases[-1].program or ""]
    assert loads(Program, last[1]).spec == largest


def test_the_measurement_of_graphs_names_no_program() -> None:
    made = make_measurement(bundle(), 32, lambda mask: b"graph")
    assert all(case.program is None for case in made.measurement.cases)
    assert "program" not in dumps(made.measurement)
    none = make_program_measurement(bundle(), [], lambda mask: b"graph")
    assert none.measurement.cases == ()

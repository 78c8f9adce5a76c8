"""Devices whose engine runs programs: what is wanted, what they run meanwhile, and why they get nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.capability_check import plan_capable
from edgefl.federation.client_selection import plan_round
from edgefl.federation.left_out import RoundPlan
from edgefl.federation.programs import ProgramCatalogue
from edgefl.federation.settings import ProgramSettings
from edgefl.masks import Mask
from edgefl.strategies import FedAvg, Model, Participant, PlannedTask, RoundContext, strategy_of
from edgefl.values import Budget, Capabilities, FieldError, LocalWork, ProgramRole, ProgramSpec, digest_of
from tests.device_runtime.federation import bundle
from tests.federation.catalogues import EXECUTORCH, catalogue, inference, ladder_of, program, training
from tests.federation.test_capability_check import ALL
from tests.values.samples import PROFILE

GRAPH = bundle().graph
LADDER = ladder_of(GRAPH)
MODEL = Model(GRAPH, bundle_weights(bundle()))
CONTEXT = RoundContext(0, 3, 5, LocalWork(batch_size=32, most_steps=2))
ROUND = Budget(round_seconds=0.0085)
"""About three quarters of the model's width."""
RUNS_PROGRAMS = replace(ALL, engines=(EXECUTORCH,), rules=("sgd", "fine_tune"))
EVERYTHING = catalogue(LADDER, [*training(LADDER, LADDER.widths), *inference(LADDER, LADDER.widths)])
NOTHING = catalogue(LADDER, [])


def device(name: str, budget: Budget = ROUND, capabilities: Capabilities = RUNS_PROGRAMS) -> Participant:
    return Participant(name, PROFILE, budget, 300, capabilities=capabilities)


def planned(
    programs: ProgramCatalogue | None, *devices: Participant, strategy: str = "fedavg", context: RoundContext = CONTEXT
) -> RoundPlan:
    known = {one.device_id: one for one in devices}
    chosen, model = strategy_of(strategy, {}), strategy_of(strategy, {}).begin(GRAPH, MODEL.weights)
    return plan_round(chosen, model, list(known), len(known), context, known.__getitem__, str, programs)


def widths(spec: ProgramSpec | None) -> Mapping[str, int] | None:
    return None if spec is None else spec.widths


def test_a_task_names_the_programs_that_train_and_evaluate_it() -> None:
    plan = planned(EVERYTHING, device("a"), device("b", capabilities=ALL))
    task = plan.tasks["a"]
    assert task.program == LADDER.training_spec(LADDER.widths[0.75], GRAPH.trainable_layers, 32)
    assert task.inference_program == LADDER.inference_spec(LADDER.widths[0.75], 32)
    assert task.mask.widths == LADDER.widths[0.75]
    assert (plan.tasks["b"].program, plan.tasks["b"].inference_program) == (None, None)
    assert (plan.wanted, plan.left_out) == ((), {})


def test_a_device_takes_the_next_rung_down_and_what_it_lacks_is_wanted() -> None:
    half = catalogue(LADDER, [*training(LADDER, (0.5, 0.25)), *inference(LADDER, (0.5, 0.25))])
    plan = planned(half, device("a"))
    assert widths(plan.tasks["a"].program) == LADDER.widths[0.5]
    assert widths(plan.tasks["a"].inference_program) == LADDER.widths[0.5]
    best = LADDER.widths[0.75]
    assert plan.wanted == (
        LADDER.training_spec(best, GRAPH.trainable_layers, 32),
        LADDER.inference_spec(best, 32),
    )


def test_what_was_wanted_is_run_once_it_is_compiled() -> None:
    programs = catalogue(LADDER, training(LADDER, (0.125,)))
    wanted = planned(programs, device("a")).wanted
    compiled = catalogue(LADDER, [*(one.spec for one in programs.programs.values()), *wanted])
    plan = planned(compiled, device("a"))
    assert widths(plan.tasks["a"].program) == LADDER.widths[0.75]
    assert plan.wanted == ()


def test_the_programs_of_most_devices_are_wanted_first() -> None:
    fleet = [device("a"), device("b", Budget()), device("c", Budget())]
    plan = planned(NOTHING, *fleet)
    assert [(spec.widths["0"], spec.role) for spec in plan.wanted] == [
        (16, ProgramRole.TRAIN),
        (16, ProgramRole.INFER),
        (12, ProgramRole.TRAIN),
        (12, ProgramRole.INFER),
    ]


def test_without_programs_a_device_is_left_out_with_the_reason_and_the_others_train() -> None:
    plan = planned(NOTHING, device("a"), device("b", capabilities=ALL))
    assert set(plan.tasks) == {"b"}
    assert plan.left_out == {
        "a": "no program for its engine executorch 1.4.1 is compiled yet; 2 programs are wanted: run `edgefl compile`"
    }


def test_a_program_for_inference_is_wanted_and_never_waited_for() -> None:
    plan = planned(catalogue(LADDER, training(LADDER, LADDER.widths)), device("a"))
    assert widths(plan.tasks["a"].program) == LADDER.widths[0.75]
    assert plan.tasks["a"].inference_program is None
    assert plan.wanted == (LADDER.inference_spec(LADDER.widths[0.75], 32),)


def test_a_program_for_inference_of_any_batch_size_will_do() -> None:
    programs = catalogue(LADDER, [*training(LADDER, LADDER.widths), *inference(LADDER, LADDER.widths, batch=1)])
    plan = planned(programs, device("a"))
    assert plan.tasks["a"].inference_program == LADDER.inference_spec(LADDER.widths[0.75], 1)
    assert plan.wanted == ()


def test_larger_batches_are_filled_up_meanwhile_and_smaller_ones_are_no_use() -> None:
    larger = planned(catalogue(LADDER, training(LADDER, LADDER.widths, batch=64)), device("a", Budget()))
    assert larger.tasks["a"].program == LADDER.training_spec(LADDER.widths[1.0], GRAPH.trainable_layers, 64)
    assert LADDER.training_spec(LADDER.widths[1.0], GRAPH.trainable_layers, 32) in larger.wanted
    smaller = planned(catalogue(LADDER, training(LADDER, LADDER.widths, batch=16)), device("a"))
    assert smaller.left_out["a"].startswith(
        "no program for its engine executorch 1.4.1 has batches of 32 samples or more; 2 programs are wanted"
    )


def test_an_engine_runs_no_program_of_a_newer_compiler() -> None:
    old = replace(RUNS_PROGRAMS, engines=(replace(EXECUTORCH, version="1.3.0"),))
    plan = planned(EVERYTHING, device("old", capabilities=old), device("new"))
    assert set(plan.tasks) == {"new"}
    assert plan.wanted == ()
    assert plan.left_out == {
        "old": "its engine executorch 1.3.0 is older than executorch 1.4.1, which compiled the programs"
    }


def test_a_catalogue_has_the_programs_of_its_bundle_and_those_that_came_since() -> None:
    mine = [program(spec) for spec in training(LADDER, (0.5,))]
    whole = LADDER.training_spec(LADDER.widths[1.0], GRAPH.trainable_layers, 32)
    foreign = [program(replace(whole, model=digest_of(b"x"))), program(replace(whole, graph=digest_of(b"x")))]
    odd = program(replace(whole, widths={"0": 16}))
    found = ProgramCatalogue.of(bundle(), [*mine, *foreign, odd])
    assert set(found.programs.values()) == set(mine)
    assert found.ladder.training_graph == LADDER.training_graph


def test_devices_with_engines_that_run_the_same_share_their_rungs() -> None:
    versions = [replace(RUNS_PROGRAMS, engines=(replace(EXECUTORCH, version=f"1.{n}.0"),)) for n in range(3, 9)]
    rungs = [EVERYTHING.rungs_of(one) for one in versions]
    assert len({id(one) for one in rungs}) == 2  # 1.3 and 1.4.0 run none of what 1.4.1 compiled
    assert [len(one.programs) > 0 for one in rungs if one is not None] == [False, False, True, True, True, True]
    assert EVERYTHING.rungs_of(ALL) is None
    assert EVERYTHING.rungs_of(None) is None


def test_a_device_that_no_rung_fits_is_told_what_the_smallest_needs() -> None:
    plan = planned(EVERYTHING, device("tiny", Budget(round_seconds=0.001)), device("a"))
    assert set(plan.tasks) == {"a"}
    reason = plan.left_out["tiny"]
    assert reason.startswith(
        "nothing fits its budget for a round: the narrowest rung of the ladder of programs, with only its last block "
        "trained, needs "
    )
    assert reason.endswith("and it has 1 ms")


@pytest.mark.parametrize(
    ("budget", "strategy", "said"),
    [
        (Budget(round_seconds=0.001), "fedavg", "the narrowest submodel, with only its last block trained, needs "),
        (Budget(peak_bytes=1000), "fedavg", ", and it has 1000 B"),
        (Budget(trainable_parameters=400), "fedavg", "the narrowest submodel needs 429 trained parameters, and"),
        (Budget(kept_fraction=0.9), "fedbabu", "needs 100.0 % of the model, and it has 90.0 % of the model"),
        (Budget(weight_density=0.5), "fedavg", "the strategy has no task for it that fits its budget for a round"),
    ],
)
def test_a_device_of_any_engine_that_nothing_fits_is_told_by_how_much(budget: Budget, strategy: str, said: str) -> None:
    plan = planned(None, device("small", budget, ALL), device("a", Budget(), ALL), strategy=strategy)
    assert set(plan.tasks) == {"a"}
    assert said in plan.left_out["small"]


def test_a_device_that_lacks_the_rule_is_left_out_for_that_and_wants_nothing() -> None:
    for strategy, rule in [("fjord", "ordered_dropout"), ("fedmrn", "masked_noise"), ("fedmap", "probabilistic_masks")]:
        plan = planned(NOTHING, device("a", Budget()), strategy=strategy)
        assert plan.wanted == ()
        assert plan.left_out == {"a": f"its client edgefl-java 0.1.0 lacks the rule {rule!r}"}


def test_without_a_catalogue_an_engine_of_programs_alone_is_left_out() -> None:
    plan = planned(None, device("a"))
    assert plan.left_out == {"a": "its client edgefl-java 0.1.0 has no engine for graphs of the format 'onnx'"}


class Sevens(FedAvg):
    """A user's strategy that makes masks by itself: seven channels of every group, which is no rung."""

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        mask = Mask.of(model.graph, kept={group.name: range(7) for group in model.graph.groups})
        return {one.device_id: PlannedTask(mask, self.uplink.rule, round_context.work) for one in participants}


def test_a_mask_of_a_users_strategy_that_is_on_no_rung_leaves_the_device_out() -> None:
    fleet = [device("a"), device("b", capabilities=ALL)]
    plan = plan_capable(lambda some: Sevens().plan(MODEL, some, CONTEXT), fleet, programs=EVERYTHING)
    assert set(plan.tasks) == {"b"}
    assert plan.left_out == {
        "a": "its engine executorch runs compiled programs, and no program of the ladder trains the submodel that the "
        "strategy gave it"
    }


def test_the_plan_for_devices_that_run_graphs_is_the_same_with_and_without_programs() -> None:
    fleet = [device(str(number), Budget(round_seconds=0.003 * number), ALL) for number in range(1, 6)]
    with_programs, without = planned(EVERYTHING, *fleet), planned(None, *fleet)
    assert {name: task.mask.digest for name, task in with_programs.tasks.items()} == {
        name: task.mask.digest for name, task in without.tasks.items()
    }
    assert with_programs.left_out == without.left_out


@dataclass
class Counting:
    """Counts how often a strategy plans."""

    calls: list[int] = field(default_factory=list)

    def plan(self, some: Sequence[Participant]) -> Mapping[str, PlannedTask]:
        self.calls.append(len(some))
        return FedAvg().plan(MODEL, some, CONTEXT)


@pytest.mark.parametrize(("programs", "calls"), [(EVERYTHING, [2]), (NOTHING, [2, 2])])
def test_a_round_is_planned_twice_only_if_a_program_is_missing(programs: ProgramCatalogue, calls: list[int]) -> None:
    counting = Counting()
    plan_capable(counting.plan, [device("a"), device("b", capabilities=ALL)], programs=programs)
    assert counting.calls == calls


def test_personalisation_runs_the_program_of_what_the_rule_trains() -> None:
    context = replace(CONTEXT, round=3)
    for head, trained in [("train", GRAPH.trainable_layers), ("head_only", GRAPH.trainable_layers[-1:])]:
        strategy = strategy_of("fedavg", {"fine_tune_epochs": 1, "fine_tune_head": head})
        plan = plan_capable(
            lambda some, by=strategy: by.personalise(MODEL, some, context),  # type: ignore[misc]
            [device("a", Budget())],
            programs=EVERYTHING,
        )
        program = plan.tasks["a"].program
        assert program is not None
        assert program.trained == tuple(trained)


def test_rungs_for_all_give_devices_of_both_engines_the_same_submodel() -> None:
    half = catalogue(LADDER, training(LADDER, (0.5,)))
    for programs, expected in ((replace(EVERYTHING, for_all=True), 0.75), (replace(half, for_all=True), 0.5)):
        plan = planned(programs, device("a"), device("b", capabilities=ALL))
        assert plan.tasks["a"].mask.widths == LADDER.widths[expected]
        # An engine that runs graphs needs no program: all rungs are open to it.
        assert plan.tasks["b"].mask.widths == LADDER.widths[0.75]
        assert plan.tasks["b"].program is None
        assert plan.left_out == {}
    narrow = device("b", Budget(round_seconds=0.0075), ALL)
    assert planned(EVERYTHING, narrow).tasks["b"].mask.widths not in LADDER.widths.values()
    assert planned(replace(EVERYTHING, for_all=True), narrow).tasks["b"].mask.widths in LADDER.widths.values()


def test_the_ladder_of_a_federation_has_the_widths_of_its_settings() -> None:
    programs = ProgramCatalogue.of(bundle(), settings=ProgramSettings(widths=(1.0, 0.25)))
    assert tuple(programs.ladder.widths) == (1.0, 0.25)
    with pytest.raises(FieldError, match="widths above 0"):
        ProgramSettings(widths=())

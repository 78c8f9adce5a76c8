"""The contract of every strategy on rungs: what a device whose engine runs programs is given, a program can train."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.local_rules import rule_of
from edgefl.local_rules.channel_pruning import magnitudes
from edgefl.local_rules.sensitivity import report_forms
from edgefl.masks import Mask, full_mask, gather
from edgefl.model_graph import ModelGraph, cost_of
from edgefl.planning import Ladder, Rungs, predict
from edgefl.strategies import (
    ClientUpdate,
    FineTunedStrategy,
    Hermes,
    Model,
    Participant,
    PlannedTask,
    RoundContext,
    strategy_of,
)
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.values import Budget, LocalWork, ProgramRole
from edgefl.wire import Dense
from tests.federation.catalogues import BATCH, ladder_of, training
from tests.random_models import model_graphs
from tests.strategies.contract import CASES, GRAPH, HOPELESS, LIMITS, ROUNDS, WORK, strategy
from tests.strategies.rounds import client_update, random_weights
from tests.strategies.test_hermes_sensitivity import hidden, sent
from tests.values.samples import PROFILE

LADDER = ladder_of(GRAPH)
ALL = Rungs(LADDER, whole_ladder=True)
FEW = Rungs(LADDER, tuple(training(LADDER, (0.5, 0.25), cuts=["0", "4"])))
"""Two widths, to train all layers or the last three: no cut between them exists."""
SUBMODELS_OF_ANY_WIDTH = {"fedmap of channels"}
"""Draws channels one by one, by a rule that no engine of programs has: its submodels are on no rung."""
every_strategy = pytest.mark.parametrize("case", [name for name in CASES if name not in SUBMODELS_OF_ANY_WIDTH])


def context(number: int = 0, batch: int = WORK.batch_size) -> RoundContext:
    return RoundContext(number, ROUNDS, 7 + number, replace(WORK, batch_size=batch))


def fleet(rungs: Rungs | None, samples: int | None = 300) -> list[Participant]:
    return [Participant(name, PROFILE, budget, samples, rungs=rungs) for name, budget in LIMITS.items()]


def model(case: str) -> Model:
    return strategy(case).begin(GRAPH, random_weights(GRAPH, 0))


def check(participants: list[Participant], tasks: Mapping[str, PlannedTask], *, memory_only: bool = False) -> None:
    """Every task is on a rung of its device, and the whole program is within the budget."""
    for one in participants:
        if one.device_id in tasks:
            task, rungs = tasks[one.device_id], one.rungs
            assert rungs is not None
            trained = rule_of(task.rule).trains(task.mask).trained
            rung = rungs.cover(task.mask.widths, trained, task.work.batch_size)
            assert rung is not None, one.device_id
            assert set(trained) <= set(rung.spec.trained)
            cost = cost_of(GRAPH, rung.spec.widths, rung.spec.trained)
            steps = task.work.most_steps or task.work.epochs * -(-300 // task.work.batch_size)
            use = predict(one.profile, cost, batch=rung.spec.batch_size, steps=steps)
            limits = Budget(peak_bytes=one.budget.peak_bytes) if memory_only else one.budget
            assert not limits.exceeded_by(replace(use, kept_fraction=cost.parameters / GRAPH.parameters))


@every_strategy
@pytest.mark.parametrize("rungs", [ALL, FEW], ids=["all", "few"])
def test_every_task_is_on_a_rung_and_its_whole_program_is_within_the_budget(case: str, rungs: Rungs) -> None:
    chosen, start, participants = strategy(case), model(case), fleet(rungs)
    for number in range(2):
        tasks = chosen.plan(start, participants, context(number))
        check(participants, tasks)
        assert not set(tasks) & set(HOPELESS)
        masks = {name: task.mask for name, task in tasks.items()}
        participants = [replace(one, mask=masks.get(one.device_id)) for one in participants]


@every_strategy
def test_with_a_whole_ladder_devices_that_can_train_a_part_of_the_model_get_one(case: str) -> None:
    tasks = strategy(case).plan(model(case), fleet(ALL), context())
    if case == "split_mix":  # whose steps are of several networks
        assert not tasks
        return
    assert "free" in tasks
    if not strategy(case).plan(model(case), fleet(None), context()).keys() & {"timed", "narrow"}:
        return  # a strategy that gives everybody the whole model
    assert tasks.keys() & {"timed", "narrow"}


@pytest.mark.parametrize("head", ["train", "freeze", "head_only"])
@pytest.mark.parametrize("case", [name for name in CASES if isinstance(strategy(name), FineTunedStrategy)])
def test_personalisation_is_on_rungs_and_within_the_memory(case: str, head: str) -> None:
    name, settings = CASES[case]
    chosen = strategy_of(name, {**settings, "fine_tune_epochs": 1, "fine_tune_head": head})
    for rungs in (ALL, FEW):
        participants = fleet(rungs)
        check(participants, chosen.personalise(model(case), participants, context(ROUNDS)), memory_only=True)


@pytest.mark.parametrize("case", CASES)
def test_no_strategy_fails_for_devices_without_a_single_program(case: str) -> None:
    nothing = fleet(Rungs(LADDER))
    assert strategy(case).plan(model(case), nothing, context()) == {}
    assert strategy(case).personalise(model(case), nothing, context(ROUNDS)) == {}


def test_the_next_rung_down_is_taken_while_one_is_missing() -> None:
    timed = next(one for one in fleet(ALL) if one.device_id == "timed")
    widths = []
    for fractions in [(1.0, 0.75, 0.5, 0.25), (1.0, 0.5, 0.25), (1.0, 0.25), (1.0,)]:
        rungs = Rungs(LADDER, tuple(training(LADDER, fractions)))
        tasks = strategy("fedavg").plan(model("fedavg"), [replace(timed, rungs=rungs)], context())
        widths.append(tasks["timed"].mask.widths if tasks else None)
    assert widths == [LADDER.widths[0.75], LADDER.widths[0.5], LADDER.widths[0.25], None]


def test_a_level_that_is_no_rung_goes_down_to_the_next_one() -> None:
    levels = strategy_of("fedavg", {"width": "levels", "levels": "0.9, 0.4"})
    tasks = levels.plan(Model(GRAPH, random_weights(GRAPH, 0)), fleet(ALL), context())
    assert tasks["free"].mask.widths == LADDER.widths[0.75]
    assert tasks["timed"].mask.widths == LADDER.widths[0.75]
    assert tasks["narrow"].mask.widths == LADDER.widths[0.25]  # 0.375 has 16 channels of a group, 0.4 has 13


def test_the_whole_model_or_nothing_if_every_device_has_the_whole_model() -> None:
    whole = strategy_of("fedbabu", {})
    assert whole.plan(model("fedbabu"), fleet(FEW), context()) == {}
    assert whole.plan(model("fedbabu"), fleet(ALL), context())["free"].mask.widths == LADDER.widths[1.0]


def estimate(rungs: Rungs | None, budget: Budget, batch: int = BATCH, samples: int = 300) -> RoundEstimate:
    return RoundEstimate(GRAPH, Participant("d", PROFILE, budget, samples, rungs=rungs), LocalWork(batch_size=batch), 1)


def test_a_step_costs_the_whole_program_however_few_samples_and_layers_are_wanted() -> None:
    larger = Rungs(LADDER, tuple(training(LADDER, [1.0], cuts=["0"], batch=64)))
    head = Mask.of(GRAPH, trained=GRAPH.trainable_layers[-1:])
    found = estimate(larger, Budget(), samples=10).prediction(head)
    whole = predict(PROFILE, cost_of(GRAPH), batch=64, steps=1)
    assert (found.seconds, found.peak_bytes) == (whole.round_seconds, whole.peak_bytes)
    assert (estimate(None, Budget(), samples=10).prediction(head).seconds or 0) < (found.seconds or 0)


def test_programs_of_smaller_batches_will_not_do() -> None:
    small = Rungs(LADDER, tuple(training(LADDER, [1.0], batch=16)))
    assert estimate(small, Budget(), batch=32).widest() is None
    assert estimate(small, Budget(), batch=16).widest() is not None
    assert estimate(small, Budget(), batch=10).widest() is not None


def test_the_number_of_steps_does_not_depend_on_the_engine() -> None:
    for samples in (1, 31, 33, 300):
        assert estimate(ALL, Budget(), samples=samples).steps == estimate(None, Budget(), samples=samples).steps


def test_of_several_programs_that_cover_the_layers_the_cheapest_is_run() -> None:
    some = [*training(LADDER, [0.5], cuts=["0"], batch=32), *training(LADDER, [0.5], cuts=["5"], batch=64)]
    rung = Rungs(LADDER, tuple(some)).cover(LADDER.widths[0.5], ["9"], 32)
    assert rung is not None
    costs = {spec: cost_of(GRAPH, spec.widths, spec.trained) for spec in some}
    steps = {spec: spec.batch_size * (c.forward_multiply_adds + c.backward_multiply_adds) for spec, c in costs.items()}
    assert steps[rung.spec] == min(steps.values())
    assert len(set(steps.values())) == 2


def test_hermes_prunes_to_the_next_rung_down_by_the_same_scores() -> None:
    graph = hidden(16)
    ladder = ladder_of(graph, (1.0, 0.5, 0.25))
    scores = [float(score) for score in np.random.default_rng(3).permutation(16) + 1]
    update = replace(sent(full_mask(graph), units=scores), rungs=Rungs(ladder, whole_ladder=True))
    left = Hermes(prune_rate=0.2, channel_multiple=1).next_mask(update)
    assert left is not None
    assert left.kept["hidden"].tolist() == sorted(np.argsort(scores)[-8:].tolist())
    narrowest = replace(sent(Mask.of(graph, kept={"hidden": range(4)}), units=[1, 2, 3, 4]), rungs=update.rungs)
    assert Hermes(prune_rate=0.2, kept_target=0.0, channel_multiple=1).next_mask(narrowest) is None
    below = replace(sent(Mask.of(graph, kept={"hidden": range(4)}), units=[1, 2, 3, 4]), rungs=update.rungs)
    assert Hermes(prune_rate=0.2, kept_target=0.3, channel_multiple=1).next_mask(below) is None


@pytest.mark.parametrize(("target", "ends_at"), [(0.9, 1.0), (0.5, 0.75), (0.3, 0.5), (0.05, 0.25)])
def test_hermes_ends_on_the_rung_whose_size_is_nearest_to_the_target(target: float, ends_at: float) -> None:
    """Rungs 1, 0.75, 0.5 and 0.25 of this model have 100, 61, 31 and 11 % of its parameters."""
    rungs, mask = Rungs(ladder_of(GRAPH, (1.0, 0.75, 0.5, 0.25)), whole_ladder=True), full_mask(GRAPH)
    sizes = [cost_of(GRAPH, widths).parameters / GRAPH.parameters for widths in rungs.ladder.widths.values()]
    assert [round(100 * size) for size in sizes] == [100, 61, 31, 11]
    pruning = Hermes(prune_rate=0.1, kept_target=target)
    start = Model(GRAPH, random_weights(GRAPH, 0))
    for number in range(len(sizes)):
        mask = pruning.next_mask(replace(sent_with_scores(mask, start, number), rungs=rungs)) or mask
    assert mask.widths == rungs.ladder.widths[ends_at]


def test_hermes_cuts_a_submodel_that_is_on_no_rung_by_magnitude() -> None:
    weights = random_weights(GRAPH, 4)
    own = Mask.of(GRAPH, kept={"0": range(1, 16), "4": range(3, 28)})
    device = Participant("d", PROFILE, Budget(), 300, own, rungs=ALL)
    mask = Hermes().plan(Model(GRAPH, weights), [device], context())["d"].mask
    assert mask.widths == LADDER.widths[0.75]
    for group, width in mask.widths.items():
        ranked = own.kept[group][np.argsort(magnitudes(own, gather(own, weights))[group])]
        assert mask.kept[group].tolist() == sorted(ranked[-width:].tolist())


def test_a_first_submodel_of_hermes_grows_once_a_wider_program_is_compiled_and_a_pruned_one_never_does() -> None:
    narrow = Rungs(LADDER, tuple(training(LADDER, (0.25,))))
    start = Model(GRAPH, random_weights(GRAPH, 0))
    first = Hermes().plan(start, [Participant("d", PROFILE, Budget(), 300, rungs=narrow)], context())["d"].mask
    assert first.widths == LADDER.widths[0.25]
    later = Hermes().plan(start, [Participant("d", PROFILE, Budget(), 300, first, rungs=ALL)], context(1))["d"].mask
    assert later.widths == LADDER.widths[1.0]
    pruned = Mask.of(GRAPH, kept={"0": [0, 1, 2, 5], "4": range(1, 9)})
    kept = Hermes().plan(start, [Participant("d", PROFILE, Budget(), 300, pruned, rungs=ALL)], context(1))["d"].mask
    assert kept.digest == pruned.digest


def test_a_planned_choice_of_layers_whose_cut_is_too_expensive_becomes_the_part_that_fits() -> None:
    """One device has time for the last layers only; the planner counts parameters and may give it the first ones."""
    last = Budget(round_seconds=predict(PROFILE, cost_of(GRAPH, trained=["5", "9"]), batch=32, steps=2).round_seconds)
    devices = [Participant("weak", PROFILE, last, 300, rungs=ALL), Participant("free", PROFILE, Budget(), 300)]
    perfedmask = strategy_of("perfedmask", {})
    for number in range(6):
        tasks = perfedmask.plan(model("perfedmask"), devices, context(number))
        assert tasks["weak"].mask.trained == {"5"}
        check(devices[:1], {"weak": tasks["weak"]})


@given(graph=model_graphs(), data=st.data())
def test_on_random_models_the_widest_rung_fits_and_no_wider_one_does(graph: ModelGraph, data: st.DataObject) -> None:
    ladder = Ladder(graph, LADDER.training_graph, LADDER.inference_graph)
    existing = tuple(spec for spec in training(ladder, ladder.widths) if data.draw(st.booleans()))
    trained = data.draw(st.sets(st.sampled_from(graph.trainable_layers), min_size=1))
    rungs = Rungs(ladder, existing)
    most = data.draw(st.integers(0, cost_of(graph).trained_parameters))
    one = Participant("d", PROFILE, Budget(trainable_parameters=most), 300, rungs=rungs)
    found = RoundEstimate(graph, one, LocalWork(batch_size=BATCH), 1).widest(trained)
    able = [
        spec
        for spec in existing
        if trained <= set(spec.trained) and cost_of(graph, spec.widths, spec.trained).trained_parameters <= most
    ]
    assert (found is None) == (not able)
    if found is not None:
        assert found.trained == trained
        largest = max(cost_of(graph, spec.widths).parameters for spec in able)
        assert cost_of(graph, found.widths).parameters == largest
        rung = rungs.cover(found.widths, trained, BATCH)
        assert rung is not None
        assert rung.spec.role is ProgramRole.TRAIN


@given(graph=model_graphs(), data=st.data())
def test_on_random_models_pruning_by_rungs_only_loses_channels_and_ends_on_one(
    graph: ModelGraph, data: st.DataObject
) -> None:
    ladder = Ladder(graph, LADDER.training_graph, LADDER.inference_graph)
    rungs = Rungs(ladder, whole_ladder=True)
    mask = full_mask(graph)
    start = Model(graph, random_weights(graph, 0))
    hermes = Hermes(accuracy_threshold=0.0, kept_target=0.0, prune_rate=data.draw(st.sampled_from([0.1, 0.5])))
    for number in range(3):
        device = Participant("d", PROFILE, Budget(), 300, mask, rungs=rungs)
        planned = hermes.plan(start, [device], replace(context(number), rounds=9))["d"].mask
        update = replace(sent_with_scores(planned, start, number), rungs=rungs)
        left = hermes.next_mask(update)
        if left is None:
            break
        assert dict(left.widths) in list(ladder.widths.values())
        assert left.widths != planned.widths
        assert all(set(left.kept[name]) <= set(planned.kept[name]) for name in left.kept)
        mask = left


def sent_with_scores(mask: Mask, start: Model, number: int) -> ClientUpdate:
    """An update of an accurate device, with random scores."""
    made = client_update(mask, start.weights, start.weights)
    draws = np.random.default_rng(number)
    sums = {name: Dense(draws.random(form.shape).astype(np.float32)) for name, form in report_forms(mask).items()}
    return replace(made, result=replace(made.result, accuracy=0.9), tensors={**made.tensors, **sums})


def test_a_device_that_changed_its_engine_leaves_a_submodel_that_is_on_no_rung() -> None:
    """It was given one by its budget alone; `local` would let it keep it."""
    own = Mask.of(GRAPH, kept={"0": range(11), "4": range(21)})
    for case in ("local", "hermes", "fedavg"):
        device = Participant("d", PROFILE, Budget(), 300, own, rungs=ALL)
        tasks = strategy(case).plan(model(case), [device], context(1))
        check([device], tasks)
        assert set(tasks) == {"d"}
        kept = strategy(case).plan(model(case), [replace(device, mask=tasks["d"].mask)], context(1))
        assert kept["d"].mask.digest == tasks["d"].mask.digest


def test_fine_tuning_the_head_needs_the_program_of_the_head_alone() -> None:
    head = Rungs(LADDER, (*training(LADDER, (1.0,), cuts=["9"]),))
    both = Rungs(LADDER, (*training(LADDER, (1.0,), cuts=["0", "9"]),))
    device = Participant("d", PROFILE, Budget(), 300)
    for treatment, rungs in [("head_only", both), ("train", both)]:
        tuned = strategy_of("fedavg", {"fine_tune_epochs": 1, "fine_tune_head": treatment})
        task = tuned.personalise(model("fedavg"), [replace(device, rungs=rungs)], context(ROUNDS))["d"]
        cut = GRAPH.trainable_layers if treatment == "train" else ("9",)
        whole = predict(PROFILE, cost_of(GRAPH, trained=cut), batch=BATCH)
        assert task.predicted is not None
        assert task.predicted.peak_bytes == whole.peak_bytes
    planned = strategy_of("perfedmask", {"fine_tune_epochs": 1, "fine_tune_head": "head_only"})
    assert planned.personalise(model("perfedmask"), [replace(device, rungs=head)], context(ROUNDS)) == {}

"""The contract of every strategy: plans that fit, the same plan again, and averages that keep what nobody trained.

`test_contract_uploads.py` has what travels up, `test_contract_crashes.py` what a crash costs, and `test_equations.py`
what each paper's equation gives.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgefl.local_rules import ProbabilisticMasks, arrays_cost, networks_of, rule_of
from edgefl.masks import Mask, holders
from edgefl.model_graph import cost_of
from edgefl.planning import predict
from edgefl.strategies import STRATEGIES, Model, Participant, PlannedTask
from edgefl.strategies.update_checks import values_of
from edgefl.values import Budget, digest_of
from edgefl.wire import encode_weights
from tests.strategies.contract import CASES, GRAPH, HOPELESS, LIMITS, WORK, Played, lasting, played, strategy

every_strategy = pytest.mark.parametrize("case", CASES)
COMPRESSING = {"fedmrn", "signsgd", "topk", "terngrad", "drive", "eden", "random_subsampling"}
NOT_VALUES = {
    *COMPRESSING,
    "fedpm",
    "fedspa",
    "sub_fedavg",
    "local",
    "split_mix",
    "hermes with noise",
    "hermes by magnitude with noise",
    "perfedmask of rolling parts",
}
"""What sends something else than new values: bits, compressed updates, differences, rows of held values, nothing."""


def learns_masks(planned: PlannedTask) -> bool:
    return planned.rule.name == ProbabilisticMasks.name


def fingerprint(planned: PlannedTask) -> tuple[Any, ...]:
    extras = digest_of(encode_weights(planned.extras, {}))
    return planned.mask.digest, planned.rule, planned.work, extras, planned.predicted


def fingerprints(planned_tasks: Mapping[str, PlannedTask]) -> dict[str, tuple[Any, ...]]:
    return {name: fingerprint(planned) for name, planned in planned_tasks.items()}


def use_of(participant: Participant, planned: PlannedTask) -> Budget:
    """What an order takes of each limit, counted anew from the mask and the profile."""
    networks = networks_of(rule_of(planned.rule), planned.mask)  # one, unless they are trained in turns
    mask = networks[0]
    engine = cost_of(GRAPH, mask.widths, mask.trained)  # which works on whole arrays, however few weights are held
    batch, steps = min(WORK.batch_size, participant.samples or WORK.batch_size), WORK.most_steps or 0
    around = arrays_cost(planned.mask) if len(networks) > 1 else None
    use = predict(participant.profile, engine, batch=batch, steps=steps * len(networks), around=around)
    return replace(
        use,
        trainable_parameters=planned.mask.cost.trained_parameters,
        kept_fraction=len(networks) * engine.parameters / GRAPH.parameters,
        weight_density=mask.cost.parameters / engine.parameters,
    )


# Phases


def test_every_registered_strategy_is_tested() -> None:
    assert set(STRATEGIES) <= set(CASES)
    assert {name for name, _ in CASES.values()} == set(STRATEGIES)


@every_strategy
def test_rounds_show_every_phase_and_move_the_model(case: str) -> None:
    name, rounds = CASES[case][0], played(case)
    moved = [_differ(one.before.weights, one.after.weights) for one in rounds]
    learned = [_differ(one.before.state, one.after.state) for one in rounds]
    changed = [any(done.next_mask is not None for done in one.done.values()) for one in rounds]
    assert moved == {"local": [False] * 3, "fedmap": [False, True, False]}.get(name, [True] * 3)
    learning = {"fedpm": [True] * 3, "fedmap": [True, False, True], "joined": [True, False, False]}
    assert learned == learning.get(name, [False] * 3)
    # FedSpa exchanges nothing any more in the last round: a_t of its cosine is 0 there. The coordinator prunes nothing
    # after the last round.
    if "by magnitude" in case:
        assert changed == [True] * 3
    else:
        some = {"hermes": [True, True, False], "fedspa": [True, True, False], "sub_fedavg": [True] * 3}
        assert changed == some.get(name, [False] * 3)


# Plans


@every_strategy
def test_no_order_is_beyond_its_devices_budget(case: str) -> None:
    asked = 0
    for one in played(case):
        for participant in one.participants:
            if participant.device_id not in one.done:
                continue
            planned, limits = one.done[participant.device_id].planned, participant.budget
            asked += 1
            said = planned.predicted
            assert said is not None
            assert not limits.exceeded_by(
                Budget(round_seconds=said.seconds, peak_bytes=said.peak_bytes, joules=said.joules)
            ), participant.device_id
            if learns_masks(planned):
                assert_capacity_fits(planned, limits)
                continue
            use = use_of(participant, planned)
            assert not limits.exceeded_by(use), participant.device_id
            for told, least in zip(
                (said.seconds, said.peak_bytes, said.joules),
                (use.round_seconds, use.peak_bytes, use.joules),
                strict=True,
            ):
                assert told is not None
                assert least is not None
                assert told >= least * (1 - 1e-9), "less is said than one model takes"
    assert asked >= 3


def assert_capacity_fits(planned: PlannedTask, limits: Budget) -> None:
    """A device that learns a mask has the whole model, and trains submodels of its capacity."""
    capacity = planned.rule.settings["capacity"]
    assert isinstance(capacity, float | int)
    limit = limits.weight_density if planned.rule.settings["granularity"] == "weight" else limits.kept_fraction
    assert capacity <= (1 if limit is None else limit)


@every_strategy
def test_a_device_without_limits_is_asked_and_one_that_can_do_nothing_is_not(case: str) -> None:
    for one in played(case):
        assert "free" in one.done
        assert not set(HOPELESS) & set(one.done)
        alone = [participant for participant in one.participants if participant.device_id in HOPELESS]
        assert strategy(case).plan(one.before, alone, one.planning) == {}


@every_strategy
def test_every_limit_makes_an_order_smaller_or_leaves_the_device_out(case: str) -> None:
    """Limits are those that the whole model is beyond, so that a strategy that does not look at one shows it."""
    for one in played(case):
        free = one.done["free"].planned
        whole, known = fingerprint(free), {participant.device_id: participant for participant in one.participants}
        for name in set(LIMITS) - {"free"}:
            if name in one.done and LIMITS[name].exceeded_by(use_of(known[name], free)):
                assert fingerprint(one.done[name].planned) != whole, name


@every_strategy
def test_a_plan_is_the_same_again_in_whatever_order_devices_come(case: str) -> None:
    """Every device has a twin, so that nothing but names can tell who is who."""
    for one in played(case):
        alone = strategy(case).plan(one.before, one.participants[::-1], one.planning)
        assert fingerprints(alone) == fingerprints({name: done.planned for name, done in one.done.items()})
        twins = [replace(participant, device_id=f"{participant.device_id}-twin") for participant in one.participants]
        everybody = [*one.participants, *twins]
        shuffled = random.Random(1).sample(everybody, len(everybody))
        plans = [strategy(case).plan(one.before, devices, one.planning) for devices in (everybody, shuffled)]
        assert len(plans[0]) > len(alone)
        assert fingerprints(plans[0]) == fingerprints(plans[1])


# What becomes of updates


@every_strategy
def test_a_model_is_the_same_in_whatever_order_updates_come(case: str) -> None:
    for one in played(case):
        for updates in (one.client_updates, one.client_updates[::-1], one.client_updates[1:] + one.client_updates[:1]):
            again = strategy(case).combine(one.before, updates, one.combining)
            assert_close(again, one.after)


@every_strategy
def test_what_nobody_trained_keeps_its_bits(case: str) -> None:
    """Without the device that has everything, there is always something that nobody trained."""
    kept = 0
    for one in played(case):
        updates = [update for update in one.client_updates if update.device_id != "free"]
        trained = [] if learning(one) else [update.mask for update in updates]
        counts = holders(trained, trained_only=True) if trained else {}
        after = lasting(strategy(case).combine(one.before, updates, one.combining))
        for name, array in lasting(one.before).items():
            untouched = counts.get(name, np.zeros(array.shape)) == 0
            kept += int(np.count_nonzero(untouched))
            assert np.array_equal(after[name][untouched], array[untouched]), name
    assert kept > 0


@every_strategy
def test_no_update_changes_nothing(case: str) -> None:
    for one in played(case):
        after = strategy(case).combine(one.before, [], one.combining)
        assert not _differ(lasting(one.before), lasting(after))


@pytest.mark.parametrize("case", [case for case in CASES if not {case, CASES[case][0]} & NOT_VALUES])
def test_the_values_of_one_device_become_the_model(case: str) -> None:
    """A mean of one: what the device sent where it has the model, and the model of before elsewhere."""
    rounds = [one for one in played(case) if not learning(one)]
    assert rounds
    for one in rounds:
        update = one.done["free"].client_update
        mask = update.next_mask or update.mask
        sent = {name: values_of(payload) for name, payload in update.tensors.items() if name in GRAPH.tensor}
        expected = dict(one.before.weights) | _scattered(mask, sent, one.before)
        alone = strategy(case).combine(one.before, [update], one.combining)
        state = alone.state if case == "joined" else one.before.state  # which notes whose network it is
        assert_close(alone, replace(one.before, weights=expected, state=state))
        assert _differ(alone.weights, one.before.weights)


def learning(one: Played) -> bool:
    """Whether the devices of a round learned masks, and trained no weight."""
    return any(learns_masks(done.planned) for done in one.done.values())


def _scattered(mask: Mask, sent: dict[str, Any], before: Model) -> dict[str, Any]:
    found = {}
    for name, part in sent.items():
        found[name] = np.array(before.weights[name])
        held = mask.held.get(name, np.ones(part.shape, np.bool_))
        found[name][mask.index(name)] = np.where(held, part, found[name][mask.index(name)])
    return found


def assert_close(one: Model, other: Model) -> None:
    for left, right in ((one.weights, other.weights), (one.state, other.state)):
        assert left.keys() == right.keys()
        for name, array in right.items():
            assert np.allclose(left[name], array, rtol=1e-6, atol=1e-6), name


def _differ(one: Any, other: Any) -> bool:
    assert one.keys() >= other.keys() or other.keys() >= one.keys()
    return any(
        name not in one or name not in other or not np.array_equal(one[name], other[name]) for name in {**one, **other}
    )

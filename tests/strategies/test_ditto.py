"""Ditto as a strategy: FedAvg at twice the price, with models that stay on the devices."""

import dataclasses

import numpy as np
import pytest

from edgefl.errors import SchemaError, WireFormatError
from edgefl.local_rules import Descent, TrainingInput, rule_of
from edgefl.local_rules import DittoRule as DittoRule
from edgefl.masks import full_mask, gather, leading_channels
from edgefl.strategies import ClientUpdate, Ditto, FedAvg, RoundContext, strategy_of
from tests.local_rules.quadratic import nth_batch
from tests.strategies.rounds import ROUND_CONTEXT, client_update
from tests.strategies.test_fedavg import GRAPH, MODEL, WORK, change, device, moved, towards_one
from tests.values.samples import RESULT


def test_the_settings_reach_the_device() -> None:
    strategy = strategy_of("ditto", {"pull": 0.2, "own_rate": 0.02, "learning_rate": 0.3})
    planned = strategy.plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"]
    assert rule_of(planned.rule) == DittoRule(descent=Descent(learning_rate=0.3), pull=0.2, own_rate=0.02)


def test_two_models_take_twice_the_time_and_room_for_one_more() -> None:
    one, two = (s.plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"].predicted for s in (FedAvg(), Ditto()))
    assert one is not None
    assert two is not None
    assert two.seconds == pytest.approx(2 * (one.seconds or 0))
    assert two.joules == pytest.approx(2 * (one.joules or 0))
    assert two.peak_bytes == (one.peak_bytes or 0) + full_mask(GRAPH).cost.parameter_bytes
    limited = device(round_seconds=(one.seconds or 0))
    assert FedAvg().plan(MODEL, [limited], ROUND_CONTEXT)["pi-4"].mask.digest == full_mask(GRAPH).digest
    narrow = Ditto().plan(MODEL, [limited], ROUND_CONTEXT)["pi-4"]
    assert narrow.mask.cost.parameters < GRAPH.parameters
    assert narrow.predicted is not None
    assert (narrow.predicted.seconds or 0) <= (one.seconds or 0)


def test_updates_count_alike() -> None:
    made = [moved(1, samples=30), moved(5, samples=10)]
    assert change(Ditto(), made) == pytest.approx(3, rel=1e-5)  # type: ignore[arg-type]


def test_rounds_bring_the_global_model_to_its_goal_and_own_models_between_it_and_their_own() -> None:
    strategy = strategy_of("ditto", {"learning_rate": 0.3, "pull": 1.0})
    model = strategy.begin(GRAPH, MODEL.weights)
    own = None
    for number in range(4):
        round_context = RoundContext(number, 4, 1, WORK)
        (planned,) = strategy.plan(model, [device()], round_context).values()
        part = TrainingInput(planned.mask, gather(planned.mask, model.weights), seed=1, own=lambda own=own: own)  # type: ignore[misc]
        rule = rule_of(planned.rule)
        state = rule.begin(part)
        rule.step(part, state, nth_batch(0), towards_one)
        update = rule.finish(part, state, nth_batch(1), towards_one)
        made = ClientUpdate("pi-4", planned.mask, planned.rule, 1, model.weights, RESULT, update.tensors)
        strategy.check(made)
        assert strategy.movement(made) > 0
        before, model, own = model, strategy.combine(model, [made], round_context), update.weights
    for name, array in model.weights.items():
        assert np.allclose(array - 1, 0.7**4 * (MODEL.weights[name] - 1), atol=1e-5)
    # v <- v - 0.3 ((v - 1) + (v - w)), from v = w and with w the model of the round before
    v = MODEL.weights["head.weight"]
    for number in range(4):
        w = 1 + 0.7**number * (MODEL.weights["head.weight"] - 1)
        v = v - 0.3 * ((v - 1) + (v - w))
    assert own is not None
    assert np.allclose(own["head.weight"], v, atol=1e-5)
    assert before is not model


def test_anything_but_new_values_is_refused() -> None:
    made = client_update(full_mask(GRAPH), MODEL.weights, MODEL.weights)
    Ditto().check(made)
    with pytest.raises(WireFormatError):
        Ditto().check(dataclasses.replace(made, tensors={}))
    with pytest.raises(WireFormatError, match="changes no mask"):
        Ditto().check(dataclasses.replace(made, next_mask=leading_channels(GRAPH, 0.5)))


def test_what_cannot_be_combined_is_refused_with_the_reason() -> None:
    with pytest.raises(SchemaError, match=r"'settings.sent' is 'masked_noise', but Ditto's devices send new values"):
        strategy_of("ditto", {"sent": "masked_noise"})


def test_there_is_nothing_to_personalise() -> None:
    assert Ditto().personalise(MODEL, [device()], ROUND_CONTEXT) == {}

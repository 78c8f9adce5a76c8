"""Training alone: devices keep their models, and the coordinator's stays as it was."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgefl.errors import WireFormatError
from edgefl.local_rules import LocalTraining, TrainingInput, rule_of
from edgefl.masks import full_mask, gather, leading_channels
from edgefl.strategies import ClientUpdate, LocalOnly, Participant, RoundContext, strategy_of
from edgefl.values import Budget
from edgefl.wire import Dense
from tests.local_rules.quadratic import Quadratic, nth_batch
from tests.strategies.rounds import ROUND_CONTEXT, client_update
from tests.strategies.test_fedavg import GRAPH, MODEL, WORK, device
from tests.values.samples import PROFILE, RESULT


def test_devices_send_no_tensors_and_the_model_stays() -> None:
    strategy = strategy_of("local", {"learning_rate": 0.3})
    model = strategy.begin(GRAPH, MODEL.weights)
    planned = strategy.plan(model, [device()], ROUND_CONTEXT)["pi-4"]
    rule = rule_of(planned.rule)
    assert isinstance(rule, LocalTraining)
    assert rule.descent.learning_rate == 0.3
    part = TrainingInput(planned.mask, gather(planned.mask, model.weights), seed=1)
    state = rule.begin(part)
    rule.step(part, state, nth_batch(0), Quadratic(GRAPH))
    update = rule.finish(part, state, nth_batch(1), Quadratic(GRAPH))
    made = ClientUpdate("pi-4", planned.mask, planned.rule, 1, model.weights, RESULT, update.tensors)
    strategy.check(made)
    assert strategy.movement(made) == 0
    assert strategy.combine(model, [made], ROUND_CONTEXT) is model
    assert not np.array_equal(update.weights["conv1.weight"], model.weights["conv1.weight"])


def test_a_device_that_sends_something_is_refused() -> None:
    made = client_update(full_mask(GRAPH), MODEL.weights, MODEL.weights)
    with pytest.raises(WireFormatError, match="are not expected"):
        LocalOnly().check(made)
    with pytest.raises(WireFormatError, match="changes no mask"):
        LocalOnly().check(replace(made, tensors={}, next_mask=leading_channels(GRAPH, 0.5)))
    with pytest.raises(WireFormatError):
        LocalOnly().check(replace(made, tensors={"m/conv1.weight": Dense(np.ones(1, np.float32))}))


def test_a_device_keeps_its_part_as_long_as_it_can_train_it() -> None:
    half = leading_channels(GRAPH, 0.5)
    narrow = leading_channels(GRAPH, 0.25)

    def given(**changes: Any) -> Any:
        found: dict[str, Any] = {"device_id": "pi-4", "profile": PROFILE, "budget": Budget(), "samples": 500}
        participant = Participant(**(found | changes))
        return LocalOnly().plan(MODEL, [participant], RoundContext(3, 10, 1, WORK))["pi-4"]

    assert given().mask.digest == full_mask(GRAPH).digest
    assert given(mask=half).mask.digest == half.digest
    assert given(mask=half).predicted.seconds < given().predicted.seconds
    tight = Budget(kept_fraction=narrow.cost.parameters / GRAPH.parameters)
    assert given(mask=half, budget=tight).mask.digest == narrow.digest


def test_there_is_nothing_to_personalise_and_a_submodel_of_any_size() -> None:
    assert LocalOnly().personalise(MODEL, [device()], ROUND_CONTEXT) == {}
    found = LocalOnly().extract(MODEL, 0.3, 1)
    assert 0.2 * GRAPH.parameters < found.cost.parameters <= 0.3 * GRAPH.parameters

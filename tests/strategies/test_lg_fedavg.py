"""LG-FedAvg: what is shared, what stays, and what travels."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from edgefl.errors import MaskError, WireFormatError
from edgefl.local_rules import SharedLayers, TrainingInput, continues_own, rule_of
from edgefl.local_rules.shared_layers import SharedEnd, shared_tensors
from edgefl.masks import Weights, full_mask, gather
from edgefl.simulation import SimulatedFederation
from edgefl.strategies import ClientUpdate, LGFedAvg, RoundContext, strategy_of
from edgefl.strategies.transfer_sizes import download_bytes, upload_bytes
from edgefl.values import RuleSettings
from edgefl.wire import Dense
from tests.device_runtime.federation import bundle
from tests.local_rules.quadratic import Quadratic, nth_batch
from tests.simulation.fleets import fleet, settings_of, witness
from tests.strategies.rounds import ROUND_CONTEXT, client_update
from tests.strategies.test_equations_by_hand import constant, two_layers
from tests.strategies.test_fedavg import GRAPH, MODEL, WORK, device
from tests.values.samples import RESULT


def test_two_devices_average_the_shared_layer_and_keep_their_own() -> None:
    """Rate 0.5 towards 3 and towards 7, from 1 everywhere. The heads are 2 and 4 after a step, their mean 3. In the
    next round the first device's body goes on from 2 to 2.5, its head from 3, where it stays."""
    graph, strategy = (
        two_layers(),
        strategy_of("lg_fedavg", {"learning_rate": 0.5, "momentum": 0.0, "shared_layers": 1}),
    )
    model, own = strategy.begin(graph, constant(graph, 1)), dict[str, Weights]()

    def towards(goal: float) -> Any:
        def run(weights: Any, batch: Any) -> Any:
            gradients = {name: array - np.float32(goal) for name, array in weights.items()}
            return dataclasses.replace(Quadratic(graph)(weights, batch), gradients=gradients)

        return run

    for number in range(2):
        when = RoundContext(number, 4, 1, WORK)
        made = []
        for name, goal, samples in (("a", 3.0, 30), ("b", 7.0, 10)):
            planned = strategy.plan(model, [device(name)], when)[name]
            assert planned.weights is not None
            rule, given = rule_of(planned.rule), gather(planned.mask, planned.weights)
            part = TrainingInput(planned.mask, given, 1, extras=planned.extras, own=lambda name=name: own.get(name))  # type: ignore[misc]
            state = rule.begin(part)
            rule.step(part, state, nth_batch(0), towards(goal))
            update = rule.finish(part, state, nth_batch(1), towards(goal))
            result = dataclasses.replace(RESULT, samples=samples)
            made.append(ClientUpdate(name, planned.mask, planned.rule, 1, model.weights, result, update.tensors))
            strategy.check(made[-1])
            own[name] = update.weights
        if number == 0:
            assert [float(own[name]["head.weight"][0, 0]) for name in "ab"] == [2, 4]
        model = strategy.combine(model, made, when)
        if number == 0:
            assert model.weights["head.weight"].ravel().tolist() == [3] * 4
    assert own["a"]["body.weight"].ravel().tolist() == [2.5] * 4
    assert own["a"]["head.weight"].ravel().tolist() == [3] * 4
    assert own["b"]["body.weight"].ravel().tolist() == [5.5] * 4
    assert model.weights["head.weight"].ravel().tolist() == [4] * 4
    assert model.weights["body.weight"].ravel().tolist() == [1] * 4


def test_the_settings_reach_the_device() -> None:
    strategy = strategy_of("lg_fedavg", {"shared_layers": 3, "shared_end": "first", "learning_rate": 0.3})
    rule = rule_of(strategy.plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"].rule)
    assert isinstance(rule, SharedLayers)
    assert (rule.layers, rule.end, rule.descent.learning_rate) == (3, SharedEnd.FIRST, 0.3)
    assert continues_own(RuleSettings(name=rule.name))


def test_only_shared_layers_travel_up_and_change_on_the_way_down() -> None:
    strategy = LGFedAvg(shared_layers=1)
    planned = strategy.plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"]
    shared = shared_tensors(GRAPH, 1, SharedEnd.LAST)
    assert {name.removeprefix("shared/") for name in planned.extras} == shared
    for name in shared:
        assert np.array_equal(planned.extras[f"shared/{name}"], MODEL.weights[name])
        assert planned.weights is not None
        assert not planned.weights[name].any()
    whole = strategy_of("fedavg", {}).plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"]
    size = sum(MODEL.weights[name].nbytes for name in shared)
    assert size < upload_bytes(MODEL, planned, ROUND_CONTEXT) < size + 2500
    assert upload_bytes(MODEL, whole, ROUND_CONTEXT) > 20 * size
    assert download_bytes(MODEL, planned) > download_bytes(MODEL, whole)  # once


def test_a_device_downloads_its_own_layers_once() -> None:
    strategy = strategy_of("lg_fedavg", {"shared_layers": 1, "learning_rate": 0.05})
    settings = settings_of(rounds=3, per_round=6)
    witness().seen.clear()
    with SimulatedFederation(bundle(), fleet(), strategy, settings, executor=witness()) as made:
        rounds = list(made.rounds())
    jobs = [job for job, _ in witness().seen]
    for job, first, later in zip(jobs[12:], rounds[0].devices, rounds[2].devices, strict=True):
        assert job.extras is not None
        assert later.down_bytes == len(job.plan) + len(job.extras) < first.down_bytes - len(job.weights)
    assert len({job.weights for job in jobs[:6]}) == len({job.weights for job in jobs}) == 2, "one for each width"
    assert len({job.extras for job in jobs}) == 6


def test_whole_rounds_are_federated_averaging() -> None:
    strategy = strategy_of("lg_fedavg", {"whole_rounds": 2})
    for number, tensors in ((1, set(GRAPH.tensor)), (2, set(shared_tensors(GRAPH, 2, SharedEnd.LAST)))):
        planned = strategy.plan(MODEL, [device()], RoundContext(number, 4, 1, WORK))["pi-4"]
        assert set(rule_of(planned.rule).sends(planned.mask)) == tensors
        assert (planned.weights is None) == (not planned.extras) == (number < 2)
        sent = {name: Dense(array) for name, array in MODEL.weights.items() if name in tensors}
        made = dataclasses.replace(
            client_update(planned.mask, MODEL.weights, MODEL.weights), rule=planned.rule, tensors=sent
        )
        strategy.check(made)
        with pytest.raises(WireFormatError):
            strategy.check(dataclasses.replace(made, tensors=dict(list(sent.items())[1:])))


def test_a_model_that_would_be_shared_as_a_whole_is_refused() -> None:
    with pytest.raises(MaskError, match="5 layers are shared, but model 'cnn4' has 5"):
        LGFedAvg(shared_layers=5).begin(GRAPH, MODEL.weights)
    LGFedAvg(shared_layers=4).begin(GRAPH, MODEL.weights)


def test_there_is_nothing_to_personalise() -> None:
    assert LGFedAvg().personalise(MODEL, [device()], ROUND_CONTEXT) == {}
    assert full_mask(GRAPH).digest == LGFedAvg().plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"].mask.digest

"""PerFedMask and FedBABU: what devices train and send, what becomes of it, and how the plan is explained."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from edgefl.errors import WireFormatError
from edgefl.local_rules import Descent, TrainingInput, rule_of
from edgefl.local_rules.descent import Schedule
from edgefl.local_rules.fine_tune import HeadTreatment
from edgefl.masks import full_mask, gather, leading_channels
from edgefl.strategies import (
    ClientUpdate,
    FedAvg,
    FedBABU,
    Model,
    Participant,
    PerFedMask,
    PlannedTask,
    RoundContext,
    strategy_of,
)
from edgefl.strategies.freezing import Freezing, FrozenLayers, body_of
from edgefl.strategies.personalisation import Personalisation, fine_tuning_tasks
from edgefl.strategies.round_estimate import round_estimates
from edgefl.strategies.widths import Width, Widths
from edgefl.values import Budget, LocalWork
from edgefl.wire import Dense
from examples.networks import cnn4, preresnet18
from tests.local_rules.quadratic import Quadratic, nth_batch
from tests.strategies.rounds import client_update, random_weights
from tests.values.samples import PROFILE, RESULT

GRAPH = cnn4()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))
BODY = sum(GRAPH.tensor[name].size for name in GRAPH.tensor if name != "head.weight")
ROUND_CONTEXT = RoundContext(round=0, rounds=4, seed=1, work=LocalWork(epochs=2, batch_size=32, most_steps=40))


def fleet(weak: int = 2, strong: int = 2, share: float = 1 / 8) -> list[Participant]:
    """The paper's devices: those that can train everything, and those that can train an eighth."""
    limits = [BODY] * strong + [int(share * BODY)] * weak
    return [Participant(f"d{n}", PROFILE, Budget(trainable_parameters=most), 450) for n, most in enumerate(limits)]


def train(strategy: Any, model: Model, round_context: RoundContext, devices: list[Participant]) -> list[ClientUpdate]:
    """A round of all devices, towards weights of 1, by the rules that they are sent."""
    made = []
    for name, asked in strategy.plan(model, devices, round_context).items():
        rule, part = rule_of(asked.rule), TrainingInput(asked.mask, gather(asked.mask, model.weights), seed=1, steps=2)
        state = rule.begin(part)
        for step in range(2):
            rule.step(part, state, nth_batch(step), towards_one)
        update = rule.finish(part, state, nth_batch(2), towards_one)
        result = dataclasses.replace(RESULT, device_id=name)
        made.append(ClientUpdate(name, asked.mask, asked.rule, 1, model.weights, result, update.tensors))
        strategy.check(made[-1])
    return made


def towards_one(weights: Any, batch: Any) -> Any:
    result = Quadratic(GRAPH)(weights, batch)
    return dataclasses.replace(result, gradients={name: weights[name] - 1 for name in result.gradients})


def test_the_defaults_are_the_authors() -> None:
    authors = Descent(learning_rate=0.1, momentum=0.9, weight_decay=5e-4, schedule=Schedule.STEP_DECAY)
    for strategy in (PerFedMask(), FedBABU()):
        assert strategy.descent == authors
        assert strategy.personal.fine_tune_epochs == 5
    assert authors.decay_at == "0.5, 0.75"
    assert authors.decay_factor == 0.1


def test_weak_devices_have_the_whole_model_and_train_an_eighth_of_it() -> None:
    planned_tasks = PerFedMask().plan(MODEL, fleet(), ROUND_CONTEXT)
    for name in ("d0", "d1"):
        assert planned_tasks[name].mask.trained == body_of(GRAPH)
    for name in ("d2", "d3"):
        mask = planned_tasks[name].mask
        assert mask.widths == full_mask(GRAPH).widths
        # Of 48,540 parameters: the blocks have 352, 18,560, 73,984 and 295,424, so the first two are the best fill.
        assert mask.trained == {"conv1", "norm1", "conv2", "norm2"}
        assert mask.cost.trained_parameters == 18_912
    assert planned_tasks["d2"].mask is planned_tasks["d3"].mask
    fast, slow = planned_tasks["d2"].predicted, planned_tasks["d0"].predicted
    assert fast is not None
    assert slow is not None
    assert (fast.seconds or 0) < (slow.seconds or 0)


def test_only_what_is_trained_is_sent() -> None:
    made = train(PerFedMask(), MODEL, ROUND_CONTEXT, fleet())
    for found in made:
        assert set(found.tensors) == set(found.mask.trained_tensors)
        assert "head.weight" not in found.tensors
    assert len(made[2].tensors) < len(made[0].tensors)


def test_a_layer_is_the_mean_of_those_that_trained_it_by_samples() -> None:
    masks = {name: planned.mask for name, planned in PerFedMask().plan(MODEL, fleet(), ROUND_CONTEXT).items()}
    made = []
    for number, (name, mask) in enumerate(masks.items()):
        new = {tensor: array + np.float32(number + 1) for tensor, array in MODEL.weights.items()}
        made.append(client_update(mask, MODEL.weights, new, samples=10 * (number + 1), device=name))
    after = PerFedMask().combine(MODEL, made, ROUND_CONTEXT).weights
    frozen = next(layer for layer in body_of(GRAPH) if layer.startswith("conv") and layer not in masks["d2"].trained)
    shared = next(layer for layer in masks["d2"].trained if layer.startswith("conv"))
    strong = (10 * 1 + 20 * 2) / 30
    everybody = (10 * 1 + 20 * 2 + 30 * 3 + 40 * 4) / 100
    assert np.allclose(after[f"{frozen}.weight"] - MODEL.weights[f"{frozen}.weight"], strong, atol=1e-4)
    assert np.allclose(after[f"{shared}.weight"] - MODEL.weights[f"{shared}.weight"], everybody, atol=1e-4)
    assert np.array_equal(after["head.weight"], MODEL.weights["head.weight"])


def test_a_layer_that_nobody_trains_keeps_its_values() -> None:
    devices = fleet(weak=1, strong=0, share=0.3)
    made = train(PerFedMask(), MODEL, ROUND_CONTEXT, devices)
    after = PerFedMask().combine(MODEL, made, ROUND_CONTEXT).weights
    untouched = set(GRAPH.tensor) - set(made[0].mask.trained_tensors)
    assert any(name.startswith("conv") for name in untouched)
    assert all(np.array_equal(after[name], MODEL.weights[name]) for name in untouched)


def test_rounds_train_the_whole_body() -> None:
    strategy = strategy_of("perfedmask", {"weight_decay": 0, "momentum": 0})
    model = strategy.begin(GRAPH, MODEL.weights)
    for number in range(4):
        round_context = dataclasses.replace(ROUND_CONTEXT, round=number)
        model = strategy.combine(model, train(strategy, model, round_context, fleet()), round_context)
    for name, array in model.weights.items():
        before = np.abs(MODEL.weights[name] - 1)
        if name == "head.weight":
            assert np.array_equal(array, MODEL.weights[name])
        else:
            assert np.all(np.abs(array - 1) <= before + 1e-6)
            assert np.abs(array - 1).mean() < 0.7 * before.mean()


def test_an_upload_of_a_frozen_layer_is_refused() -> None:
    strategy = PerFedMask()
    mask = strategy.plan(MODEL, fleet(), ROUND_CONTEXT)["d2"].mask
    good = client_update(mask, MODEL.weights, MODEL.weights)
    strategy.check(good)
    head = {**good.tensors, "head.weight": Dense(MODEL.weights["head.weight"])}
    with pytest.raises(WireFormatError, match=r"head.weight"):
        strategy.check(dataclasses.replace(good, tensors=head))
    lacking = dict(list(good.tensors.items())[1:])
    with pytest.raises(WireFormatError):
        strategy.check(dataclasses.replace(good, tensors=lacking))
    with pytest.raises(WireFormatError, match="changes no mask"):
        strategy.check(dataclasses.replace(good, next_mask=full_mask(GRAPH)))


def test_every_device_tunes_all_parameters_in_the_end() -> None:
    planned_tasks = PerFedMask().personalise(MODEL, fleet(), dataclasses.replace(ROUND_CONTEXT, round=4))
    assert set(planned_tasks) == {"d0", "d1", "d2", "d3"}
    for planned in planned_tasks.values():
        assert planned.mask.digest == full_mask(GRAPH).digest
        assert planned.rule.name == "fine_tune"
        assert planned.work.epochs == 5
        assert planned.work.most_steps is None
    assert strategy_of("perfedmask", {"fine_tune_epochs": 0}).personalise(MODEL, fleet(), ROUND_CONTEXT) == {}


def tuning_rate(settings: dict[str, Any], rounds: int = 4) -> float:
    """Return the rate at which a plan of fine-tuning starts, as a client computes it, and does not change."""
    strategy = strategy_of("perfedmask", settings)
    context = dataclasses.replace(ROUND_CONTEXT, round=rounds, rounds=rounds)
    planned = strategy.personalise(MODEL, fleet(), context)["d0"]
    descent: Descent = rule_of(planned.rule).descent  # type: ignore[attr-defined]
    inputs = TrainingInput(planned.mask, MODEL.weights, seed=1, round=rounds, rounds=rounds, steps=10)
    assert descent.rate(inputs, 0) == descent.rate(inputs, 9)
    return descent.rate(inputs, 0)


@pytest.mark.parametrize(
    ("settings", "rate"),
    [
        ({}, 0.001),  # the authors': 0.1, times 0.1 at a half and at three quarters
        ({"decay_at": "0.5, 0.9"}, 0.01),  # the last of 4 rounds starts at three quarters
        ({"schedule": "constant"}, 0.1),
        ({"schedule": "exponential", "decay_factor": 0.5}, 0.0125),
        ({"schedule": "cosine"}, 0.05 * (1 + np.cos(0.75 * np.pi))),
        ({"schedule": "cosine", "schedule_by": "step"}, 0.05 * (1 + np.cos(0.75 * np.pi))),
        ({"fine_tune_rate": 0.03}, 0.03),
    ],
)
def test_fine_tuning_goes_on_at_the_rate_of_the_last_round(settings: dict[str, Any], rate: float) -> None:
    assert tuning_rate(settings) == pytest.approx(rate, rel=1e-9)


def test_a_schedule_that_ends_at_zero_still_plans_fine_tuning() -> None:
    assert 0 < tuning_rate({"schedule": "exponential", "decay_factor": 0.0}) < 1e-9


@pytest.mark.parametrize("head", [HeadTreatment.TRAIN, HeadTreatment.FREEZE])
def test_tuning_takes_no_more_memory_than_a_device_has(head: HeadTreatment) -> None:
    personal = Personalisation(fine_tune_epochs=5, fine_tune_head=head)

    def tuned(peak: int | None) -> PlannedTask | None:
        budget = Budget(peak_bytes=peak, round_seconds=1e6)
        rounds = round_estimates(GRAPH, [Participant("d", PROFILE, budget, 450)], ROUND_CONTEXT, 1000)
        return fine_tuning_tasks(personal, Descent(), rounds, {"d": full_mask(GRAPH)}, ROUND_CONTEXT).get("d")

    def peak(planned: PlannedTask | None) -> int:
        assert planned is not None
        assert planned.predicted is not None
        assert planned.predicted.peak_bytes is not None
        return planned.predicted.peak_bytes

    layers, whole = GRAPH.trainable_layers, tuned(None)
    sizes: list[int] = []
    planned = tuned(peak(whole) - 1)
    while planned is not None and len(sizes) < len(layers):
        sizes.append(len(planned.mask.trained))
        assert planned.mask.trained == set(layers[-sizes[-1] :]), "frozen from the input on"
        assert peak(planned) < peak(whole)
        whole, planned = planned, tuned(peak(planned) - 1)
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == (1 if head is HeadTreatment.TRAIN else 2), "the head alone, or what is before it"
    assert planned is None, "who cannot tune that is left out"


def test_a_plan_is_explained() -> None:
    # Half of the samples train everything, half one set: S is 1 there and 1/2 elsewhere, and the bias
    # d (1/2 / 1 + 1/2 / (1/2) - 1) = d / 2, which is the least there is.
    figures = PerFedMask().explain(MODEL, fleet(), ROUND_CONTEXT)
    assert figures["bias"] == pytest.approx(BODY / 2)
    assert figures["bias_bound"] == pytest.approx(BODY / 2)
    assert figures["freezing_devices"] == 2
    assert figures["unused_parameters"] == 2 * (48_540 - 18_912)
    assert figures["untrained_parameters"] == 0
    assert PerFedMask().explain(MODEL, [], ROUND_CONTEXT) == {}
    assert FedBABU().explain(MODEL, fleet(), ROUND_CONTEXT) == {}
    mixed = FedAvg(widths=Widths(width=Width.FULL), freezing=Freezing(frozen=FrozenLayers.PLANNED))
    assert mixed.explain(MODEL, fleet(), ROUND_CONTEXT) == figures


def test_settings_of_the_planner_are_plain() -> None:
    settings: dict[str, Any] = {
        "planner": "sequential",
        "unused_tolerance": 0.2,
        "frozen": "planned",
        "width": "levels",
    }
    strategy: Any = strategy_of("perfedmask", settings)
    assert strategy.freezing.planner == "sequential"
    assert strategy.freezing.unused_tolerance == 0.2
    assert strategy.plan(MODEL, fleet(), ROUND_CONTEXT).keys() == {"d0", "d1", "d2", "d3"}


def test_the_authors_network_fills_its_budgets() -> None:
    """PreResNet18 with weak devices of d / 8: everything within budget, and hardly anything of it left."""
    graph = preresnet18()
    d = 11_167_040
    devices = [
        Participant(f"d{n}", PROFILE, Budget(trainable_parameters=d if n % 2 else d // 8), 450) for n in range(6)
    ]
    model = Model(graph, {t.name: np.zeros(t.shape, np.float32) for t in graph.tensors})
    planned_tasks = PerFedMask().plan(model, devices, ROUND_CONTEXT)
    for number in range(6):
        size = planned_tasks[f"d{number}"].mask.cost.trained_parameters
        assert size == d if number % 2 else 0.95 * d / 8 <= size <= d / 8
    assert PerFedMask().explain(model, devices, ROUND_CONTEXT)["bias"] == pytest.approx(d / 2)


def test_fewer_channels_and_fewer_layers_of_them() -> None:
    """The paper's combination with HeteroFL, through a whole round."""
    half = leading_channels(GRAPH, 0.5).cost.parameters
    weak = Budget(kept_fraction=0.3, trainable_parameters=int(0.8 * half))
    devices = [*fleet(weak=0), Participant("weak", PROFILE, weak, 450)]
    strategy = strategy_of("perfedmask", {"width": "levels"})
    made = train(strategy, MODEL, ROUND_CONTEXT, devices)
    narrow = made[-1]
    assert narrow.mask.widths["conv4"] == 128
    assert narrow.mask.trained < body_of(GRAPH)
    assert set(narrow.tensors) == set(narrow.mask.trained_tensors)
    payload = narrow.tensors["conv4.weight"]
    assert isinstance(payload, Dense)
    assert payload.array.shape == (128, 64, 3, 3)
    after = strategy.combine(MODEL, made, ROUND_CONTEXT).weights
    assert np.array_equal(after["head.weight"], MODEL.weights["head.weight"])
    assert not np.array_equal(after["conv4.weight"], MODEL.weights["conv4.weight"])
    tuned = strategy.personalise(MODEL, devices, ROUND_CONTEXT)["weak"].mask
    assert tuned.widths == narrow.mask.widths
    assert tuned.trained == set(GRAPH.trainable_layers)


@pytest.mark.parametrize("sent", ["masked_noise", "eden", "scaled_sign"])
def test_smaller_uplinks_go_with_frozen_layers(sent: str) -> None:
    strategy = strategy_of("perfedmask", {"sent": sent})
    made = train(strategy, MODEL, ROUND_CONTEXT, fleet())
    after = strategy.combine(MODEL, made, ROUND_CONTEXT).weights
    assert np.array_equal(after["head.weight"], MODEL.weights["head.weight"])
    assert not np.array_equal(after["conv4.weight"], MODEL.weights["conv4.weight"])
    assert all(strategy.movement(found) > 0 for found in made)


def test_fedbabu_trains_the_whole_body_or_nothing() -> None:
    planned_tasks = FedBABU().plan(MODEL, fleet(), ROUND_CONTEXT)
    assert set(planned_tasks) == {"d0", "d1"}
    assert all(planned.mask.trained == body_of(GRAPH) for planned in planned_tasks.values())
    fitting = strategy_of("fedbabu", {"width": "fit"}).plan(MODEL, fleet(), ROUND_CONTEXT)
    assert set(fitting) == {"d0", "d1", "d2", "d3"}
    assert all(planned.mask.trained == body_of(GRAPH) for planned in fitting.values())
    assert fitting["d3"].mask.cost.parameters < GRAPH.parameters / 4


def test_perfedmask_of_equal_devices_is_fedbabu() -> None:
    plans = [strategy.plan(MODEL, fleet(weak=0), ROUND_CONTEXT) for strategy in (PerFedMask(), FedBABU())]
    assert [planned.mask.digest for planned in plans[0].values()] == [
        planned.mask.digest for planned in plans[1].values()
    ]
    assert PerFedMask().explain(MODEL, fleet(weak=0), ROUND_CONTEXT)["bias"] == 0

"""The phase of an exact head: which rounds it takes, whom it asks, what it refuses, what the strategy knows of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgefl.errors import MaskError, SchemaError, WireFormatError
from edgefl.federation.evaluation import networks_in
from edgefl.local_rules import rule_of
from edgefl.local_rules.base_networks import joined_networks
from edgefl.local_rules.feature_sums import GRAM, PRODUCTS, SQUARES
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import ClientUpdate, FedAvg, Model, Participant, RoundContext, strategy_of
from edgefl.strategies.exact_head import ExactHead
from edgefl.strategies.exact_head_settings import ExactHeadSettings, HeadFit
from edgefl.strategies.head_fit import Moments, ridge
from edgefl.values import Budget, FieldError, LocalWork, RuleSettings, Setting
from edgefl.wire import Dense
from tests.strategies.rounds import client_update, random_weights
from tests.values.samples import PROFILE, RESULT


def perceptron(*, bias: bool = True) -> ModelGraph:
    builder = GraphBuilder("perceptron", channels=4)
    hidden = builder.linear("hidden", builder.input, 6)
    builder.linear("head", hidden, 3, bias=bias, head=True)
    return builder.finish()


GRAPH = perceptron()
WEIGHTS = random_weights(GRAPH, 1)


def made(**settings: Setting) -> ExactHead:
    found = strategy_of("fedavg", {"exact_head": "ridge", **settings})
    assert isinstance(found, ExactHead)
    return found


def context(number: int, rounds: int = 3) -> RoundContext:
    return RoundContext(number, rounds, seed=7, work=LocalWork(epochs=2, batch_size=4))


def participant(device: str = "pi-1", **budget: Any) -> Participant:
    return Participant(device, PROFILE, Budget(**budget), samples=10)


def kinds(rounds: int, **settings: Any) -> str:
    """A letter for each round: t trains, s sums, g gradients."""
    phase = ExactHeadSettings(**settings)
    places = [phase.place(number, rounds) for number in range(rounds)]
    return "".join("t" if one.step is None else "s" if one.step == 0 else "g" for one in places)


def test_the_phase_takes_the_last_rounds() -> None:
    assert kinds(5, exact_head=HeadFit.RIDGE) == "tttts"
    assert kinds(5, exact_head=HeadFit.LOGISTIC, head_rounds=2) == "ttsgg"
    assert kinds(9, exact_head=HeadFit.RIDGE, head_every=2) == "ttsttstts"
    assert kinds(7, exact_head=HeadFit.RIDGE, head_every=2) == "ttsttts"
    assert kinds(8, exact_head=HeadFit.RIDGE, head_every=2) == "ttsttsts"
    assert kinds(11, exact_head=HeadFit.LOGISTIC, head_rounds=1, head_every=3) == "tttsgttttsg"


def test_a_strategy_counts_its_own_rounds() -> None:
    phase = ExactHeadSettings(exact_head=HeadFit.RIDGE, head_every=2)
    assert [phase.place(number, 8).own for number in range(8)] == [0, 1, None, 2, 3, None, 4, None]
    assert phase.trained(8) == 5


def test_a_federation_needs_rounds_to_train_in() -> None:
    made().check_rounds(2, buffered=False)
    with pytest.raises(SchemaError, match="takes 1 of the 1 rounds"):
        made().check_rounds(1, buffered=False)
    with pytest.raises(SchemaError, match="buffered"):
        made().check_rounds(5, buffered=True)


def test_without_a_phase_a_strategy_is_itself() -> None:
    assert isinstance(strategy_of("fedavg", {"exact_head": "none"}), FedAvg)
    with pytest.raises(FieldError, match="head_every"):
        strategy_of("fedavg", {"head_every": 3})
    with pytest.raises(FieldError, match="head_clip"):
        strategy_of("fedavg", {"exact_head": "ridge", "head_noise": 1.0})
    plain = perceptron(bias=False)
    with pytest.raises(SchemaError, match="no bias"):
        made(personal_head="prior").begin(plain, random_weights(plain, 1))


def test_a_model_whose_output_is_no_linear_layer_is_refused() -> None:
    builder = GraphBuilder("two heads", channels=4)
    hidden = builder.linear("hidden", builder.input, 6)
    builder.linear("one", hidden, 3, head=True)
    builder.linear("other", hidden, 3, head=True)
    graph = builder.finish()
    with pytest.raises(MaskError, match="not one linear layer"):
        made().begin(graph, random_weights(graph, 1))


def test_training_rounds_are_the_strategys() -> None:
    phase, plain = made(), strategy_of("fedavg", {})
    model, one = phase.begin(GRAPH, WEIGHTS), [participant()]
    found = phase.plan(model, one, context(1, rounds=3))["pi-1"]
    alone = plain.plan(model, one, context(1, rounds=2))["pi-1"]
    assert (found.mask.digest, found.rule, found.work) == (alone.mask.digest, alone.rule, alone.work)
    assert not phase.selects_all(context(1))
    assert phase.selects_all(context(2))


def test_a_device_that_can_train_nothing_passes_its_samples_through_the_model() -> None:
    phase = made()
    model = phase.begin(GRAPH, WEIGHTS)
    weak = participant(trainable_parameters=0, kept_fraction=0.01)
    assert phase.plan(model, [weak], context(0)) == {}
    task = phase.plan(model, [weak], context(2))["pi-1"]
    assert task.rule == RuleSettings(name="feature_sums", settings=task.rule.settings)
    assert task.mask.widths == full_mask(GRAPH).widths
    assert not task.mask.trained
    assert task.work == LocalWork(epochs=1, batch_size=4)
    assert phase.plan(model, [participant(peak_bytes=1)], context(2)) == {}


def test_a_device_without_time_for_all_of_its_samples_looks_at_as_many_as_it_has_time_for() -> None:
    phase = made()
    model = phase.begin(GRAPH, WEIGHTS)
    whole = phase.plan(model, [participant()], context(2))["pi-1"]
    assert whole.predicted is not None
    assert whole.predicted.seconds is not None
    found = {}
    for share in (1.0, 0.7, 0.4, 0.01):
        tasks = phase.plan(model, [participant(round_seconds=share * whole.predicted.seconds)], context(2))
        found[share] = tasks["pi-1"].work.most_steps if tasks else 0
    assert found == {1.0: None, 0.7: 2, 0.4: 1, 0.01: 0}, "ten samples are three batches of four"


def test_sums_of_some_samples_count_for_all_of_a_device() -> None:
    phase = made(head_penalty=1e-4)
    model = phase.begin(GRAPH, WEIGHTS)
    task = phase.plan(model, [participant()], context(2))["pi-1"]
    rows, targets = samples_of(4)
    few = sums_of(4, task.mask, task.rule)
    half = {GRAM: (rows[:12].T @ rows[:12])[np.triu_indices(7)], PRODUCTS: rows[:12].T @ targets[:12]}
    some = sums_of(4, task.mask, task.rule, **half, **{SQUARES: targets[:12].sum(axis=0)})
    some = replace(some, result=replace(some.result, steps=3))  # of four samples each
    state = phase.combine(model, [few, some], context(2)).state
    assert float(state["exact_head/samples"]) == pytest.approx(2 * 24)
    assert state["exact_head/gram"][-1, -1] == pytest.approx(2 * 24)
    assert state["exact_head/products"][0, 0] == pytest.approx(
        (rows.T @ targets)[0, 0] + 2 * (rows[:12].T @ targets[:12])[0, 0]
    )


def samples_of(device: int) -> tuple[Any, Any]:
    draws = np.random.default_rng(device)
    labels = draws.integers(0, 3, 20 + device)
    rows = draws.normal(size=(len(labels), 6)) + np.eye(6)[labels]
    return np.hstack([rows, np.ones((len(labels), 1))]), np.eye(3)[labels]


def sums_of(device: int, mask: Mask, rule: RuleSettings, **changes: Any) -> ClientUpdate:
    rows, targets = samples_of(device)
    gram = rows.T @ rows
    arrays = {
        GRAM: gram[np.triu_indices(7)],
        PRODUCTS: rows.T @ targets,
        SQUARES: targets.sum(axis=0),
    } | changes
    result = replace(RESULT, samples=len(rows), steps=len(rows))
    tensors = {name: Dense(np.asarray(array, np.float64)) for name, array in arrays.items()}
    return ClientUpdate(f"d{device}", mask, rule, 1, WEIGHTS, result, tensors)


def with_sums(phase: ExactHead, devices: Sequence[int], **changes: Any) -> tuple[Model, list[ClientUpdate]]:
    model = phase.begin(GRAPH, WEIGHTS)
    task = phase.plan(model, [participant()], context(2))["pi-1"]
    updates = [sums_of(device, task.mask, task.rule, **changes) for device in devices]
    for update in updates:
        phase.check(update)
        assert phase.movement(update) == 0.0
    return phase.combine(model, updates, context(2)), updates


def test_the_head_is_that_of_a_central_fit() -> None:
    model, _ = with_sums(made(head_penalty=1e-4), range(5))
    rows, targets = (np.concatenate(arrays) for arrays in zip(*map(samples_of, range(5)), strict=True))
    features = rows[:, :-1]
    mean, target = features.mean(axis=0), (3 * targets - 1).mean(axis=0)
    centred = features - mean
    damping = 1e-4 * np.mean((features * features).sum(axis=0)) * np.eye(6)
    slope = np.linalg.solve(centred.T @ centred + damping, centred.T @ (3 * targets - 1 - target))
    assert model.weights["head.weight"] == pytest.approx(slope.T, abs=1e-6)
    assert model.weights["head.bias"] == pytest.approx(target - mean @ slope, abs=1e-6)
    assert all(model.weights[name] is WEIGHTS[name] for name in WEIGHTS if not name.startswith("head"))


def test_the_penalty_is_chosen_and_kept_beside_the_model() -> None:
    model, _ = with_sums(made(), range(5))
    assert float(model.state["exact_head/penalty"]) > 0
    assert model.state["exact_head/gram"].shape == (7, 7)


def test_a_strategy_never_sees_what_the_phase_keeps() -> None:
    phase = made(head_every=1)
    model, _ = with_sums(phase, range(3))
    task = phase.plan(model, [participant()], context(2, rounds=5))["pi-1"]
    new = {name: array + 1 for name, array in model.weights.items()}
    after = phase.combine(model, [client_update(task.mask, model.weights, new)], context(2, rounds=5))
    assert after.state == {}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({SQUARES: np.array([-1.0, 10, 11])}, "negative"),
        ({GRAM: -np.ones(28)}, "negative"),
        ({GRAM: 1e9 * (1 - np.eye(7))[np.triu_indices(7)] + np.eye(7)[np.triu_indices(7)]}, "products"),
        ({PRODUCTS: np.full((7, 3), 1e6)}, "features and labels"),
        ({GRAM: np.full(28, 1e160), PRODUCTS: np.full((7, 3), 1e308)}, "beyond"),
    ],
)
def test_sums_that_no_samples_have_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(WireFormatError, match=says):
        with_sums(made(), [1], **changes)


def test_sums_with_noise_are_bounded_by_the_clip() -> None:
    with_sums(made(head_clip=5.0, head_noise=0.5), [1])
    for changes in ({PRODUCTS: np.full((7, 3), -1e6)}, {GRAM: np.full(28, -1e9)}, {SQUARES: np.full(3, 1e5)}):
        with pytest.raises(WireFormatError, match="more than its samples can have"):
            with_sums(made(head_clip=5.0, head_noise=0.5), [1], **changes)


def test_noise_that_is_larger_than_the_sums_leaves_a_finite_head() -> None:
    phase = made(head_clip=1.0, head_noise=10.0, exact_head="logistic", head_rounds=1)
    model = phase.begin(GRAPH, WEIGHTS)
    task = phase.plan(model, [participant()], context(2, rounds=4))["pi-1"]
    sums = {GRAM: -np.eye(7)[np.triu_indices(7)] * 50, PRODUCTS: np.full((7, 3), -30.0), SQUARES: np.full(3, -20.0)}
    noisy = [sums_of(device, task.mask, task.rule, **sums) for device in range(3)]
    after = phase.combine(model, noisy, context(2, rounds=4))
    later = phase.plan(after, [participant()], context(3, rounds=4))["pi-1"]
    found = phase.combine(after, gradients_at(later.extras, range(3), later.mask, later.rule), context(3, rounds=4))
    assert all(np.isfinite(array).all() for array in found.weights.values())


def test_standardised_targets_of_a_regression_are_not_taken_for_classes() -> None:
    builder = GraphBuilder("regression", channels=4)
    builder.linear("head", builder.linear("hidden", builder.input, 6), 1, head=True)
    graph = builder.finish()
    weights = random_weights(graph, 1)
    phase = made(head_penalty=1e-9)
    model = phase.begin(graph, weights)
    task = phase.plan(model, [participant()], context(2))["pi-1"]
    rows, _ = samples_of(3)
    targets = rows @ np.arange(7.0)[:, None]
    targets = (targets - targets.mean()) / targets.std()
    arrays = {GRAM: (rows.T @ rows)[np.triu_indices(7)], PRODUCTS: rows.T @ targets, SQUARES: np.array([len(rows)])}
    after = phase.combine(model, [sums_of(3, task.mask, task.rule, **arrays)], context(2))
    head = np.append(after.weights["head.weight"][0], after.weights["head.bias"][0])
    assert rows @ head == pytest.approx(targets[:, 0], abs=1e-4)


def test_a_head_of_too_many_features_is_refused() -> None:
    builder = GraphBuilder("wide", channels=1)
    builder.linear("head", builder.linear("hidden", builder.input, 5000), 2, head=True)
    graph = builder.finish()
    with pytest.raises(SchemaError, match="5,001 numbers"):
        made().begin(graph, random_weights(graph, 1))


def test_nothing_is_pruned_after_the_last_round_of_training() -> None:
    assert made().last_trained(5) == 3
    assert made(exact_head="logistic", head_rounds=2).last_trained(9) == 5


def test_sums_of_another_shape_and_other_tensors_are_refused() -> None:
    for changes in ({GRAM: np.ones(27)}, {"head.weight": np.ones((3, 6))}):
        with pytest.raises(WireFormatError):
            with_sums(made(), [1], **changes)


def test_a_device_that_claims_a_thousand_times_as_many_samples_counts_for_ten() -> None:
    phase = made(head_penalty=1e-3)
    model = phase.begin(GRAPH, WEIGHTS)
    task = phase.plan(model, [participant()], context(2))["pi-1"]
    honest = [sums_of(device, task.mask, task.rule) for device in range(3)]
    liar = honest[2]
    tensors = {
        name: Dense(payload.array * 1000) for name, payload in liar.tensors.items() if isinstance(payload, Dense)
    }
    claims = replace(liar, tensors=tensors, result=replace(liar.result, samples=22_000, steps=22_000))
    phase.check(claims)
    total = phase.combine(model, [*honest[:2], claims], context(2)).state["exact_head/samples"]
    assert float(total) == pytest.approx(20 + 21 + 10 * 21)


def test_a_device_with_features_a_million_times_as_large_does_not_decide_the_head() -> None:
    phase = made(head_penalty=1e-6)
    model = phase.begin(GRAPH, WEIGHTS)
    task = phase.plan(model, [participant()], context(2))["pi-1"]
    honest = [sums_of(device, task.mask, task.rule) for device in range(3)]
    rows, targets = samples_of(7)
    rows = rows * np.array([*[1e6] * 6, 1.0])
    wrong = np.roll(targets, 1, axis=1)
    arrays = {GRAM: (rows.T @ rows)[np.triu_indices(7)], PRODUCTS: rows.T @ wrong, SQUARES: wrong.sum(axis=0)}
    liar = sums_of(7, task.mask, task.rule, **arrays)
    phase.check(liar)
    state = phase.combine(model, [*honest, liar], context(2)).state
    alone = phase.combine(model, honest, context(2)).state
    assert np.trace(state["exact_head/gram"]) < 12 * np.trace(alone["exact_head/gram"])


def test_a_device_without_samples_changes_nothing() -> None:
    phase = made()
    model, updates = with_sums(phase, range(3))
    nothing = {
        name: Dense(np.zeros_like(one.array)) for name, one in updates[0].tensors.items() if isinstance(one, Dense)
    }
    idle = replace(updates[0], tensors=nothing, result=replace(RESULT, samples=0))
    start = phase.begin(GRAPH, WEIGHTS)
    again = phase.combine(start, [*updates, idle], context(2))
    assert np.array_equal(again.weights["head.weight"], model.weights["head.weight"])
    assert phase.combine(start, [idle], context(2)).weights["head.weight"] is WEIGHTS["head.weight"]


def gradients_at(task_extras: Any, devices: Sequence[int], mask: Mask, rule: RuleSettings) -> list[ClientUpdate]:
    head = np.vstack([task_extras["head.weight"].T, task_extras["head.bias"]]).astype(np.float64)
    found = []
    for device in devices:
        rows, targets = samples_of(device)
        odds = np.exp(rows @ head)
        gradient = rows.T @ (odds / odds.sum(axis=1, keepdims=True) - targets)
        result = replace(RESULT, samples=len(rows), steps=len(rows))
        found.append(ClientUpdate(f"d{device}", mask, rule, 1, WEIGHTS, result, {"sums/gradient": Dense(gradient)}))
    return found


def test_rounds_of_gradients_lower_the_central_loss() -> None:
    phase = made(exact_head="logistic", head_rounds=12)
    model = phase.begin(GRAPH, WEIGHTS)
    rows, targets = (np.concatenate(arrays) for arrays in zip(*map(samples_of, range(5)), strict=True))
    losses = []
    for number in range(2, 15):
        task = phase.plan(model, [participant()], context(number, rounds=15))["pi-1"]
        assert (task.rule.name == "feature_sums") == (number == 2)
        if number == 2:
            updates = [sums_of(device, task.mask, task.rule) for device in range(5)]
        else:
            assert task.weights is not None
            assert np.array_equal(task.weights["head.weight"], WEIGHTS["head.weight"]), "the body that devices have"
            updates = gradients_at(task.extras, range(5), task.mask, task.rule)
        for update in updates:
            phase.check(update)
        model = phase.combine(model, updates, context(number, rounds=15))
        scores = rows @ np.vstack([model.weights["head.weight"].T, model.weights["head.bias"]])
        losses.append(float((np.log(np.exp(scores).sum(axis=1)) - (scores * targets).sum(axis=1)).mean()))
    assert losses[1] < losses[0]
    assert losses[-1] < losses[1]
    assert abs(losses[-2] - losses[-1]) < 0.05 * (losses[0] - losses[-1])


def test_a_round_of_gradients_after_sums_that_nobody_sent_asks_for_sums() -> None:
    phase = made(exact_head="logistic", head_rounds=2)
    model = phase.begin(GRAPH, WEIGHTS)
    task = phase.plan(model, [participant()], context(4, rounds=5))["pi-1"]
    assert task.rule.name == "feature_sums"
    after = phase.combine(model, [sums_of(1, task.mask, task.rule)], context(4, rounds=5))
    assert "exact_head/head" in after.state


def test_devices_put_their_shares_into_the_bias_at_the_end() -> None:
    phase = made(personal_head="prior")
    model, _ = with_sums(phase, range(4))
    tasks = phase.personalise(model, [participant()], context(3))
    assert rule_of(tasks["pi-1"].rule).name == "class_prior"
    counts = sum(samples_of(device)[1].sum(axis=0) for device in range(4))
    assert tasks["pi-1"].extras["shares"] == pytest.approx(counts / counts.sum())
    assert phase.personalise(phase.begin(GRAPH, WEIGHTS), [participant()], context(3)) == {}


def test_some_of_several_networks_have_the_head_of_a_fit_on_their_features() -> None:
    phase = strategy_of("split_mix", {"exact_head": "ridge", "head_penalty": 1e-3, "base_networks": 3})
    assert isinstance(phase, ExactHead)
    model = phase.begin(GRAPH, WEIGHTS)
    task = phase.plan(model, [participant()], context(2))["pi-1"]
    assert [network.kept["hidden"].tolist() for network in task.networks] == [[0, 1], [2, 3], [4, 5]]
    after = phase.combine(model, [sums_of(device, task.mask, task.rule) for device in range(4)], context(2))
    rows, targets = (np.concatenate(arrays) for arrays in zip(*map(samples_of, range(4)), strict=True))
    for numbers in ([0], [1], [0, 2], [0, 1, 2]):
        mask = joined_networks(GRAPH, numbers, 3)
        chosen = np.array([*(2 * number + place for number in numbers for place in (0, 1)), 6])
        moments = Moments(
            rows[:, chosen].T @ rows[:, chosen], rows[:, chosen].T @ targets, targets.sum(axis=0), len(rows)
        )
        central = ridge(moments, 1e-3, bias=True, classes=True)
        networks = networks_in(phase, after, mask)
        assert len(networks) == len(numbers)
        logits = np.mean(
            [
                rows[:, 2 * number : 2 * number + 2] @ one["head.weight"].T + one["head.bias"]
                for number, one in zip(numbers, networks, strict=True)
            ],
            axis=0,
        )
        assert logits == pytest.approx(rows[:, chosen] @ central, abs=1e-5)


def test_what_a_phase_does_not_say_is_the_strategys() -> None:
    phase = strategy_of("hermes", {"exact_head": "ridge"})
    plain = strategy_of("hermes", {})
    for name in ("assumed_samples", "load", "descent"):
        assert getattr(phase, name) == getattr(plain, name)
    with pytest.raises(AttributeError):
        _ = phase.nothing_of_that_name  # type: ignore[attr-defined]

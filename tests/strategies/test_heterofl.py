"""HeteroFL: widths and means by hand, rows of the head by class, statistics by width, and a scaler that cancels out."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from device_runtime.engines import ThreadSettings
from device_runtime.engines.onnx import OnnxEngine
from edgefl.artifacts.bundle import TRAIN, read_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.local_rules import Batch, Descent, StepResult, TrainingInput, rule_of
from edgefl.masks import Mask, full_mask, gather, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import ClientUpdate, HeteroFL, Model, Participant, RoundContext, strategy_of
from edgefl.strategies.heterofl import trained_rows
from edgefl.strategies.update_checks import values_of
from edgefl.values import Budget
from edgefl.wire import Dense
from examples.networks import cnn4
from tests.local_rules.quadratic import nth_batch
from tests.strategies.rounds import ROUND_CONTEXT, client_update, random_weights, rounds, slow_mean
from tests.values.samples import PROFILE, RESULT

BUNDLE = Path(__file__).parents[1] / "device_runtime" / "small_cnn.zip"


def classifier() -> ModelGraph:
    """Four channels and a head of five classes."""
    build = GraphBuilder("classifier", channels=3)
    build.linear("head", build.linear("a", build.input, 4), 5, head=True)
    return build.finish()


GRAPH = classifier()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))


def test_levels_are_halves_of_the_width_and_leading() -> None:
    graph = cnn4()
    sizes = [leading_channels(graph, 0.5**level).cost.parameters for level in range(5)]
    devices = [Participant(f"d{level}", PROFILE, Budget(trainable_parameters=size)) for level, size in enumerate(sizes)]
    model = Model(graph, random_weights(graph, 0))
    planned_tasks = HeteroFL().plan(model, devices, ROUND_CONTEXT)
    for level in range(5):
        for name, whole in (("conv1", 32), ("conv2", 64), ("conv3", 128), ("conv4", 256)):
            assert planned_tasks[f"d{level}"].mask.kept[name].tolist() == list(range(whole >> level))


def test_the_mean_is_over_holders_who_all_count_the_same() -> None:
    # Widths 4, 2 and 2 move by 1, 2 and 6: what all hold moves by 3, what the first holds alone by 1.
    found = []
    for width, value, samples in ((4, 1, 10), (2, 2, 500), (2, 6, 90)):
        new = {name: array + np.float32(value) for name, array in MODEL.weights.items()}
        mask = Mask.of(GRAPH, kept={"a": range(width)})
        found.append(client_update(mask, MODEL.weights, new, samples=samples))
    change = {n: a - MODEL.weights[n] for n, a in HeteroFL().combine(MODEL, found, ROUND_CONTEXT).weights.items()}
    assert np.allclose(change["a.weight"][:2], 3, atol=1e-5)
    assert np.allclose(change["a.weight"][2:], 1, atol=1e-5)
    assert np.allclose(change["head.weight"][:, :2], 3, atol=1e-5)
    assert np.allclose(change["head.weight"][:, 2:], 1, atol=1e-5)


def test_a_coordinate_that_nobody_holds_keeps_its_value() -> None:
    new = random_weights(GRAPH, 5)
    found = client_update(Mask.of(GRAPH, kept={"a": [0, 1]}), MODEL.weights, new)
    after = HeteroFL().combine(MODEL, [found], ROUND_CONTEXT).weights
    assert np.array_equal(after["a.weight"][2:], MODEL.weights["a.weight"][2:])
    assert np.array_equal(after["head.weight"][:, 2:], MODEL.weights["head.weight"][:, 2:])
    assert np.allclose(after["a.weight"][:2], new["a.weight"][:2], atol=1e-6)


@settings(deadline=None)
@given(rounds())
def test_any_round_without_masked_loss_is_the_slow_mean(case: tuple[Model, list[ClientUpdate]]) -> None:
    model, found = case
    found = [dataclasses.replace(c, result=dataclasses.replace(c.result, samples=1)) for c in found]
    if any(tensor.role == "statistic" for tensor in model.graph.tensors):
        return
    after = HeteroFL(masked_head=False).combine(model, [_dense(c) for c in found], ROUND_CONTEXT).weights
    exact, _ = slow_mean(model, found)
    assert all(np.allclose(after[name], exact[name], atol=1e-3) for name in exact)


def _dense(made: ClientUpdate) -> ClientUpdate:
    return dataclasses.replace(made, tensors={name: Dense(values_of(p)) for name, p in made.tensors.items()})


class Masked:
    """Softmax on a head of five classes, outputs of classes that the device lacks set to zero: HeteroFL's loss."""

    def __init__(self, classes: list[int]) -> None:
        self.flags = np.isin(np.arange(5), classes).astype(np.float32)

    def __call__(self, weights: Any, batch: Batch) -> StepResult:
        hidden = batch.x @ weights["a.weight"].T + weights["a.bias"]
        logits = (hidden @ weights["head.weight"].T + weights["head.bias"]) * self.flags
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        slope = (share - np.eye(5, dtype=np.float32)[batch.y]) / len(batch.y) * self.flags
        back = slope @ weights["head.weight"]
        gradients = {
            "head.weight": slope.T @ hidden,
            "head.bias": slope.sum(axis=0),
            "a.weight": back.T @ batch.x,
            "a.bias": back.sum(axis=0),
        }
        return StepResult(0.0, np.ones(len(batch.y), np.bool_), {n: g.astype(np.float32) for n, g in gradients.items()})


def trained(strategy: Any, mask: Mask, classes: list[int], steps: int, seed: int) -> ClientUpdate:
    """A device's round by the rule that the strategy sends."""
    generator = np.random.default_rng(seed)
    rule = rule_of(strategy.uplink.rule)
    part = TrainingInput(mask, gather(mask, MODEL.weights), seed, steps=steps)
    state = rule.begin(part)
    for _ in range(steps):
        batch = Batch(generator.normal(size=(8, 3)).astype(np.float32), generator.choice(classes, 8))
        rule.step(part, state, batch, Masked(classes))
    update = rule.finish(part, state, nth_batch(0), Masked(classes))
    result = dataclasses.replace(RESULT, steps=steps)
    return ClientUpdate(f"d{seed}", mask, strategy.uplink.rule, seed, MODEL.weights, result, update.tensors)


@pytest.mark.parametrize(
    "descent",
    [
        Descent(learning_rate=0.1),
        Descent(learning_rate=0.1, momentum=0.9, weight_decay=5e-4),
        Descent(learning_rate=0.001, momentum=0.9, nesterov=True, weight_decay=0.01, proximal=0.1, clip_norm=1.0),
    ],
)
def test_a_row_of_the_head_is_the_mean_of_those_that_have_its_class(descent: Descent) -> None:
    strategy = HeteroFL(descent=descent)
    half = Mask.of(GRAPH, kept={"a": [0, 1]})
    one = trained(strategy, full_mask(GRAPH), [0, 1], 300, 1)
    other = trained(strategy, half, [1, 2], 300, 2)
    for made in (one, other):
        strategy.check(made)
    after = strategy.combine(MODEL, [one, other], ROUND_CONTEXT).weights
    first, second = ({n: p.array for n, p in made.tensors.items() if isinstance(p, Dense)} for made in (one, other))
    bias = after["head.bias"]
    expected = [first["head.bias"][0], (first["head.bias"][1] + second["head.bias"][1]) / 2, second["head.bias"][2]]
    assert np.allclose(bias[:3], expected, atol=1e-6)
    assert np.allclose(after["head.weight"][0], first["head.weight"][0], atol=1e-6)
    assert np.allclose(after["head.weight"][2, :2], second["head.weight"][2], atol=1e-6)
    # Class 2 has nobody who holds the other channels, classes 3 and 4 nobody at all: they stay, and do not even decay.
    assert np.array_equal(after["head.weight"][2, 2:], MODEL.weights["head.weight"][2, 2:])
    assert np.array_equal(after["head.weight"][3:], MODEL.weights["head.weight"][3:])
    assert np.array_equal(bias[3:], MODEL.weights["head.bias"][3:])
    # The body is everybody's.
    mean = (first["a.weight"][:2] + second["a.weight"]) / 2
    assert np.allclose(after["a.weight"][:2], mean, atol=1e-6)


def test_rows_count_for_all_where_the_setting_or_the_uplink_says_so() -> None:
    plain = HeteroFL(masked_head=False)
    made = [trained(plain, full_mask(GRAPH), classes, 20, seed) for seed, classes in ((1, [0, 1]), (2, [2, 3]))]
    after = plain.combine(MODEL, made, ROUND_CONTEXT).weights
    sent = [found.tensors["head.bias"] for found in made]
    assert np.allclose(after["head.bias"], sum(p.array for p in sent if isinstance(p, Dense)) / 2, atol=1e-6)
    bits = strategy_of("heterofl", {"sent": "masked_noise"})
    made = [trained(bits, full_mask(GRAPH), classes, 20, seed) for seed, classes in ((1, [0, 1]), (2, [2, 3]))]
    for found in made:
        bits.check(found)
    assert np.isfinite(bits.combine(MODEL, made, ROUND_CONTEXT).weights["head.weight"]).all()


def test_rows_that_only_decayed_are_told_from_those_that_were_trained() -> None:
    given = np.random.default_rng(1).normal(size=(4, 30)).astype(np.float32)
    given[3] = 0
    new = given * np.float32(0.93)
    new[1] += np.float32(1e-3) * np.random.default_rng(2).normal(size=30).astype(np.float32)
    assert trained_rows(given, new, 100).tolist() == [False, True, False, False]
    new[3, 5] = 1e-6
    assert trained_rows(given, new, 100).tolist() == [False, True, False, True]
    assert trained_rows(given, given, 10**15).tolist() == [False] * 4
    assert trained_rows(given[:, :1], given[:, :1], 1).all()


def test_statistics_come_from_the_widest_parts() -> None:
    build = GraphBuilder("tracked", channels=3)
    x = build.norm("norm", build.linear("a", build.input, 4), statistics=True)
    build.linear("head", x, 2, head=True)
    graph = build.finish()
    model = Model(graph, random_weights(graph, 0))

    def made(width: int, value: float) -> ClientUpdate:
        new = {name: array + np.float32(value) for name, array in model.weights.items()}
        return client_update(Mask.of(graph, kept={"a": range(width)}), model.weights, new)

    after = HeteroFL().combine(model, [made(4, 1), made(4, 2), made(2, 9)], ROUND_CONTEXT).weights
    assert np.allclose(after["norm.running_mean"] - model.weights["norm.running_mean"], 1.5, atol=1e-5)
    assert np.allclose(after["norm.weight"][:2] - model.weights["norm.weight"][:2], 4, atol=1e-5)
    narrow = HeteroFL().combine(model, [made(2, 3), made(2, 5)], ROUND_CONTEXT).weights
    assert np.allclose(narrow["norm.running_var"][:2] - model.weights["norm.running_var"][:2], 4, atol=1e-5)
    assert np.array_equal(narrow["norm.running_var"][2:], model.weights["norm.running_var"][2:])


@pytest.mark.parametrize("ratio", [0.5, 0.25, 0.0625])
def test_a_norm_takes_the_scaler_out_again(ratio: float) -> None:
    """A real training graph whose layers write 1 / r of what they do, which is weights of w / r, learns the same."""
    bundle = read_bundle(BUNDLE)
    mask = leading_channels(bundle.graph, ratio)
    step = OnnxEngine(ThreadSettings(1)).train_step(bundle.files[TRAIN], mask)
    generator = np.random.default_rng(3)
    batch = Batch(generator.normal(size=(16, 1, 8, 8)).astype(np.float32), generator.integers(0, 10, 16))
    weights = gather(mask, bundle_weights(bundle))
    scaled = {**weights, **{name: weights[name] / np.float32(ratio) for name in ("0.weight", "4.weight")}}
    plain = step(weights, batch)
    before, slopes = plain.loss, {name: array.copy() for name, array in plain.gradients.items()}
    found = step(scaled, batch)
    assert found.loss == pytest.approx(before, rel=1e-4)
    difference = size = 0.0
    for name, slope in slopes.items():
        # What a scaler hands on to the weights in front of it is 1 / r of the gradient.
        passed = found.gradients[name] / (ratio if name in ("0.weight", "4.weight") else 1)
        difference += float(np.square(passed - slope).sum())
        size += float(np.square(slope).sum())
    # What is left is the epsilon of the norms: with variances divided by r^2 it counts r^2 times as much.
    assert difference <= (1e-4 if ratio == 0.5 else 3e-3) ** 2 * size


def test_two_workers_plan_the_same_and_rounds_keep_levels() -> None:
    graph = cnn4()
    model = Model(graph, random_weights(graph, 0))
    devices = [Participant(f"d{n}", PROFILE, Budget(round_seconds=2.0 + n)) for n in range(4)]
    plans = [HeteroFL().plan(model, devices, RoundContext(number, 9, 7 + number)) for number in (0, 0, 5)]
    digests = [[planned.mask.digest for planned in plan.values()] for plan in plans]
    assert digests[0] == digests[1] == digests[2]

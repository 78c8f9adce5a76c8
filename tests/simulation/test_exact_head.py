"""An exact head in a simulated federation: that of a central fit on all devices' data, by devices that cannot train."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from device_runtime.engines import ThreadSettings, open_engine
from edgefl.artifacts.bundle import INFER
from edgefl.artifacts.features import feature_graph
from edgefl.local_rules.base_networks import joined_networks
from edgefl.simulation import DeviceClass, Fate, SimulatedFederation, fleet_of
from edgefl.strategies import strategy_of
from edgefl.values import Budget, Setting
from tests.device_runtime.federation import bundle, digits
from tests.simulation.fleets import FEDAVG, settings_of

STRONG = DeviceClass(name="strong")
WEAK = DeviceClass(name="weak", limits=Budget(trainable_parameters=1, kept_fraction=0.01))


def federation(**settings: Any) -> SimulatedFederation:
    fleet = fleet_of(digits(), clients=5, scheme="labels:4", classes=(STRONG, WEAK), seed=1)
    strategy = strategy_of("fedavg", {**FEDAVG, "exact_head": "ridge", **settings})
    return SimulatedFederation(bundle(), fleet, strategy, settings_of(rounds=4, per_round=2))


def pooled(made: SimulatedFederation) -> tuple[Any, Any]:
    """The features and labels of all devices, computed in one place."""
    run = open_engine("onnx", ThreadSettings(1)).predictor(feature_graph(bundle().files[INFER], bundle().graph))
    parts = [device.data.dataset.batch(device.data.split.train) for device in made.fleet]
    x, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return run(made.model.weights, x).astype(np.float64), labels


def test_the_head_equals_a_central_fit_on_pooled_data() -> None:
    with federation(head_penalty=1e-3) as made:
        results = list(made.rounds())
        features, labels = pooled(made)
        found = made.model.weights
    targets = 10 * np.eye(10)[labels] - 1
    mean, target = features.mean(axis=0), targets.mean(axis=0)
    centred = features - mean
    damping = 1e-3 * np.mean((features * features).sum(axis=0)) * np.eye(features.shape[1])
    slope = np.linalg.solve(centred.T @ centred + damping, centred.T @ (targets - target))
    scale = np.abs(slope).max()
    assert np.abs(found["9.weight"].T - slope).max() < 1e-5 * scale
    assert np.abs(found["9.bias"] - (target - mean @ slope)).max() < 1e-5 * max(scale, np.abs(target).max())
    assert results[-1].score is not None
    assert results[-2].score is not None
    assert results[-1].score.accuracy > results[-2].score.accuracy


def test_networks_side_by_side_have_one_head_and_some_of_them_another() -> None:
    fleet = fleet_of(digits(), clients=4, scheme="labels:4", seed=1)
    settings: dict[str, Setting] = {"base_networks": 4, "learning_rate": 0.1, "exact_head": "ridge"}
    with SimulatedFederation(bundle(), fleet, strategy_of("split_mix", settings), settings_of(rounds=4)) as made:
        results = list(made.rounds())
        scores = [made.score(joined_networks(bundle().graph, range(count), 4)) for count in (1, 2, 3, 4)]
        down = [one.down_bytes for one in results[-1].devices]
    accuracies = [0.0 if score is None else score.accuracy for score in scores]
    before, after = (0.0 if result.score is None else result.score.accuracy for result in results[-2:])
    assert after > before
    assert accuracies[-1] == after
    assert accuracies == sorted(accuracies)
    assert accuracies[0] > 0.5
    assert len(down) == 4


def test_joined_networks_that_know_some_classes_each_know_all_of_them_together() -> None:
    fleet = fleet_of(digits(), clients=4, scheme="labels:3", seed=2)
    settings: dict[str, Setting] = {"nets": "0.25 x 4", "learning_rate": 0.1, "exact_head": "ridge"}
    with SimulatedFederation(bundle(), fleet, strategy_of("joined", settings), settings_of(rounds=5)) as made:
        results = list(made.rounds())
        own = [made.score(mask) for mask in made.masks.values()]
        personal = made.personalise()
    kept = [tuple(mask.kept[name].tobytes() for name in mask.kept) for mask in made.masks.values()]
    assert len(set(kept)) == 4, "each has a network of its own"
    averaged, exact = (0.0 if result.score is None else result.score.accuracy for result in results[-2:])
    assert exact > averaged + 0.1
    assert all(one is not None and one.accuracy < exact for one in own), "one network alone, with its own exact head"
    assert min(personal.after.values()) > 0.5


def test_every_device_is_asked_and_the_weak_ones_answer() -> None:
    with federation() as made:
        *training, last = list(made.rounds())
        names = {device.device_id for device in made.fleet}
        weak = {device.device_id for device in made.fleet if device.kind.name == "weak"}
    assert all(len(result.devices) == 2 for result in training)
    assert not weak & {one.device_id for result in training for one in result.devices}
    assert {one.device_id for one in last.devices} == names
    assert all(one.fate is Fate.ARRIVED for one in last.devices)
    assert all(one.trained_fraction == 0 for one in last.devices)
    assert all(one.loss > 0 for one in last.devices), "the loss with the averaged head"


def test_a_device_without_memory_for_the_model_is_left_out() -> None:
    small = replace(WEAK, memory_bytes=10_000)
    fleet = fleet_of(digits(), clients=4, classes=(STRONG, small), seed=1)
    strategy = strategy_of("fedavg", {**FEDAVG, "exact_head": "ridge"})
    with SimulatedFederation(bundle(), fleet, strategy, settings_of(rounds=2)) as made:
        *_, last = list(made.rounds())
    assert len(last.devices) == 2


def test_gradients_after_the_sums_download_the_head_alone() -> None:
    with federation(exact_head="logistic", head_rounds=2) as made:
        _, sums, *gradients = list(made.rounds())
    whole = max(one.down_bytes for one in sums.devices)
    assert all(one.down_bytes < whole / 2 for result in gradients for one in result.devices)
    before, after = (sum(one.loss * (one.samples or 0) for one in result.devices) for result in gradients)
    assert after < before, "on the samples of all devices together"


def test_devices_take_their_shares_of_the_classes() -> None:
    with federation(personal_head="prior") as made:
        list(made.rounds())
        personal = made.personalise()
    assert len(personal.after) == 5
    assert sum(personal.after.values()) > sum(personal.before.values())
    assert all(not one.up_bytes or one.refused is None for one in personal.devices)


def test_noise_is_the_same_for_the_same_request_and_hides_little_of_many_samples() -> None:
    def run() -> tuple[bytes, float]:
        with federation(head_clip=10.0, head_noise=0.01) as made:
            *_, last = list(made.rounds())
            assert last.score is not None
            return made.model.weights["9.weight"].tobytes(), last.score.accuracy

    first, again = run(), run()
    assert first == again
    assert first[1] == pytest.approx(0.85, abs=0.15)

"""What a simulated federation computes, counts and repeats."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from device_runtime.engines import ThreadSettings, open_engine
from edgefl import noise
from edgefl.artifacts.bundle import INFER, TRAIN
from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import WireFormatError
from edgefl.local_rules import TrainingInput, rule_of
from edgefl.local_rules.base_networks import joined_networks
from edgefl.masks import Array, Mask, full_mask, gather, leading_channels
from edgefl.planning import predict
from edgefl.simulation import Fate, FleetDevice, RoundResult, SimulatedFederation
from edgefl.strategies import ClientUpdate, FedAvg, strategy_of
from edgefl.strategies.held_part import held_part
from edgefl.values import ClientPlan, Digest, LocalWork, RuleSettings, loads
from edgefl.wire import decode_mask, decode_result
from tests.device_runtime.federation import bundle
from tests.simulation.fleets import FEDAVG, SEED, WORK, federation, fleet, settings_of, witness


def weights_of(made: SimulatedFederation) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in made.model.weights.items()}


def without_times(result: RoundResult) -> list[object]:
    return [result.score] + [
        (one.device_id, one.kept_fraction, one.down_bytes, one.setup_bytes, one.up_bytes, one.loss, one.own_accuracy)
        for one in result.devices
    ]


def test_the_seed_decides_everything_whatever_the_number_of_workers() -> None:
    found = []
    for workers in (1, 2):
        with federation(workers=workers) as made:
            rounds = [without_times(result) for result in made.rounds()]
            personal = made.personalise()
            found.append((rounds, weights_of(made), personal.before, personal.after))
    assert found[0] == found[1]


def test_another_seed_asks_other_devices_and_ends_elsewhere() -> None:
    asked, ends = [], []
    for seed in (5, 6):
        made = federation(seed=seed, per_round=3)
        asked.append([[one.device_id for one in result.devices] for result in made.rounds()])
        ends.append(weights_of(made))
    assert asked[0] != asked[1]
    assert ends[0] != ends[1]


def test_a_federation_is_what_a_slow_loop_without_plans_bodies_and_workers_gives() -> None:
    made = federation()
    weights: dict[str, Array] = {name: array.copy() for name, array in bundle_weights(bundle()).items()}
    for result in made.rounds():
        parts = {
            loads(ClientPlan, job.plan).device_id: decode_mask(job.mask, bundle().graph) for job, _ in witness().seen
        }
        witness().seen.clear()
        assert sorted(parts) == [one.device_id for one in result.devices]
        weights = slow_round(weights, parts, result.number)
    for name, array in made.model.weights.items():
        np.testing.assert_allclose(array, weights[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_split_mix_is_judged_by_the_mean_of_its_networks() -> None:
    """One by one in numpy order: the whole graph would mix them in its norms."""
    settings = settings_of(rounds=1)
    made = SimulatedFederation(
        bundle(), fleet(), strategy_of("split_mix", {"base_networks": 2}), settings, executor=witness()
    )
    (result,) = made.rounds()
    data = fleet()[0].data.dataset
    x, y = data.batch(np.arange(len(data.test)), "test")
    predictor = open_engine("onnx", ThreadSettings(1)).predictor(bundle().files[INFER])
    graph, half = bundle().graph, {"0": 8, "4": 16}
    logits = []
    for number in range(2):
        kept = {name: range(number * width, (number + 1) * width) for name, width in half.items()}
        logits.append(predictor(gather(Mask.of(graph, kept=kept), made.model.weights), x))
    assert result.score is not None
    assert result.score.accuracy == pytest.approx(np.mean((logits[0] + logits[1]).argmax(axis=1) == y))
    assert result.score.judged_fraction == joined_networks(graph, [0, 1], 2).cost.parameters / graph.parameters < 1
    one = Mask.of(graph, kept={name: range(width) for name, width in half.items()})
    both = [device for device in result.devices if device.kept_fraction > 1.5 * one.cost.parameters / graph.parameters]
    assert both
    for device in both:
        profile = next(found.profile for found in fleet() if found.device_id == device.device_id)
        assert device.peak_bytes == profile.cost.peak_bytes(
            activation_bytes=one.cost.activation_bytes(WORK.batch_size),
            parameter_bytes=full_mask(graph).cost.parameter_bytes + one.cost.parameter_bytes,
            trained_parameters=full_mask(graph).cost.trained_parameters,
        )
    share = one.cost.parameters / graph.parameters
    mask, score = made.extracted(share)
    assert mask.digest == one.digest
    assert score is not None
    assert score.accuracy == pytest.approx(np.mean(logits[0].argmax(axis=1) == y))


def slow_round(weights: Mapping[str, Array], parts: Mapping[str, Mask], number: int) -> dict[str, Array]:
    """Train every device's part by hand, and average each coordinate over those that have it."""
    sums = {name: np.zeros(array.shape) for name, array in weights.items()}
    counts = {name: np.zeros(array.shape) for name, array in weights.items()}
    for device in fleet():
        if device.device_id in parts:
            mask = parts[device.device_id]
            for name, array in slow_training(device, mask, gather(mask, weights), number).items():
                where = np.ix_(
                    *(np.arange(n)[s] for n, s in zip(weights[name].shape, mask.selectors[name], strict=True))
                )
                sums[name][where] += device.data.samples * array.astype(np.float64)
                counts[name][where] += device.data.samples
    means = {name: np.where(n > 0, sums[name] / np.maximum(n, 1), weights[name]) for name, n in counts.items()}
    return {
        name: (np.rint(means[name]) if array.dtype.kind == "i" else means[name]).astype(array.dtype)
        for name, array in weights.items()
    }


def slow_training(device: FleetDevice, mask: Mask, weights: dict[str, Array], number: int) -> Mapping[str, Array]:
    seed = noise.derive(SEED, "task", number, device.device_id)
    rule = rule_of(RuleSettings(name="sgd", settings=FEDAVG))
    step = open_engine("onnx", ThreadSettings(1)).train_step(cut_training_graph(bundle().files[TRAIN], mask), mask)
    part = TrainingInput(mask, weights, seed)
    state = rule.begin(part)
    for batch in device.data.epoch(seed, 0, WORK.batch_size):
        rule.step(part, state, batch, step)
    return state.weights


def test_bytes_are_counted_as_they_would_be_sent() -> None:
    made = federation(rounds=1)
    (result,) = made.rounds()
    for one, (job, outcome) in zip(result.devices, witness().seen, strict=True):
        assert outcome.body is not None
        assert one.up_bytes == len(outcome.body)
        assert one.down_bytes == len(job.plan) + len(job.mask) + len(job.weights)
        assert one.setup_bytes > len(bundle().files[INFER])
        report = decode_result(outcome.body, bundle().graph)
        assert report.result.telemetry.transfer.down_bytes == one.down_bytes + one.setup_bytes


def test_what_a_device_has_is_not_sent_again() -> None:
    made = federation(per_round=6)
    first, second = made.rounds()
    jobs = dict(zip([one.device_id for one in second.devices], witness().seen[6:], strict=True))
    same: dict[str, Digest] = {}
    for number, (job, _) in enumerate(witness().seen):
        plan = loads(ClientPlan, job.plan)
        if number < 6:
            same[plan.device_id] = plan.mask
    unchanged = [
        one for one in second.devices if loads(ClientPlan, jobs[one.device_id][0].plan).mask == same[one.device_id]
    ]
    assert unchanged
    for one in unchanged:
        job = jobs[one.device_id][0]
        assert one.down_bytes == len(job.plan) + len(job.weights)
    assert all(one.setup_bytes == 0 for one in second.devices)
    assert all(one.setup_bytes > 0 for one in first.devices)


def test_devices_with_less_get_smaller_parts() -> None:
    (result,) = federation(rounds=1, per_round=6).rounds()
    for one in result.devices:
        assert one.kept_fraction <= 0.3 if one.device_id.startswith("narrow") else one.kept_fraction == 1
        assert one.predicted_seconds is not None
        assert one.predicted_seconds > 0
    narrow = [one for one in result.devices if one.device_id.startswith("narrow")]
    wide = [one for one in result.devices if one.device_id.startswith("wide")]
    assert max(o.multiply_adds / o.steps for o in narrow) < min(o.multiply_adds / o.steps for o in wide)


def test_nothing_is_assumed_of_the_samples_of_simulated_devices() -> None:
    """With the assumption, nobody would have time for the first round."""
    ends = []
    for assumed in (1, 10**9):
        with federation(FEDAVG | {"assumed_samples": assumed}) as made:
            results = list(made.rounds())
            ends.append({name: array.tobytes() for name, array in made.model.weights.items()})
        assert [len(result.devices) for result in results] == [4, 4]
    assert ends[0] == ends[1]


def test_devices_are_judged_by_their_own_samples_before_and_after_tuning() -> None:
    made = federation(FEDAVG | {"fine_tune_epochs": 3}, rounds=3, per_round=6)
    list(made.rounds())
    personal = made.personalise()
    predict = open_engine("onnx", ThreadSettings(1)).predictor(bundle().files[INFER])
    for device in fleet():
        x, y = device.data.dataset.batch(device.test, device.test_part)
        mask = made._states[device.device_id].mask
        assert mask is not None
        right = predict(gather(mask, made.model.weights), x).argmax(axis=1) == y
        assert personal.before[device.device_id] == pytest.approx(right.mean())
    assert personal.mean_before is not None
    assert personal.mean_after is not None
    assert personal.mean_after > personal.mean_before
    assert all(len(one.device_id) and one.up_bytes < 5000 for one in personal.devices), "tuning sends no weights"


def test_without_tuning_a_device_has_what_it_trained_last_or_the_global_model() -> None:
    made = federation(rounds=1)
    (result,) = made.rounds()
    personal = made.personalise()
    assert not personal.devices
    trained = {one.device_id: one.own_accuracy for one in result.devices}
    assert personal.after == dict(personal.before) | trained
    assert len(personal.after) == 6


def test_a_device_that_learns_a_mask_counts_by_its_capacity_and_keeps_what_it_has() -> None:
    fedmap = strategy_of("fedmap", {"granularity": "channel", "mask_rounds": 1, "weight_rounds": 1})
    settings = settings_of(rounds=3, per_round=6)
    made = SimulatedFederation(bundle(), fleet(), fedmap, settings, executor=witness())
    rounds, had = [], []
    for result in made.rounds():
        rounds.append(result)
        had.append({device: mask.digest for device, mask in made.masks.items()})
    personal = made.personalise()
    assert had[0] == {}
    assert had[1] == had[2]
    for result in rounds:
        by_name = {one.device_id: one for one in result.devices}
        narrow, wide = by_name["narrow-1"], by_name["wide-0"]
        assert narrow.kept_fraction <= 0.25 < wide.kept_fraction == 1
        assert narrow.trained_fraction <= 0.25
        assert narrow.multiply_adds / narrow.steps < wide.multiply_adds / wide.steps
        assert (narrow.own_accuracy is None) == (result.number != 1)
    assert personal.kept_fraction["narrow-1"] <= 0.25
    trained = {one.device_id: one.own_accuracy for one in rounds[1].devices}
    assert personal.after == trained


def test_an_update_that_a_coordinator_refuses_ends_no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight beyond every bound may come from a device whose loss is still finite."""
    plain, seen = FedAvg.check, list[str]()

    def check(self: FedAvg, update: ClientUpdate) -> None:
        seen.append(update.device_id)
        if len(seen) == 2:
            raise WireFormatError("it holds a number beyond 1e+18", fix="Lower the learning rate.")
        plain(self, update)

    monkeypatch.setattr(FedAvg, "check", check)
    first, second = list(federation(rounds=2).rounds())
    fates = {one.device_id: one.fate for one in first.devices}
    assert [device for device, fate in fates.items() if fate is Fate.REFUSED] == [seen[1]]
    (refused,) = (one.refused for one in first.devices if one.refused is not None)
    assert "beyond 1e+18" in refused
    assert all(one.fate is Fate.ARRIVED for one in second.devices)


def test_a_device_that_diverges_refuses_and_changes_nothing() -> None:
    made = federation({"learning_rate": 1e30}, rounds=1)
    before = weights_of(made)
    (result,) = made.rounds()
    assert all(one.refused is not None and "diverged" in one.refused and one.up_bytes == 0 for one in result.devices)
    assert weights_of(made) == before


def test_the_model_is_evaluated_as_often_as_asked_and_in_the_end() -> None:
    results = list(federation(rounds=3, evaluate_every=2).rounds())
    assert [result.score is not None for result in results] == [False, True, True]
    assert results[-1].score is not None
    assert results[-1].score.samples == 355
    assert 0 < results[-1].score.accuracy < 1


def test_a_width_for_all_is_judged_at_this_width() -> None:
    half = leading_channels(bundle().graph, 0.5)
    settings = settings_of(rounds=2, per_round=6)
    with SimulatedFederation(bundle(), fleet(), strategy_of("heterofl", {**FEDAVG, "levels": "0.5"}), settings) as made:
        results = list(made.rounds())
        assert held_part(made.model).digest == half.digest
        score = made.score(half)
        assert made.score(full_mask(bundle().graph)) != score
    assert results[-1].score == score
    assert score is not None
    assert score.judged_fraction == half.cost.parameters / bundle().graph.parameters


def test_a_wide_device_among_narrow_ones_makes_its_channels_judged() -> None:
    made = federation(rounds=1, per_round=6)
    (result,) = made.rounds()
    assert {one.kept_fraction < 1 for one in result.devices} == {True, False}
    assert result.score is not None
    assert result.score.judged_fraction == 1


def test_where_nothing_is_averaged_the_whole_model_is_judged() -> None:
    strategy = strategy_of("local", {**FEDAVG, "levels": "0.5", "width": "levels"})
    with SimulatedFederation(bundle(), fleet(), strategy, settings_of(rounds=1)) as made:
        (result,) = made.rounds()
    assert result.score is not None
    assert result.score.judged_fraction == 1


def test_a_submodel_of_any_size_can_be_taken_out_and_judged() -> None:
    made = federation(rounds=1)
    list(made.rounds())
    mask, score = made.extracted(0.5)
    assert mask.cost.parameters <= 0.5 * bundle().graph.parameters
    assert score is not None
    assert score.samples == 355


def test_a_device_that_makes_fewer_passes_than_asked_says_so() -> None:
    tired = replace(fleet()[0], kind=replace(fleet()[0].kind, most_epochs=1))
    settings = settings_of(seed=0, rounds=1, per_round=6, work=LocalWork(epochs=3, batch_size=32))
    strategy = strategy_of("fedavg", FEDAVG)
    with SimulatedFederation(bundle(), (tired, *fleet()[1:]), strategy, settings) as made:
        (result,) = made.rounds()
    for one, device in zip(result.devices, sorted(fleet(), key=lambda device: device.device_id), strict=True):
        epochs = 1 if device.device_id == tired.device_id else 3
        assert one.steps == epochs * device.data.steps(32)


def test_a_federation_may_start_from_other_weights_than_the_bundles() -> None:
    zeros = {name: np.zeros_like(array) for name, array in bundle_weights(bundle()).items()}
    with SimulatedFederation(bundle(), fleet(), strategy_of("local", {}), settings_of(), weights=zeros) as made:
        assert all(not array.any() for array in made.model.weights.values())


def test_devices_that_keep_a_model_of_their_own_go_on_with_it() -> None:
    settings = settings_of(seed=0, rounds=6, per_round=6, work=LocalWork(epochs=1, batch_size=16))
    losses = {}
    for workers in (1, 2):
        strategy = strategy_of("local", {"learning_rate": 0.1})
        with SimulatedFederation(bundle(), fleet(), strategy, settings, workers=workers) as made:
            losses[workers] = [[one.loss for one in result.devices] for result in made.rounds()]
            assert made.personalise().mean_after != made.personalise().mean_before
    assert losses[1] == losses[2]
    assert np.mean(losses[1][-1]) < 0.6 * np.mean(losses[1][0]), "every round would start afresh"


@pytest.mark.parametrize(("strategy", "runs", "per"), [("fedavg", 1, 1), ("ditto", 2, 1), ("per_fedavg", 4, 3)])
def test_a_device_is_charged_for_every_run_of_its_engine(strategy: str, runs: int, per: int) -> None:
    """An update of Per-FedAvg takes three steps and four runs, and one that the round ends within is completed."""
    with SimulatedFederation(bundle(), fleet(), strategy_of(strategy, {}), settings_of(rounds=1, per_round=6)) as made:
        (result,) = made.rounds()
    cost = full_mask(bundle().graph).cost
    whole = [one for one in result.devices if one.kept_fraction == 1]
    assert any(one.steps % 3 for one in whole)
    for one in whole:
        engine_runs = math.ceil(one.steps / per) * runs
        of_one = cost.forward_multiply_adds + cost.backward_multiply_adds
        seen = min(one.steps * WORK.batch_size, one.samples)
        assert one.multiply_adds == engine_runs * seen * of_one // one.steps
        profile = next(device.profile for device in fleet() if device.device_id == one.device_id)
        use = predict(profile, cost, batch=WORK.batch_size, steps=engine_runs)
        assert one.simulated_seconds == pytest.approx(use.round_seconds)


def test_dittos_own_models_go_on_from_round_to_round() -> None:
    """Without a pull they are what devices that train alone have, if the coordinator plans the same work for both."""
    found = []
    for strategy in (strategy_of("local", FEDAVG), strategy_of("ditto", FEDAVG | {"pull": 0.0})):
        settings = settings_of(rounds=3, per_round=6)
        with SimulatedFederation(bundle(), fleet(), strategy, settings) as made:
            found.append([[one.own_accuracy for one in result.devices] for result in made.rounds()])
    assert found[0] == found[1]
    assert found[0][0] != found[0][2]

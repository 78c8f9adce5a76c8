"""A task on a device: trained by its rule, evaluated, reported; the same after a crash as without one."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_runtime.checkpoint import TrainingProgress, load_checkpoint, save_checkpoint
from device_runtime.refusal import RefusalError
from device_runtime.trainer import FinishedTask, StoppedError
from edgefl.artifacts.bundle import TRAIN
from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.submodel import bundle_weights
from edgefl.local_rules import State, rule_of
from edgefl.masks import freeze, full_mask, gather, leading_channels, random_channels
from edgefl.values import LocalWork, Reason, RuleSettings
from edgefl.wire import Counts, Dense, decode_result
from tests.device_runtime.federation import bundle, local_data, task_of, trainer


def test_training_lowers_the_loss_and_reports_what_it_cost(tmp_path: Path) -> None:
    first = trainer(tmp_path / "a").run(task_of(work=LocalWork(epochs=1, batch_size=32))).result
    long = trainer(tmp_path / "b").run(task_of(work=LocalWork(epochs=6, batch_size=32))).result
    assert long.loss < 0.3 * first.loss
    assert long.accuracy is not None
    assert long.accuracy > 0.85
    assert long.steps == 6 * 12  # 360 of 400 samples in batches of 32, the last of 8
    assert long.samples == 360
    assert long.telemetry.latency.steps_measured == 6 * 12 - 1  # the first stays apart
    # A process that has freed much before may train in that: then its peak is its baseline.
    assert long.telemetry.memory.peak_bytes >= long.telemetry.memory.baseline_bytes > 0
    assert long.telemetry.transfer.down_bytes == 1000
    assert long.telemetry.energy is not None


def test_the_report_holds_the_new_weights_of_what_the_mask_trains(tmp_path: Path) -> None:
    graph = bundle().graph
    mask = freeze(random_channels(graph, 0.5, np.random.default_rng(1)), [graph.trainable_layers[0]])
    finished = trainer(tmp_path).run(task_of(mask))
    report = decode_result(finished.body, graph)
    assert report.mask == mask.digest
    assert report.next_mask is None
    assert set(report.tensors) == set(mask.trained_tensors)
    before = gather(mask, bundle_weights(bundle()))
    for name in mask.graph.tensor:
        changed = not np.array_equal(finished.weights[name], before[name])
        assert changed == (name in mask.trained_tensors), name
    for name, payload in report.tensors.items():
        assert isinstance(payload, Dense)
        assert np.array_equal(payload.array, finished.weights[name])


class CrashError(Exception):
    """The battery fell out."""


def crashing(step: int) -> Any:
    def progress(done: int, steps: int, loss: float) -> None:
        if done == step:
            raise CrashError

    return progress


def noting(steps: list[int]) -> Any:
    def progress(done: int, total: int, loss: float) -> None:
        steps.append(done)

    return progress


def tensors_of(finished: FinishedTask) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in finished.weights.items()}


def sums_of(finished: FinishedTask) -> dict[str, bytes]:
    tensors = decode_result(finished.body, bundle().graph).tensors
    return {name: payload.array.tobytes() for name, payload in tensors.items() if isinstance(payload, Dense)}


RULES = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
    "masked_noise": {"learning_rate": 0.1},
    "channel_pruning": {"learning_rate": 0.05, "accuracy_threshold": 0.0},
    "prune_regrow": {"learning_rate": 0.05},
    "compressed_sgd": {"learning_rate": 0.1},
    "fine_tune": {"learning_rate": 0.05},
    "local_training": {"learning_rate": 0.05, "momentum": 0.9},
    "ditto": {"learning_rate": 0.05, "momentum": 0.9, "pull": 0.3},
    "magnitude_pruning": {"learning_rate": 0.05, "kept": 0.2},
    "base_networks": {"learning_rate": 0.05, "momentum": 0.9, "networks": 4},
    "shared_layers": {"learning_rate": 0.05, "momentum": 0.9},
    "maml": {"learning_rate": 0.05, "momentum": 0.9},
    "weight_pruning": {"learning_rate": 0.05, "accuracy_threshold": 0.0, "distance": 0.0},
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("crash_at", [5, 13, 30])
def test_a_crash_changes_nothing(name: str, crash_at: int, tmp_path: Path) -> None:
    rule = RuleSettings(name=name, settings=RULES[name])
    task = task_of(rule=rule, work=LocalWork(epochs=3, batch_size=32))
    expected = trainer(tmp_path / "calm").run(task)
    with pytest.raises(CrashError):
        trainer(tmp_path / "rough", progress=crashing(crash_at)).run(task)
    steps: list[int] = []
    found = trainer(tmp_path / "rough", progress=noting(steps)).run(task)
    assert tensors_of(found) == tensors_of(expected)
    assert found.result.loss == expected.result.loss
    assert found.result.steps == expected.result.steps == 36
    assert found.result.telemetry.latency.steps_measured == 35
    assert steps[0] == crash_at  # what was saved before the crash is not trained again


@pytest.mark.parametrize("name", ["feature_sums", "head_gradients"])
def test_every_sample_counts_once_whatever_crashes(name: str, tmp_path: Path) -> None:
    rule = RuleSettings(name=name, settings={"clip": 5.0, "noise": 0.5})
    task = task_of(
        freeze(full_mask(bundle().graph), bundle().graph.trainable_layers), rule=rule, work=LocalWork(batch_size=37)
    )
    expected = trainer(tmp_path / "calm", secret=lambda: 3).run(task)
    with pytest.raises(CrashError):
        trainer(tmp_path / "rough", secret=lambda: 4, progress=crashing(5)).run(task)
    found = trainer(tmp_path / "rough", secret=lambda: 3, progress=noting([])).run(task)
    other = trainer(tmp_path / "other", secret=lambda: 4).run(task)
    assert sums_of(found) == sums_of(other), "noise that was drawn stays"
    assert sums_of(found) != sums_of(expected)
    assert found.result.steps == 10  # 360 samples in batches of 37, the last of 27
    assert found.result.accuracy is None
    assert found.mask.digest == task.mask.digest


def test_a_last_batch_of_one_sample_is_summed_too(tmp_path: Path) -> None:
    mask = freeze(full_mask(bundle().graph), bundle().graph.trainable_layers)
    rule = RuleSettings(name="feature_sums")
    whole, apart = (
        trainer(tmp_path / str(size)).run(task_of(mask, rule=rule, work=LocalWork(batch_size=size)))
        for size in (359, 36)
    )
    assert sums_of(whole)["sums/squares"] == sums_of(apart)["sums/squares"]
    assert np.frombuffer(sums_of(whole)["sums/squares"]).sum() == 360


def test_a_personal_head_is_kept_on_the_device(tmp_path: Path) -> None:
    mask = freeze(full_mask(bundle().graph), bundle().graph.trainable_layers)
    task = task_of(mask, rule=RuleSettings(name="class_prior"), work=LocalWork(batch_size=64))
    task = replace(task, extras={"shares": np.full(10, 0.1, np.float32)})
    finished = trainer(tmp_path).run(task)
    assert finished.result.accuracy is not None
    assert decode_result(finished.body, bundle().graph).tensors == {}
    changed = {name for name in task.weights if not np.array_equal(finished.weights[name], task.weights[name])}
    assert changed == {"9.bias"}


def test_a_crash_between_the_last_epoch_and_the_report_costs_no_training(tmp_path: Path) -> None:
    task = task_of()
    expected = trainer(tmp_path).run(task)
    steps: list[int] = []
    again = trainer(tmp_path, progress=noting(steps)).run(task)
    assert steps == []
    assert tensors_of(again) == tensors_of(expected)
    assert again.result.telemetry.latency.steps_measured == 23


def test_a_damaged_checkpoint_or_one_of_another_task_is_not_used(tmp_path: Path) -> None:
    task = task_of()
    expected = trainer(tmp_path / "calm").run(task)
    with pytest.raises(CrashError):
        trainer(tmp_path / "rough", progress=crashing(20)).run(task)
    (checkpoint,) = (tmp_path / "rough").iterdir()
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 2] ^= 1
    checkpoint.write_bytes(content)
    steps: list[int] = []
    found = trainer(tmp_path / "rough", progress=noting(steps)).run(task)
    assert tensors_of(found) == tensors_of(expected)
    assert steps[0] == 1
    checkpoint.rename(tmp_path / "rough" / "task-2.checkpoint.safetensors")
    steps.clear()
    trainer(tmp_path / "rough", progress=noting(steps)).run(task_of(task_id="task-2", seed=12))
    assert steps[0] == 1


def test_a_finished_task_can_be_forgotten(tmp_path: Path) -> None:
    work = trainer(tmp_path)
    work.run(task_of())
    assert len(list(tmp_path.iterdir())) == 1
    work.forget("task-1")
    assert not list(tmp_path.iterdir())


def test_training_stops_at_the_next_step_when_asked(tmp_path: Path) -> None:
    stop = threading.Event()
    steps: list[int] = []

    def progress(done: int, total: int, loss: float) -> None:
        steps.append(done)
        if done == 14:
            stop.set()

    with pytest.raises(StoppedError):
        trainer(tmp_path, progress=progress).run(task_of(), stop)
    assert steps[-1] == 14
    trainer(tmp_path, progress=noting(steps)).run(task_of())
    assert steps[14] == 15  # it was saved when it was stopped


def test_a_round_has_no_more_steps_than_the_plan_allows(tmp_path: Path) -> None:
    finished = trainer(tmp_path).run(task_of(work=LocalWork(epochs=5, batch_size=32, most_steps=15)))
    assert finished.result.steps == 15


def test_a_limit_on_steps_ends_the_round_in_whichever_epoch_it_is_reached(tmp_path: Path) -> None:
    finished = trainer(tmp_path).run(task_of(work=LocalWork(epochs=10**9, batch_size=64, most_steps=1)))
    assert finished.result.steps == 1
    assert finished.result.loss > 1


def test_a_checkpoint_holds_the_times_of_any_number_of_steps(tmp_path: Path) -> None:
    state = State(full_mask(bundle().graph), {"w": np.ones(3, np.float32)}, {}, 50_000)
    times = tuple(0.001 * number for number in range(50_000))
    save_checkpoint(tmp_path / "c", TrainingProgress("task", 2, 0.5, times), state)
    found = load_checkpoint(tmp_path / "c", "task", bundle().graph)
    assert found is not None
    assert found[0] == TrainingProgress("task", 2, 0.5, times)
    assert found[1].steps == 50_000


def test_training_that_diverges_is_refused_with_a_reason(tmp_path: Path) -> None:
    rule = RuleSettings(name="sgd", settings={"learning_rate": 1e30})
    with pytest.raises(RefusalError) as caught:
        trainer(tmp_path).run(task_of(rule=rule))
    assert caught.value.reason is Reason.DIVERGED
    assert "learning rate" in caught.value.fix


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rule": RuleSettings(name="alchemy")}, "unknown local rule 'alchemy'"),
        ({"rule": RuleSettings(name="sgd", settings={"learning_rat": 0.1})}, "learning_rat"),
    ],
)
def test_a_plan_that_this_device_cannot_follow_is_refused(changes: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises(RefusalError, match=problem) as caught:
        trainer(tmp_path).run(task_of(**changes))
    assert caught.value.reason is Reason.UNSUPPORTED


def test_a_whole_graph_gives_the_bits_of_a_cut_one(tmp_path: Path) -> None:
    mask = freeze(leading_channels(bundle().graph, 0.5), bundle().graph.trainable_layers[:2])
    cut = task_of(mask)
    whole = replace(cut, graph=bundle().files[TRAIN])
    assert len(whole.graph) > len(cut.graph)
    found, expected = trainer(tmp_path / "a").run(whole), trainer(tmp_path / "b").run(cut)
    assert tensors_of(found) == tensors_of(expected)


@pytest.mark.parametrize("head", ["freeze", "head_only"])
def test_a_graph_that_returns_more_than_is_trained_gives_the_same_bits(head: str, tmp_path: Path) -> None:
    """Coordinators used to send graphs with statistics of frozen layers, and to cut none for fine-tuning."""
    rule, mask = RuleSettings(name="fine_tune", settings={"head": head}), full_mask(bundle().graph)
    exact = cut_training_graph(bundle().files[TRAIN], rule_of(rule).trains(mask))
    task = task_of(mask, rule=rule)
    graphs = (exact, task.graph)
    assert len(graphs[0]) < len(graphs[1])
    one, other = (
        trainer(tmp_path / str(place)).run(replace(task, graph=graph)).weights for place, graph in enumerate(graphs)
    )
    assert all(np.array_equal(one[name], other[name]) for name in one)
    moved = {name for name in one if not np.array_equal(one[name], task.weights[name])}
    assert moved == set(rule_of(rule).trains(mask).trained_tensors)


def test_a_lone_last_sample_is_left_out() -> None:
    data = local_data(400)
    sizes = [len(batch.y) for batch in data.epoch(0, 0, 359)]
    assert sizes == [359]
    assert data.steps(359) == 1
    assert [len(batch.y) for batch in data.epoch(0, 0, 100)] == [100, 100, 100, 60]
    seen = np.concatenate([batch.x.reshape(len(batch.y), -1) for batch in data.epoch(3, 1, 100)])
    again = np.concatenate([batch.x.reshape(len(batch.y), -1) for batch in data.epoch(3, 2, 100)])
    assert not np.array_equal(seen, again)
    assert np.array_equal(np.sort(seen.sum(1)), np.sort(again.sum(1)))


def test_loading_a_graph_leaves_the_smallest_numbers_to_everybody_else(tmp_path: Path) -> None:
    smallest = np.float32(1e-40)
    assert smallest * np.float32(0.5) > 0
    trainer(tmp_path).run(task_of())
    assert smallest * np.float32(0.5) > 0


ONE = LocalWork(epochs=1, batch_size=64)


def test_a_device_that_trains_alone_goes_on_with_its_own_model_and_sends_nothing(tmp_path: Path) -> None:
    rule = RuleSettings(name="local_training", settings={"learning_rate": 0.1})
    first = trainer(tmp_path / "a").run(task_of(rule=rule, work=ONE))
    assert decode_result(first.body, bundle().graph).tensors == {}
    second = task_of(rule=rule, work=ONE, task_id="task-2", seed=12)
    alone = trainer(tmp_path / "a").run(replace(second, own=lambda: first.weights))
    plain = RuleSettings(name="sgd", settings={"learning_rate": 0.1})
    onwards = replace(task_of(rule=plain, work=ONE, task_id="task-2", seed=12), weights=first.weights)
    assert tensors_of(alone) == tensors_of(trainer(tmp_path / "b").run(onwards))
    assert tensors_of(alone) != tensors_of(trainer(tmp_path / "c").run(second))


def test_dittos_own_model_lasts_from_task_to_task_and_the_global_one_is_sent(tmp_path: Path) -> None:
    rule = RuleSettings(name="ditto", settings={"learning_rate": 0.1, "pull": 0.0})
    plain = RuleSettings(name="sgd", settings={"learning_rate": 0.1})
    first = trainer(tmp_path / "a").run(task_of(rule=rule, work=ONE))
    second = replace(task_of(rule=rule, work=ONE, task_id="task-2", seed=12), own=lambda: first.weights)
    with pytest.raises(CrashError):
        trainer(tmp_path / "a", progress=crashing(3)).run(second)
    found = trainer(tmp_path / "a").run(second)
    # Without a pull, v goes on as plain descent from where it was; w starts from the model as it was sent.
    sent = trainer(tmp_path / "b").run(task_of(rule=plain, work=ONE, task_id="task-2", seed=12))
    onwards = replace(task_of(rule=plain, work=ONE, task_id="task-2", seed=12), weights=first.weights)
    assert tensors_of(found) == tensors_of(trainer(tmp_path / "c").run(onwards))
    uploads = [decode_result(finished.body, bundle().graph).tensors for finished in (found, sent)]
    assert uploads[0].keys() == uploads[1].keys()
    for name, payload in uploads[0].items():
        other = uploads[1][name]
        assert isinstance(payload, Dense)
        assert isinstance(other, Dense)
        assert np.array_equal(payload.array, other.array)
    assert found.result.steps == sent.result.steps
    assert found.result.loss == sent.result.loss


@pytest.mark.parametrize(
    ("granularity", "names"), [("weight", ["0.weight", "4.weight", "9.weight"]), ("channel", ["0", "4"])]
)
def test_masks_are_learned_with_a_real_engine_and_a_crash_changes_nothing(
    granularity: str, names: list[str], tmp_path: Path
) -> None:
    graph = bundle().graph
    shapes = {**{tensor.name: tensor.shape for tensor in graph.tensors}, **{g.name: (g.width,) for g in graph.groups}}
    extras = {f"p/{name}": np.full(shapes[name], 0.5, np.float32) for name in names}
    said: dict[str, Any] = {"granularity": granularity, "capacity": 0.3, "learning_rate": 10.0}
    rule = RuleSettings(name="probabilistic_masks", settings=said)
    task = replace(task_of(rule=rule), extras=extras)
    expected = trainer(tmp_path / "calm").run(task)
    with pytest.raises(CrashError):
        trainer(tmp_path / "rough", progress=crashing(15)).run(task)
    found = trainer(tmp_path / "rough").run(task)
    drawn, same = (decode_result(finished.body, graph).tensors for finished in (expected, found))
    assert set(drawn) == {f"m/{name}" for name in names}
    for name, payload in drawn.items():
        other = same[name]
        assert isinstance(payload, Counts)
        assert isinstance(other, Counts)
        assert np.array_equal(payload.to_array(), other.to_array())
    assert np.ptp(np.concatenate([p.to_array().ravel() for p in drawn.values() if isinstance(p, Counts)])) > 0

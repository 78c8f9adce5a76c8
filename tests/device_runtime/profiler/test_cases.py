"""Which cases are measured, and how their time is."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from device_runtime.engines import Engine, ThreadSettings, open_engine
from device_runtime.profiler.case_selection import cases_of, fitting_batch, programs_of
from device_runtime.profiler.cases import Case, Sample, Trial, load_step
from device_runtime.profiler.step_timing import (
    CROWDED,
    FEWEST_TURNS,
    CaseTimes,
    TimingResult,
    time_cases,
    waited_seconds,
)
from edgefl.artifacts.bundle import TRAIN
from edgefl.artifacts.cut import cut_training_graph
from edgefl.local_rules import Batch, StepResult
from edgefl.masks import Mask, Weights
from tests.device_runtime.federation import bundle


@pytest.fixture
def engine() -> Engine:
    return open_engine("onnx", ThreadSettings(1))


@pytest.fixture
def cases() -> list[Case]:
    return cases_of(bundle(), programs_of(bundle()), 8)


class Ticking:
    """A clock that moves by so many seconds whenever it is looked at."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def test_cases_cover_widths_cuts_and_two_batch_sizes(cases: list[Case]) -> None:
    every = frozenset(bundle().graph.trainable_layers)
    assert {case.batch for case in cases} == {8, 2}
    cuts = {case.mask.trained for case in cases}
    assert every in cuts
    assert any(0 < len(cut) < len(every) for cut in cuts)
    assert len({case.program for case in cases}) == len(cuts)
    for cut in cuts:
        widths = {case.cost.parameters for case in cases if case.mask.trained == cut}
        assert len(widths) >= 3
        assert bundle().graph.parameters in widths


def test_without_onnx_the_whole_graph_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnx" else find_spec(name))
    programs = programs_of(bundle())
    assert list(programs) == [tuple(bundle().graph.trainable_layers)]
    assert programs[tuple(bundle().graph.trainable_layers)].data == bundle().files[TRAIN]


def test_a_cut_graph_is_smaller_than_the_whole() -> None:
    last = Mask.of(bundle().graph, trained=bundle().graph.trainable_layers[-1:])
    assert len(cut_training_graph(bundle().files[TRAIN], last)) < len(bundle().files[TRAIN])


def test_the_batch_shrinks_until_a_step_is_short_enough(engine: Engine) -> None:
    programs = programs_of(bundle())
    assert fitting_batch(engine, bundle(), programs, seconds=60.0) == 32
    assert fitting_batch(engine, bundle(), programs, seconds=1e-9) == 4


def test_a_trial_trains_what_the_mask_trains(engine: Engine, cases: list[Case]) -> None:
    case = min(cases, key=lambda case: len(case.mask.trained))
    step = load_step(engine, case)
    seen: list[dict[str, float]] = []

    def watching(weights: Weights, batch: Batch) -> StepResult:
        seen.append({name: float(np.abs(array).sum()) for name, array in weights.items()})
        return step(weights, batch)

    Trial(case, watching).run(2)
    assert len(seen) == 2
    changed = {name for name in seen[0] if seen[0][name] != seen[1][name]}
    assert changed
    assert changed <= set(case.mask.trained_tensors)


@pytest.mark.parametrize(
    ("sample", "x", "y"),
    [
        (Sample((3, 4), "float32", 5), np.float32, np.int64),
        (Sample((7,), "int64", 5), np.int64, np.int64),
        (Sample((7,), "float32", 5, "mean_squared_error"), np.float32, np.float32),
    ],
)
def test_made_up_batches_are_what_the_model_takes(sample: Sample, x: type, y: type) -> None:
    batch = sample.batch(6)
    assert batch.x.shape == (6, *sample.shape)
    assert (batch.x.dtype, batch.y.dtype) == (np.dtype(x), np.dtype(y))
    assert batch.y.max() < sample.outputs


def test_a_loss_that_masks_labels_is_told_that_all_are_here() -> None:
    assert Sample((3,), "float32", 5).labels is None
    labels = Sample((3,), "float32", 5, "masked_cross_entropy").labels
    assert labels is not None
    assert labels.tolist() == [1.0] * 5


def test_every_case_has_the_same_number_of_turns(engine: Engine, cases: list[Case]) -> None:
    timing = time_cases(engine, cases, seconds=1e6, clock=Ticking(0.001))
    assert [one.case for one in timing.timed] == sorted(cases, key=lambda case: case.multiply_adds)
    assert len({len(one.visits) for one in timing.timed}) == 1
    assert len(timing.timed[0].visits) >= FEWEST_TURNS
    assert set(timing.seconds) == set(cases)
    assert all(seconds > 0 for seconds in timing.seconds.values())


def test_what_the_time_does_not_allow_is_left_out_from_the_largest(engine: Engine, cases: list[Case]) -> None:
    timing = time_cases(engine, cases, seconds=120.0, clock=Ticking(1.0))
    smallest = sorted(cases, key=lambda case: case.multiply_adds)
    assert 0 < len(timing.timed) < len(cases)
    assert [one.case for one in timing.timed] == smallest[: len(timing.timed)]
    assert all(len(one.visits) >= FEWEST_TURNS for one in timing.timed)


def test_steady_steps_end_early_and_unsteady_ones_do_not(engine: Engine, cases: list[Case]) -> None:
    class Unsteady(Ticking):
        def __call__(self) -> float:
            self.seconds = (self.seconds * 7) % 0.013 + 0.0001
            return super().__call__()

    few = cases[:3]
    steady = time_cases(engine, few, seconds=1e6, clock=Ticking(0.001))
    unsteady = time_cases(engine, few, seconds=1e6, clock=Unsteady(0.001))
    assert len(steady.timed[0].visits) < len(unsteady.timed[0].visits)


def test_the_median_counts_on_a_quiet_machine_and_the_fastest_on_a_crowded_one(cases: list[Case]) -> None:
    timed = CaseTimes(cases[0], [[0.3, 0.1], [0.2]])
    assert TimingResult([timed], waiting=0.0).seconds == {cases[0]: 0.2}
    assert TimingResult([timed], waiting=CROWDED + 0.01).seconds == {cases[0]: 0.1}


def test_waiting_for_a_processor_is_read_from_the_kernel(tmp_path: Path) -> None:
    assert waited_seconds(tmp_path) == 0.0
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/schedstat").write_text("757 2500000000 12\n")
    assert waited_seconds(tmp_path) == 2.5
    (tmp_path / "proc/self/schedstat").write_text("nonsense\n")
    assert waited_seconds(tmp_path) == 0.0

"""Memory of steps, in processes of their own and, where that cannot be, in this one."""

import sys
from pathlib import Path

import pytest

from device_runtime.engines import ThreadSettings
from device_runtime.profiler.case_selection import cases_of, programs_of
from device_runtime.profiler.cases import Case, CaseProgram
from device_runtime.profiler.memory import most_different_cases, peak_in_fresh_process, peaks_of
from device_runtime.profiler.memory_probe import read_case, write_case
from tests.device_runtime.federation import bundle

ONE = ThreadSettings(1)


@pytest.fixture
def cases() -> list[Case]:
    return cases_of(bundle(), programs_of(bundle()), 32)


def test_a_case_survives_the_way_to_another_process(cases: list[Case], tmp_path: Path) -> None:
    case = cases[-1]
    write_case(tmp_path, case, "onnx", ThreadSettings(2, spinning=True))
    again, engine = read_case(tmp_path)
    assert again.mask.digest == case.mask.digest
    assert (again.batch, again.program.data, again.program.sample) == (
        case.batch,
        case.program.data,
        case.program.sample,
    )
    assert engine.name.startswith("onnxruntime")


def test_a_larger_step_has_a_higher_peak(cases: list[Case]) -> None:
    whole = max(cases, key=lambda case: case.likely_bytes)
    large = Case(whole.program, whole.mask, 512)
    small, big = (peak_in_fresh_process(case, "onnx", ONE) for case in (whole, large))
    assert small is not None
    assert big is not None
    grown = large.cost.activation_bytes(512) - whole.cost.activation_bytes(32)
    assert big.peak_bytes - small.peak_bytes > grown
    assert small.source.startswith("Vm")


def test_a_case_whose_process_dies_is_left_out(cases: list[Case]) -> None:
    good = cases[:2]
    broken = Case(CaseProgram("broken", b"no graph", good[0].program.sample), good[0].mask, 1024)
    found = peaks_of([*good, broken], engine="onnx", threads=ONE, seconds=30.0)
    assert found.fresh
    assert set(found.of) == set(good)


def test_without_processes_this_one_measures_itself(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    found = peaks_of(cases[:3], engine="onnx", threads=ONE, seconds=30.0)
    assert not found.fresh
    assert set(found.of) == set(cases[:3])
    assert all(memory.peak_bytes >= memory.baseline_bytes > 0 for memory in found.of.values())


def test_no_time_still_measures_a_few(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert len(peaks_of(cases, engine="onnx", threads=ONE, seconds=1e-9).of) == 4


def test_the_first_cases_are_far_apart(cases: list[Case]) -> None:
    ordered = most_different_cases(cases)
    assert set(ordered) == set(cases)
    first = ordered[:4]
    for size in ("parameter_bytes", "trained_parameters"):
        sizes = [getattr(case.cost, size) for case in first]
        assert max(sizes) == max(getattr(case.cost, size) for case in cases)
        assert min(sizes) < max(sizes) / 4
    activations = [case.cost.activation_bytes(case.batch) for case in first]
    assert min(activations) < max(activations) / 4
    assert most_different_cases([]) == []


def test_an_engine_that_starts_slowly_is_measured_here(cases: list[Case]) -> None:
    found = peaks_of(cases[:3], engine="onnx", threads=ONE, seconds=30.0, fresh=False)
    assert not found.fresh
    assert set(found.of) == set(cases[:3])

"""From measurements to a cost: exact where it can be, never negative, honest about what it has not seen."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from device_runtime.profiler.cost_fit import MEMORY_TERMS, TIME_TERMS, CostSample, fit_cost, fitted, least_squares
from device_runtime.profiler.cost_fit import left_out_errors as errors_of
from edgefl.errors import EdgeFLError
from edgefl.values import to_json
from tests.golden.encoding import FOLDER

FACTORS = (0.001, 2e-10, 3e-10, 1e-9, 5e-9)
MEMORY = (50e6, 2.5, 1.0, 12.0)


def work(generator: np.random.Generator) -> dict[str, int]:
    """A step of some submodel: backward work is anything from a tenth of the forward work to twice that."""
    forward = int(generator.uniform(1e6, 1e9))
    return {
        "forward_multiply_adds": forward,
        "backward_multiply_adds": int(forward * generator.uniform(0.1, 2)),
        "activation_bytes": int(generator.uniform(1e4, 1e7)),
        "parameter_bytes": int(generator.uniform(1e4, 1e7)),
        "trained_parameters": int(generator.uniform(1e3, 1e6)),
    }


def line(terms: tuple[str, ...], factors: tuple[float, ...], step: dict[str, int]) -> float:
    return factors[0] + sum(factor * step[term] for factor, term in zip(factors[1:], terms, strict=True))


def steps(count: int, seed: int = 0) -> list[dict[str, int]]:
    generator = np.random.default_rng(seed)
    return [work(generator) for _ in range(count)]


def test_a_cost_that_is_a_line_is_found_exactly() -> None:
    times = [CostSample(f"mask {i}", step, line(TIME_TERMS, FACTORS, step)) for i, step in enumerate(steps(12))]
    peaks = [CostSample(f"mask {i}", step, line(MEMORY_TERMS, MEMORY, step)) for i, step in enumerate(steps(8, seed=1))]
    fit = fit_cost(times, peaks, measured_on="lines")
    found = (
        fit.overhead_seconds,
        fit.forward_seconds_per_multiply_add,
        fit.backward_seconds_per_multiply_add,
        fit.seconds_per_activation_byte,
        fit.seconds_per_trained_parameter,
    )
    assert found == pytest.approx(FACTORS, rel=1e-6)
    assert fit.memory_base_bytes == pytest.approx(MEMORY[0], rel=1e-6)
    assert fit.memory_bytes_per_activation_byte == pytest.approx(MEMORY[1], rel=1e-6)
    assert fit.memory_bytes_per_parameter_byte == pytest.approx(MEMORY[2], rel=1e-6)
    assert fit.memory_bytes_per_trained_parameter == pytest.approx(MEMORY[3], rel=1e-6)
    assert fit.relative_error < 1e-6
    assert fit.memory_relative_error is not None
    assert fit.memory_relative_error < 1e-6
    assert (fit.measurements, fit.measured_on) == (12, "lines")


def test_what_was_fitted_is_what_the_fit_predicts() -> None:
    times = [CostSample(f"mask {i}", step, line(TIME_TERMS, FACTORS, step)) for i, step in enumerate(steps(12))]
    peaks = [CostSample(f"mask {i}", step, line(MEMORY_TERMS, MEMORY, step)) for i, step in enumerate(steps(8))]
    fit = fit_cost(times, peaks, measured_on="lines")
    new = steps(1, seed=5)[0]
    memory = {term: new[term] for term in MEMORY_TERMS}
    assert fit.step_seconds(**{term: new[term] for term in TIME_TERMS}) == pytest.approx(line(TIME_TERMS, FACTORS, new))
    assert fit.peak_bytes(**memory) == pytest.approx(line(MEMORY_TERMS, MEMORY, new), rel=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 12))
def test_no_factors_without_a_negative_one_are_better(seed: int, terms: int, rows: int) -> None:
    """The conditions of Karush, Kuhn and Tucker: the slope is zero at what is used, and upward at what is not."""
    generator = np.random.default_rng(seed)
    features, wanted = generator.standard_normal((rows, terms)), generator.standard_normal(rows)
    factors = least_squares(features, wanted)
    slope = features.T @ (features @ factors - wanted)
    assert np.all(factors >= 0)
    assert np.all(slope > -1e-8)
    assert np.all(np.abs(slope[factors > 0]) < 1e-8)


def test_a_term_that_would_be_negative_is_left_out() -> None:
    features = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert least_squares(features, np.array([3.0, 2.0, 1.0])) == pytest.approx([2.0, 0.0])


def test_passes_that_cannot_be_told_apart_cost_the_same() -> None:
    whole = [step | {"backward_multiply_adds": 2 * step["forward_multiply_adds"]} for step in steps(8)]
    times = [CostSample(f"mask {i}", step, line(TIME_TERMS, FACTORS, step)) for i, step in enumerate(whole)]
    _, forward, backward, _, _ = fitted(times, TIME_TERMS)
    assert forward == backward == pytest.approx((FACTORS[1] + 2 * FACTORS[2]) / 3)


def test_the_error_is_that_of_what_the_fit_has_not_seen() -> None:
    """Every mask is off by its own factor: a fit that had seen one of its batch sizes would know."""
    measured = []
    for number, step in enumerate(steps(6)):
        own = 1.5 if number % 2 else 1.0
        for batch in (1, 2):
            scaled = {name: batch * amount for name, amount in step.items()}
            measured.append(CostSample(f"mask {number}", scaled, own * line(TIME_TERMS, FACTORS, scaled)))
    factors = fitted(measured, TIME_TERMS)
    seen = [abs(line(TIME_TERMS, tuple(factors), dict(one.work)) / one.amount - 1) for one in measured]
    left_out = errors_of(measured, TIME_TERMS)
    assert len(left_out) == len(measured)
    assert np.median(left_out) > 2 * np.median(seen)


def test_too_few_measurements_are_refused_with_advice() -> None:
    times = [CostSample("one mask", step, 1.0) for step in steps(8)]
    peaks = [CostSample(f"mask {i}", step, 1.0) for i, step in enumerate(steps(4))]
    with pytest.raises(EdgeFLError, match="too few for a fit") as caught:
        fit_cost(times, peaks, measured_on="one mask")
    assert "--seconds" in caught.value.fix


def test_memory_without_enough_masks_says_that_its_error_is_not_known() -> None:
    times = [CostSample(f"mask {i}", step, line(TIME_TERMS, FACTORS, step)) for i, step in enumerate(steps(8))]
    peaks = [CostSample(f"mask {i}", step, line(MEMORY_TERMS, MEMORY, step)) for i, step in enumerate(steps(2))]
    assert fit_cost(times, peaks, measured_on="lines").memory_relative_error is None


def samples_of(entries: list[dict[str, Any]], amount: str) -> list[CostSample]:
    return [
        CostSample(one["group"], {term: one[term] for term in {*TIME_TERMS, *MEMORY_TERMS}}, one[amount])
        for one in entries
    ]


GOLDEN = json.loads((FOLDER / "cost_fit.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_every_client_finds_the_cost_of_the_golden_file(case: dict[str, Any]) -> None:
    times, peaks = samples_of(case["times"], "seconds"), samples_of(case["peaks"], "peak_bytes")
    found, expected = to_json(fit_cost(times, peaks, measured_on="cnn4")), case["cost"]
    numbers = {name: value for name, value in expected.items() if not isinstance(value, str)}
    assert {name: found[name] for name in numbers} == pytest.approx(numbers, rel=GOLDEN["tolerance"])
    if "alike" not in case["name"]:  # a second opinion
        rows = np.array([[1.0, *(one.work[term] for term in TIME_TERMS)] for one in times])
        rows /= np.array([[one.amount] for one in times])
        scale = np.linalg.norm(rows, axis=0)
        factors = nnls(rows / scale, np.ones(len(times)))[0] / scale
        assert factors == pytest.approx(list(expected.values())[:5], rel=GOLDEN["tolerance"], abs=1e-18)


def test_the_example_of_the_document_is_the_first_golden_case() -> None:
    text = (Path(__file__).parents[3] / "docs" / "profile.md").read_text(encoding="utf-8")
    case = GOLDEN["cases"][0]
    for one in case["times"]:
        work = " | ".join(f"{one[term]:,}" for term in TIME_TERMS)
        assert f"| {one['group']} | {work} | {one['seconds']} |" in text
    shown = re.findall(r"^\| `(\w+)` \| ([-0-9.e]+) \|$", text, re.MULTILINE)
    assert {"overhead_seconds", "seconds_per_trained_parameter", "relative_error"} <= {name for name, _ in shown}
    assert all(float(value) == case["cost"][name] for name, value in shown if not name.startswith("memory"))

"""cost_fit.json: measured steps in, the fitted cost out. The work is that of a small convolutional network (cnn4).

The times are made up: a line, times some errors of a few per cent.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from device_runtime.profiler.cost_fit import CostSample, fit_cost
from edgefl.values import to_json
from tests.golden.encoding import cases_text

__all__ = ["text"]

TOLERANCE = 1e-6

_TERMS = (
    "forward_multiply_adds",
    "backward_multiply_adds",
    "activation_bytes",
    "parameter_bytes",
    "trained_parameters",
)
_WORK: Mapping[str, Sequence[tuple[int, ...]]] = {
    "whole, all trained": (
        (81232896, 160659456, 4588352, 1567392, 390880),
        (324931584, 642637824, 18353408, 1567392, 390880),
    ),
    "whole, half trained": (
        (81232896, 71546880, 2556224, 1567392, 371968),
        (324931584, 286187520, 10224896, 1567392, 371968),
    ),
    "whole, head trained": (
        (81232896, 20480, 1679680, 1567392, 2560),
        (324931584, 81920, 6718720, 1567392, 2560),
    ),
    "narrow, all trained": (
        (7808136, 15051792, 1430784, 143944, 35690),
        (31232544, 60207168, 5723136, 143944, 35690),
    ),
    "narrow, half trained": (
        (7808136, 6392512, 784768, 143944, 33832),
        (31232544, 25570048, 3139072, 143944, 33832),
    ),
    "narrow, head trained": (
        (7808136, 6160, 524256, 143944, 770),
        (31232544, 24640, 2097024, 143944, 770),
    ),
}
_WITHOUT_CUTS: Mapping[str, Sequence[tuple[int, ...]]] = {
    "middle, all trained": (
        (28950912, 56850048, 2867200, 563000, 140400),
        (115803648, 227400192, 11468800, 563000, 140400),
    ),
    "small, all trained": (
        (2951040, 5640192, 906240, 61440, 14880),
        (11804160, 22560768, 3624960, 61440, 14880),
    ),
}
"""Further groups, so that leaving one out leaves more cases than factors."""
_PHONE = (0.002, 1e-10, 1.5e-10, 5e-10, 0.0, 3e-9)
"""Seconds: fixed, and per unit of each term."""
_MEMORY = (60e6, 0.0, 0.0, 1.5, 1.25, 14.0)
"""Bytes: fixed, and per unit of each term."""
_ERRORS = (0.02, -0.03, 0.01, 0.0, -0.01, 0.03, -0.02, 0.01, 0.03, -0.01, 0.0, -0.02)


def text() -> str:
    """Return the text of the file."""
    every = list(_WORK)
    trained = [group for group in every if "all" in group]
    cases = [
        _case("times with errors of up to 3 %", every, _PHONE, _ERRORS),
        _case("no time by trained parameters", every, (*_PHONE[:5], 0.0), _ERRORS[::-1]),
        _case("a term that would be negative is 0", every, (0.002, 1e-10, 1.5e-10, -4e-10, 0.0, 3e-9), _ERRORS),
        _case(
            "passes that look alike share a factor",
            [*trained, *_WITHOUT_CUTS],
            _PHONE,
            _ERRORS,
        ),
    ]
    return cases_text(cases, tolerance=TOLERANCE)


def _case(name: str, groups: Sequence[str], seconds: Sequence[float], errors: Sequence[float]) -> dict[str, Any]:
    steps = list(_steps(groups))
    times: list[dict[str, Any]] = [
        {"group": group, **work, "seconds": round(_line(seconds, work) * (1 + error), 9)}
        for (group, work), error in zip(steps, errors, strict=False)
    ]
    peaks: list[dict[str, Any]] = [
        {"group": group, **work, "peak_bytes": round(_line(_MEMORY, work) * (1 - error))}
        for (group, work), error in zip(steps, _ERRORS, strict=False)
    ]
    cost = fit_cost(
        [CostSample(group, work, time["seconds"]) for (group, work), time in zip(steps, times, strict=True)],
        [CostSample(group, work, peak["peak_bytes"]) for (group, work), peak in zip(steps, peaks, strict=True)],
        measured_on="cnn4",
    )
    return {
        "name": name,
        "times": times,
        "peaks": peaks,
        "cost": {key: _rounded(value) for key, value in to_json(cost).items()},
    }


def _steps(groups: Sequence[str]) -> Iterator[tuple[str, dict[str, int]]]:
    works = {**_WORK, **_WITHOUT_CUTS}
    for group in groups:
        for numbers in works[group]:
            yield group, dict(zip(_TERMS, numbers, strict=True))


def _line(factors: Sequence[float], work: Mapping[str, int]) -> float:
    return factors[0] + sum(factor * work[term] for factor, term in zip(factors[1:], _TERMS, strict=True))


def _rounded(value: Any) -> Any:
    """Leave out the digits in which solvers differ."""
    return float(f"{value:.9g}") if isinstance(value, float) else value

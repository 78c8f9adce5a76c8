"""Profiles that cannot be are refused with the reason; those of real and simulated devices are not."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from edgefl.planning import check_plausible
from edgefl.planning.plausible import BOUNDS, FASTEST_PER_CORE, REFERENCE
from edgefl.simulation.device_class import DeviceClass, simulated_profile
from edgefl.simulation.known_classes import KNOWN_CLASSES
from edgefl.values import CostFit, DeviceProfile, FieldError
from tests.values.samples import PROFILE

PI_ZERO = dataclasses.replace(
    PROFILE,
    machine=dataclasses.replace(PROFILE.machine, architecture="armv6l", cores=1),
    threads=1,
    cost=dataclasses.replace(
        PROFILE.cost,
        overhead_seconds=0.05,
        forward_seconds_per_multiply_add=2e-8,
        backward_seconds_per_multiply_add=3e-8,
        relative_error=0.6,
    ),
    memory_total_bytes=430 * 2**20,
    memory_free_bytes=200 * 2**20,
)
WORKSTATION = dataclasses.replace(
    PROFILE,
    machine=dataclasses.replace(PROFILE.machine, architecture="x86_64", cores=192),
    threads=96,
    cost=dataclasses.replace(
        PROFILE.cost,
        overhead_seconds=2e-5,
        forward_seconds_per_multiply_add=0.0,
        backward_seconds_per_multiply_add=1e-13,
        seconds_per_activation_byte=4e-12,
    ),
    memory_total_bytes=2**41,
    memory_free_bytes=2**41,
    power=dataclasses.replace(PROFILE.power, idle_watts=350, busy_watts=1500),  # type: ignore[type-var]
)


@pytest.mark.parametrize("profile", [PROFILE, PI_ZERO, WORKSTATION], ids=["pi 4", "pi zero", "workstation"])
def test_real_devices_are_plausible(profile: DeviceProfile) -> None:
    check_plausible(profile)


@pytest.mark.parametrize("kind", [*KNOWN_CLASSES.values(), DeviceClass()], ids=lambda kind: kind.name)
def test_simulated_devices_are_plausible(kind: DeviceClass) -> None:
    check_plausible(simulated_profile(kind))


def changed(path: str, value: Any) -> DeviceProfile:
    outer, _, inner = path.rpartition(".")
    if not outer:
        return dataclasses.replace(PROFILE, **{inner: value})
    return dataclasses.replace(PROFILE, **{outer: dataclasses.replace(getattr(PROFILE, outer), **{inner: value})})


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.path)
def test_a_number_beyond_its_bound_is_refused_by_its_name(bound: Any) -> None:
    whole = bound.path in ("machine.cores", "threads", "memory_total_bytes")
    more = dataclasses.replace(changed(bound.path, round(bound.most * 2) if whole else bound.most * 1.5))
    with pytest.raises(FieldError, match=bound.path) as caught:
        check_plausible(more, path=("profile",))
    assert caught.value.path[0] == "profile"
    assert f"{bound.most:g}" in caught.value.problem


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"measurements": 1}, "'cost.measurements' is 1, and a fit needs at least 3"),
        ({"relative_error": 0.0}, "'cost.relative_error' is 0, and no fit"),
        (
            {
                "forward_seconds_per_multiply_add": 1e-13,
                "backward_seconds_per_multiply_add": 1e-13,
                "overhead_seconds": 0.0,
                "seconds_per_activation_byte": 0.0,
                "seconds_per_trained_parameter": 0.0,
            },
            r"'cost' predicts 0.0003 s for a step of 3e\+09 multiply-adds, and 4 cores cannot take less than 0.00075 s",
        ),
        ({"memory_base_bytes": 2**40}, "'cost.memory_base_bytes' is 1,099,511,627,776, more than memory_total_bytes"),
    ],
)
def test_a_cost_that_was_not_measured_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(FieldError, match=says):
        check_plausible(dataclasses.replace(PROFILE, cost=dataclasses.replace(PROFILE.cost, **changes)))


def test_a_cost_of_nothing_is_refused() -> None:
    nothing: dict[str, Any] = {one.name: 0.0 for one in dataclasses.fields(CostFit) if "seconds" in one.name}
    with pytest.raises(FieldError, match="predicts 0 s"):
        check_plausible(dataclasses.replace(PROFILE, cost=dataclasses.replace(PROFILE.cost, **nothing)))


def test_the_document_has_every_bound() -> None:
    text = (Path(__file__).parents[2] / "docs" / "profile.md").read_text(encoding="utf-8")
    for bound in BOUNDS:
        assert f"| `{bound.path}` | {_written(bound.least)} to {_written(bound.most)} " in text, bound.path
    assert f"{FASTEST_PER_CORE:g}".replace("+", "") in text.replace("+", "")
    for term, amount in REFERENCE.items():
        assert f"{amount:,} " in text, term


def _written(number: float) -> str:
    return f"{number:,.0f}" if number == 0 or abs(number) >= 1 else f"{number:g}"

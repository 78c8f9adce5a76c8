"""What the system asks programs to spare, from captured answers."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from device_runtime.agent.conditions import SystemConditions
from device_runtime.agent.owner_policy import OwnerPolicy
from device_runtime.telemetry import battery_saver, metered


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("u 1\n", True), ("u 3\n", True), ("u 2\n", False), ("u 4\n", False), ("u 0\n", None), ("", None), ("u x", None)],
)
def test_network_manager_says_whether_a_network_is_metered(answer: str, expected: bool | None) -> None:
    asked: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> str:
        asked.append(words)
        return answer

    assert metered(run) is expected
    assert asked[0][0] == "busctl"
    assert asked[0][-1] == "Metered"


def test_without_network_manager_it_is_not_known() -> None:
    assert metered(lambda words: None) is None


@pytest.mark.parametrize(("profile", "expected"), [("low-power\n", True), ("balanced\n", False), ("", None)])
def test_the_platform_profile_says_whether_battery_is_saved(
    profile: str, expected: bool | None, tmp_path: Path
) -> None:
    assert battery_saver(tmp_path) is None
    place = tmp_path / "sys/firmware/acpi/platform_profile"
    place.parent.mkdir(parents=True)
    place.write_text(profile)
    assert battery_saver(tmp_path) is expected


def test_the_network_is_asked_about_only_if_the_owner_cares_and_not_all_the_time() -> None:
    now, asked = [0.0], []

    def ask() -> bool:
        asked.append(now[0])
        return len(asked) > 1

    easy = SystemConditions(OwnerPolicy(), ask, lambda: now[0])
    assert isinstance(easy().now, datetime)
    assert (easy().metered, asked) == (None, [])
    strict = SystemConditions(OwnerPolicy(unmetered_only=True), ask, lambda: now[0])
    assert [strict().metered for _ in range(3)] == [False, False, False]
    now[0] = 30.0
    assert strict().metered is True
    assert asked == [0.0, 30.0]

"""`edgefl plan`: from profiles to who would train what."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgefl.cli.main import main
from edgefl.values import dumps
from tests.device_runtime.federation import BUNDLE
from tests.values.samples import PROFILE

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def profiles(tmp_path: Path) -> list[str]:
    """A usual device, and one that is twenty times as slow."""
    cost = PROFILE.cost
    slow = replace(PROFILE, cost=replace(cost, **{name: 20 * getattr(cost, name) for name in _times(cost)}))
    for name, profile in (("usual", PROFILE), ("slow", slow)):
        (tmp_path / f"{name}.json").write_text(dumps(profile), encoding="utf-8")
    return [str(tmp_path / "usual.json"), str(tmp_path / "slow.json")]


def _times(cost: Any) -> list[str]:
    return [name for name in cost.__dataclass_fields__ if "seconds_per" in name]


def planned(capsys: Capture, *words: str) -> Any:
    assert main(["plan", "--bundle", str(BUNDLE), "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_slow_device_gets_less_and_everything_is_predicted(profiles: list[str], capsys: Capture) -> None:
    usual, slow = planned(capsys, "--deadline", "1", *profiles)["devices"]
    assert (usual["device"], slow["device"]) == ("usual", "slow")
    assert usual["kept"] == 1.0 > slow["kept"] > 0
    assert 0 < slow["seconds"] <= 0.5
    assert usual["up_bytes"] > slow["up_bytes"] > 0
    assert usual["trained_layers"]


def test_devices_are_counted_and_named(profiles: list[str], capsys: Capture) -> None:
    told = planned(capsys, f"{profiles[0]}@2", profiles[0], profiles[0])["devices"]
    assert [one["device"] for one in told] == ["usual-1", "usual-2", "usual", "usual+"]


def test_a_table_and_a_picture(profiles: list[str], capsys: Capture, tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    assert main(["plan", "--bundle", str(BUNDLE), "--deadline", "100 ms", "--plot", str(picture), *profiles]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["device", "kept", "trained"]
    assert "left out" in lines[1]
    assert picture.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.json"], "none.json cannot be read"),
        (["--strategy", "fedagv", "usual"], "Did you mean 'fedavg'"),
        (["--set", "width", "usual"], "'width' is not a setting"),
        (["--set", "width=wide", "usual"], "one of 'fit', 'full'"),
        (["--deadline", "2 mn", "usual"], "--deadline must be a time in seconds, got '2 mn'"),
        (["--plot", "plan.txt", "usual"], "cannot be written as 'plan.txt'"),
        (["--memory", "1 s", "usual"], "--memory must be"),
        (["--seed", "-1", "--strategy", "perfedmask", "--set", "planner=random", "usual"], "--seed is -1"),
        (["--seed", str(2**64), "usual"], "--seed is"),
        (["--samples", "-5", "usual"], "--samples is -5"),
        (["--samples", "0", "usual"], "--samples is 0"),
        (["--rounds", "0", "usual"], "--rounds is 0"),
        (["--round", "0", "usual"], "--round is 0"),
        (["--round", "200", "usual"], "--round is 200"),
        (["usual.json@0"], "is 0 devices"),
        (["usual.json@50000000"], "is 50000000 devices"),
        (["usual.json@60000", "usual.json@60000"], "after 60000 others"),
    ],
)
def test_what_cannot_be_planned_says_why(
    words: list[str], message: str, profiles: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(profiles[0]).parent)
    words = [profiles[0] if word == "usual" else word for word in words]
    assert main(["plan", "--bundle", str(BUNDLE), *words]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_what_nobody_trains_is_said_beside_the_bias(profiles: list[str], capsys: Capture) -> None:
    words = ["--strategy", "perfedmask", "--parameters", "100", *profiles]
    untrained = planned(capsys, *words)["plan"]["untrained_parameters"]
    assert untrained > 0
    assert main(["plan", "--bundle", str(BUNDLE), *words]) == 0
    assert f"nobody trains the other {untrained:,.0f} parameters" in capsys.readouterr().out


def test_traffic_is_that_of_each_devices_own_rule(profiles: list[str], capsys: Capture) -> None:
    words = ["--strategy", "fedmap", "--set", "granularity=channel", "--set", "capacities=any", "--deadline", "500 ms"]
    together = planned(capsys, *words, *profiles)["devices"]
    alone = [planned(capsys, *words, profile)["devices"][0] for profile in profiles]
    assert [one["up_bytes"] for one in together] == [one["up_bytes"] for one in alone]
    usual, slow = together
    assert usual["kept"] == 1 > slow["kept"]
    assert usual["up_bytes"] < slow["up_bytes"]

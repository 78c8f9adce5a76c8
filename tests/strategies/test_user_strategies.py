"""Strategies from elsewhere, as `package.module:Class`; the documents' example is one."""

import sys
from pathlib import Path

import numpy as np
import pytest

from edgefl.cli.main import main
from edgefl.errors import SchemaError
from edgefl.masks import Weights
from edgefl.simulation import SimulatedFederation
from edgefl.simulation.run_folder import read_run
from edgefl.strategies import FedAvg, Strategy, is_user_strategy, strategy_of
from edgefl.values import LocalWork, settings_from
from examples.own_strategy import ServerMomentum
from tests.device_runtime.federation import bundle
from tests.simulation.fleets import fleet, settings_of

NAME = "examples.own_strategy:ServerMomentum"


def test_a_class_elsewhere_becomes_a_strategy_with_its_settings() -> None:
    found = strategy_of(NAME, {"server_momentum": 0.25, "learning_rate": 0.3, "width": "full"})
    assert isinstance(found, ServerMomentum)
    assert found.server_momentum == 0.25
    assert settings_from(found)["learning_rate"] == 0.3
    assert is_user_strategy(NAME)
    assert not is_user_strategy("fedavg")


def test_settings_of_a_class_elsewhere_are_checked_like_all_others() -> None:
    with pytest.raises(SchemaError, match=r"'settings.server_momentum' must be a fraction between 0 and 1"):
        strategy_of(NAME, {"server_momentum": 2})
    with pytest.raises(SchemaError, match=r"'settings.server_momentun' .* Did you mean 'server_momentum'"):
        strategy_of(NAME, {"server_momentun": 0.5})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (":", "does not name a strategy class.*package.module:Class"),
        ("own strategy:Mine", "does not name a strategy class"),
        ("examples.own_strategy:", "does not name a strategy class"),
        ("examples.nothing_here:Mine", "no module 'examples.nothing_here'.*run from the folder"),
        ("examples.own_strategy:Momentum", "'examples.own_strategy' has no 'Momentum'"),
        ("examples.own_strategy:np", "is not a dataclass"),
        ("examples.own_strategy:Model", "lacks what every strategy needs: begin, plan, check, movement, combine"),
        ("examples.own_strategy:ComposableStrategy", "lacks what every strategy needs: name"),
        ("needs_another:Mine", "needs 'a_package_that_is_nowhere', which is not installed"),
        ("fails:Mine", "importing 'fails' failed with ValueError: on purpose"),
        ("half:Half", "half:Half lacks what every strategy needs: submodels, uplink"),
    ],
)
def test_a_name_that_leads_to_no_strategy_is_told_why(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_another.py").write_text("import a_package_that_is_nowhere\n")
    (tmp_path / "fails.py").write_text("raise ValueError('on purpose')\n")
    lines = [
        "from dataclasses import dataclass",
        "from edgefl.strategies.averaging_strategy import AveragingStrategy",
        "",
    ]
    (tmp_path / "half.py").write_text(
        "\n".join([*lines, "@dataclass(frozen=True)", "class Half(AveragingStrategy):", "    name = 'half'"])
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SchemaError, match=message):
        strategy_of(name, {})


def test_the_current_folder_is_looked_in_and_the_path_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in_this_folder.py").write_text("from examples.own_strategy import ServerMomentum as Mine\n")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    assert isinstance(strategy_of("in_this_folder:Mine", {}), ServerMomentum)
    assert sys.path == path


def weights_after(strategy: Strategy, rounds: int) -> list[Weights]:
    """The global weights before the first round and after each."""
    settings = settings_of(rounds=rounds, per_round=4, seed=5, work=LocalWork(most_steps=2))
    with SimulatedFederation(bundle(), fleet(), strategy, settings) as federation:
        start = federation.model.weights
        return [start, *(federation.model.weights for _ in federation.rounds())]


def test_the_examples_first_round_is_federated_averaging_and_the_second_keeps_half_its_speed() -> None:
    start, first, second = weights_after(strategy_of(NAME, {"server_momentum": 0.5}), 2)
    plain = weights_after(FedAvg(), 2)
    without = weights_after(strategy_of(NAME, {"server_momentum": 0.0}), 2)
    for name in start:
        np.testing.assert_allclose(first[name], plain[1][name], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(without[2][name], plain[2][name], rtol=1e-6, atol=1e-7)
        # The second round starts from the same model, so its average is that of federated averaging.
        change = plain[2][name] - plain[1][name]
        speed = 0.5 * (first[name] - start[name]) if start[name].dtype.kind == "f" else 0  # a counter has none
        expected = np.where(change == 0, first[name], plain[2][name] + speed)
        np.testing.assert_allclose(second[name], expected, rtol=1e-4, atol=1e-6)


def test_the_command_line_takes_a_class_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = "--model digits_mlp --devices 2 --rounds 1 --most-steps 1 --workers 1 --no-personal --quiet"
    assert main(["simulate", "--strategy", NAME, "--set", "server_momentum=0.25", *options.split()]) == 0
    run = read_run(Path("runs/ServerMomentum"))
    chosen = run.request.federation.strategy
    assert (chosen.name, dict(chosen.settings)) == (NAME, {"server_momentum": 0.25})


def test_the_command_line_says_what_is_wrong_with_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--strategy", "examples.own_strategy:Nothing", "--out", "/nowhere"]) == 1
    assert "has no 'Nothing'" in capsys.readouterr().err

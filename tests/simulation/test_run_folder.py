"""What a run leaves behind for those who look at it later."""

from pathlib import Path

from edgefl.artifacts.bundle import pack_bundle
from edgefl.federation import FederationSettings, RoundSettings, SelectionSettings, StrategyChoice
from edgefl.simulation import open_executor
from edgefl.simulation.built_in_models import built_in_bundle
from edgefl.simulation.request import SimulationRequest, read_request, simulation_inputs
from edgefl.simulation.results import RoundResult
from edgefl.simulation.run_folder import RunFolder, read_run
from edgefl.simulation.simulate import simulate
from edgefl.values import loads


def test_parts_are_those_of_the_rounds_though_devices_tune_others_in_the_end(tmp_path: Path) -> None:
    request = SimulationRequest(
        model="digits_mlp",
        devices=2,
        samples=60,
        federation=FederationSettings(
            name="simulation",
            # the head is frozen in every round, and tuned at the end
            strategy=StrategyChoice(name="fedbabu", settings={"fine_tune_epochs": 1}),
            rounds=RoundSettings(count=1),
            selection=SelectionSettings(devices=2),
        ),
    )
    bundle = built_in_bundle("digits_mlp")
    found = simulation_inputs(request, bundle)
    folder = RunFolder(tmp_path / "run", request, bundle, found.fleet)
    simulate(request, bundle, found, open_executor(pack_bundle(bundle), found.fleet, 1), folder)
    run = read_run(tmp_path / "run")
    assert run.personal is not None
    assert len(run.personal.devices) == len(run.parts) == 2
    for part in run.parts:
        *body, head = part.layers
        assert not head.trained
        assert all(layer.trained for layer in body)


def test_the_request_of_a_run_of_the_first_version_is_read() -> None:
    written = b"""{"schema": "edgefl.simulation/1", "model": "digits_mlp", "data": "digits", "folder": null,
        "partition": "iid", "devices": 4, "samples": null, "test_samples": null, "validation": 0.1, "test": 0.2,
        "classes": [{"name": "device"}], "trace": null, "strategy": "hermes", "settings": {"kept_target": 0.3},
        "federation": {"rounds": 7, "per_round": 3, "seed": "9", "work": {"epochs": 2, "batch_size": 32},
        "deadline": 24.0, "deadline_share": 0.25, "evaluate_every": 0}, "personalise": false}"""
    request = read_request(written)
    assert (request.model, request.devices, request.personalise) == ("digits_mlp", 4, False)
    federation = request.federation
    assert (federation.strategy.name, dict(federation.strategy.settings)) == ("hermes", {"kept_target": 0.3})
    assert (federation.rounds.count, federation.selection.devices, federation.seed) == (7, 3, 9)
    assert (federation.rounds.deadline, federation.round_share, federation.work.epochs) == (24.0, 0.25, 2)
    assert [number for number in range(7) if federation.evaluates(number)] == [6]


def test_a_request_of_the_first_version_may_leave_defaults_out() -> None:
    request = read_request(b'{"schema": "edgefl.simulation/1", "model": "m", "federation": {"seed": "3"}}')
    federation = request.federation
    assert (federation.seed, federation.strategy.name, federation.rounds.count) == (3, "fedavg", 10)
    assert (federation.rounds.deadline, federation.selection.devices, federation.round_share) == (600.0, 10, 0.5)


def test_results_of_an_earlier_version_were_judged_with_the_whole_model() -> None:
    line = '{"number": 0, "devices": [], "score": {"accuracy": 0.5, "loss": 1.0, "samples": 10}, "seconds": 1.0}'
    result = loads(RoundResult, line)
    assert result.score is not None
    assert result.score.judged_fraction == 1

"""What a run leaves behind for those who look at it later."""

from pathlib import Path

from edgefl.artifacts.bundle import pack_bundle
from edgefl.federation import FederationSettings, RoundSettings, SelectionSettings, StrategyChoice
from edgefl.simulation import open_executor
from edgefl.simulation.built_in_models import built_in_bundle
from edgefl.simulation.request import SimulationRequest, simulation_inputs
from edgefl.simulation.run_folder import RunFolder, read_run
from edgefl.simulation.simulate import simulate


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

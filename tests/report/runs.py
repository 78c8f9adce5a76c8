"""Runs made by hand, for tests of what is shown of them. No training: every number is chosen."""

import json
from dataclasses import replace
from pathlib import Path

from edgefl.charts.device_parts import DevicePart, LayerPart
from edgefl.federation import FederationSettings, RoundSettings, SelectionSettings, StrategyChoice
from edgefl.federation.evaluation import Score
from edgefl.simulation import DeviceClass
from edgefl.simulation.request import SimulationRequest
from edgefl.simulation.results import DeviceRound, Fate, PersonalResult, RoundResult
from edgefl.simulation.run_folder import FleetRow, Run
from edgefl.simulation.summary import summary_of
from edgefl.values import dumps, to_json

HOSTILE = '<img src=x onerror="alert(1)"></script><b>pi & co</b>'
"""A name that is not what it seems."""

PI = DeviceClass(name="pi4", idle_watts=2.7, busy_watts=6.4, source="measured by hand")
PHONE = DeviceClass(name="phone", speed=2.0)
NAMES = ("pi4-0", "pi4-1", "phone-2")


def task(device: str, number: int, fate: Fate = Fate.ARRIVED) -> DeviceRound:
    return DeviceRound(
        device_id=device,
        kept_fraction=0.5,
        trained_fraction=0.25,
        down_bytes=2000,
        setup_bytes=100,
        up_bytes=1000,
        steps=4,
        multiply_adds=10,
        predicted_seconds=1.0,
        measured_seconds=0.1,
        step_seconds=0.01,
        loss=2.0 - 0.5 * number,
        own_accuracy=0.5 + 0.1 * number,
        fate=fate,
        simulated_seconds=2.0 + number,
        joules=8.0,
        peak_bytes=1000 * (number + 1),
        samples=30,
    )


def part(device: str, *, frozen: tuple[str, ...] = ()) -> DevicePart:
    layers = tuple(LayerPart(name, name not in frozen, 0.5) for name in ("conv1", "conv2", "head"))
    return DevicePart(device, 0.5, 0.25, layers, {"conv1": "1100", "conv2": "10101010"})


def tiny_run(*, names: tuple[str, ...] = NAMES, rounds: int = 3, done: bool = True, path: str = "runs/tiny") -> Run:
    """Two Pis and a phone for three rounds; the phone is late in the second, and the model is judged in all but it."""
    results = tuple(
        RoundResult(
            number,
            tuple(
                task(name, number, Fate.LATE if (number, name) == (1, names[-1]) else Fate.ARRIVED) for name in names
            ),
            None if number == 1 else Score(0.3 + 0.2 * number, 2.0 - 0.5 * number, 100),
            seconds=0.5,
            began_at=10.0 * number,
            simulated_seconds=5.0,
        )
        for number in range(rounds)
    )
    personal = PersonalResult(
        dict.fromkeys(names, 0.6), dict.fromkeys(names, 0.8), dict.fromkeys(names, 0.5), (), seconds=1.0
    )
    request = SimulationRequest(
        model="digits_cnn",
        devices=len(names),
        classes=(PI, PHONE),
        federation=FederationSettings(
            name="simulation",
            strategy=StrategyChoice(settings={"learning_rate": 0.1}),
            rounds=RoundSettings(count=3),
            selection=SelectionSettings(devices=len(names)),
        ),
    )
    return Run(
        Path(path),
        request,
        tuple(FleetRow(name, "phone" if name == names[-1] else "pi4", (10, 20, 0)) for name in names),
        results,
        tuple(part(name, frozen=("conv1",) if name == names[0] else ()) for name in names) if done else (),
        personal if done else None,
        summary_of(results, personal, 9.0) if done else None,
    )


def asked(run: Run, **changes: object) -> Run:
    """Return the run as if something else had been asked."""
    return replace(run, request=replace(run.request, **changes))  # type: ignore[arg-type]


def written(run: Run, folder: Path) -> Path:
    """Write a run as a simulation leaves it."""
    folder.mkdir()
    (folder / "request.json").write_text(dumps(run.request), encoding="utf-8")
    (folder / "fleet.json").write_text(json.dumps([to_json(row) for row in run.fleet]), encoding="utf-8")
    (folder / "rounds.jsonl").write_text("".join(f"{dumps(one)}\n" for one in run.rounds), encoding="utf-8")
    (folder / "parts.json").write_text(json.dumps([to_json(one) for one in run.parts]), encoding="utf-8")
    if run.personal is not None:
        (folder / "personal.json").write_text(dumps(run.personal), encoding="utf-8")
    if run.summary is not None:
        (folder / "summary.json").write_text(dumps(run.summary), encoding="utf-8")
    return folder

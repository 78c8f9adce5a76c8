"""Eight unequal devices train one model on real handwritten digits; each ends with a small, fast one of its own.

Run it with `make demo`. Hermes (personal models that lose channels), federated averaging of the whole model, and every
device alone: the same data, the same devices, the same seed. Training and accuracy are real; seconds, memory and joules
are those of the device classes; predictions are timed on this machine. It ends with a table and a report page.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from device_runtime.engines import ThreadSettings, open_engine
from edgefl.artifacts.bundle import Bundle, pack_bundle
from edgefl.artifacts.submodel import make_submodel
from edgefl.bench.timing import medians
from edgefl.cli.simulate_progress import SimulationProgress
from edgefl.federation import FederationSettings, RoundSettings, SelectionSettings, StrategyChoice
from edgefl.masks import Mask, full_mask
from edgefl.report import run_page
from edgefl.simulation import open_executor
from edgefl.simulation.built_in_models import built_in_bundle
from edgefl.simulation.known_classes import classes_from
from edgefl.simulation.request import SimulationRequest, simulation_inputs
from edgefl.simulation.run_folder import Run, RunFolder, read_run
from edgefl.simulation.simulate import simulate
from edgefl.values import LocalWork, Setting, format_bytes, format_seconds
from edgefl.values.formatting import format_part
from edgefl.wire import decode_mask

_MODEL = "digits_cnn"
_ROUNDS = 12
_RATES: Mapping[str, Setting] = {"learning_rate": 0.01, "momentum": 0.9}
_METHODS: Mapping[str, Mapping[str, Setting]] = {
    "hermes": {**_RATES, "kept_target": 0.3},
    "fedavg": {**_RATES, "width": "full"},
    "local": _RATES,
}
_IMAGES = 20
"""That are predicted one after the other, in a turn of timing."""
_TITLES = {"hermes": "EdgeFL (Hermes)", "fedavg": "FedAvg, whole model", "local": "every device alone"}


def main() -> None:
    """Run all three, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder of the runs (default: runs/demo)")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--turns", type=int, default=100, help="of timing predictions (default: 100)")
    options = parser.parse_args()
    began = time.perf_counter()
    shutil.rmtree(options.out, ignore_errors=True)
    bundle = built_in_bundle(_MODEL)
    runs = {name: _run(name, bundle, options.out / name, options.rounds) for name in _METHODS}
    _show_methods(runs)
    _show_devices(runs["hermes"], bundle, options.turns)
    page = runs["hermes"].path / "report.html"
    page.write_text(run_page(runs["hermes"]), encoding="utf-8")
    took = _words(time.perf_counter() - began)
    print(f"\nThe report page is {page.resolve()}; the runs are in {options.out}. All of it took {took}.")
    print(f"Put them side by side: edgefl compare {' '.join(str(run.path) for run in runs.values())}")


def _run(name: str, bundle: Bundle, path: Path, rounds: int) -> Run:
    print(f"{_TITLES[name]}: {rounds} rounds of 8 devices", file=sys.stderr)
    request = SimulationRequest(
        model=_MODEL,
        data="digits",
        partition="dirichlet:0.3",
        devices=8,
        classes=classes_from("mixed"),
        federation=FederationSettings(
            name="demo",
            strategy=StrategyChoice(name=name, settings=_METHODS[name]),
            rounds=RoundSettings(count=rounds),
            selection=SelectionSettings(devices=8),
            work=LocalWork(epochs=3, batch_size=16),
        ),
    )
    found = simulation_inputs(request, bundle)
    folder = RunFolder(path, request, bundle, found.fleet)
    executor = open_executor(pack_bundle(bundle), found.fleet, len(os.sched_getaffinity(0)))
    progress = SimulationProgress(rounds)
    simulate(request, bundle, found, executor, folder, show=progress.round, stage=progress.stage)
    progress.done()
    return read_run(path)


def _show_methods(runs: Mapping[str, Run]) -> None:
    print(
        f"\n{'':<21}{'global':>8}{'personal':>10}{'model':>8}{'a round':>10}{'energy':>9}{'sent':>10}"
        f"\n{'':<21}{'model':>8}{'models':>10}{'size':>8}{'lasts':>10}{'':>9}{'':>10}"
    )
    for name, run in runs.items():
        found = run.summary
        assert found is not None  # it came to its end
        overall = "-" if name == "local" else f"{found.accuracy or 0:.1%}"
        lasts = found.simulated_seconds / max(found.rounds, 1)
        print(
            f"{_TITLES[name]:<21}{overall:>8}{found.personal_after or 0:>10.1%}{found.kept_fraction or 0:>8.0%}"
            f"{_words(lasts):>10}{found.joules or 0:>7.0f} J{format_bytes(found.up_bytes):>10}"
        )
    for name, run in runs.items():
        part = "" if run.summary is None else format_part(run.summary.judged_fraction, unit="%")
        if part:
            print(f"\nThe global model of {_TITLES[name]} is judged{part}: those that devices hold.")


def _show_devices(run: Run, bundle: Bundle, turns: int) -> None:
    masks = {
        row.device_id: decode_mask((run.path / "masks" / f"{row.device_id}.safetensors").read_bytes(), bundle.graph)
        for row in run.fleet
    }
    faster = _faster(bundle, masks, turns)
    print(
        f"\n{'device':<14}{'samples':>8}{'kept':>7}{'predicts':>10}{'memory':>10}{'energy':>9}{'sent':>10}{'accuracy':>10}"
    )
    for row in run.fleet:
        mine = [one for result in run.rounds for one in result.devices if one.device_id == row.device_id]
        accuracy = run.personal.after[row.device_id] if run.personal else 0.0
        print(
            f"{row.device_id:<14}{sum(row.labels):>8}{mine[-1].kept_fraction:>7.0%}{faster[row.device_id]:>9.2f}x"
            f"{format_bytes(mine[-1].peak_bytes):>10}{sum(one.joules or 0 for one in mine):>7.1f} J"
            f"{format_bytes(sum(one.up_bytes for one in mine)):>10}{accuracy:>10.1%}"
        )
    print(
        "\nmemory of the last round's training and energy are estimates by device class; 'predicts' is how many times"
        "\nfaster than the whole model its own one answers here, one image at a time, all models in turns."
    )


def _faster(bundle: Bundle, masks: Mapping[str, Mask], turns: int) -> dict[str, float]:
    """Time every device's model and the whole one in turns, on one thread."""
    engine, image = open_engine("onnx", ThreadSettings(1)), np.zeros((1, *bundle.manifest.input_shape), np.float32)

    def task(mask: Mask) -> Callable[[], object]:
        predict = engine.predictor(make_submodel(bundle, mask).inference_model)
        return lambda: [predict({}, image) for _ in range(_IMAGES)]

    whole = {"": task(full_mask(bundle.graph))}
    seconds = medians(whole | {device: task(mask) for device, mask in masks.items()}, rounds=turns)
    return {device: seconds[""] / seconds[device] for device in masks}


def _words(seconds: float) -> str:
    return format_seconds(round(seconds, 2))


if __name__ == "__main__":
    main()

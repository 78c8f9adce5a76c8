"""One federation of ExecuTorch and onnxruntime devices over HTTP, beside the same one of onnxruntime devices alone.

    python -m benchmarks.mixed_engines [--data digits,fashion-mnist] [--methods fedavg,...] [--rounds 10] [--for-all]

Two devices run programs, three run graphs, each in a process of its own; they differ in speed, so they get different
parts of the model. Their numbers of samples are no multiples of a batch. Data, profiles, names and seeds are the same
in both federations. For every method the table has: updates that counted of those planned, refusals, rungs, and the
accuracy of both global models. With --for-all every device is kept on rungs, so that both federations plan the same
and only the engines differ; without it, onnxruntime devices get widths between the rungs. Then, for one round of FedAvg
on the same rungs: the largest relative difference of a tensor of the two new models.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from edgefl.artifacts.bundle import read_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.data import load
from tests.android_demo.coordinator import (
    PROFILE,
    edgefl,
    fed,
    last_accuracy,
    pairing_uri,
    run_devices,
    serving,
    task_rows,
)

__all__ = [
    "CASES",
    "METHODS",
    "Case",
    "Outcome",
    "compare",
    "main",
    "model_difference",
    "run_devices",
    "task_rows",
    "write_inputs",
]

SPEEDS = {"pte-strong": 1.0, "pte-weak": 6.0, "onnx-strong": 1.0, "onnx-middle": 3.0, "onnx-weak": 8.0}
"""How many times as long as a strong device each takes for a step."""
PROGRAMS = ("pte-strong", "pte-weak")
"""The devices that run programs in a mixed federation."""
ENGINES = {"executorch": "executorch 1.4.1", "onnx": "onnxruntime 1.31.1"}
FEDERATION = """
[federation]
name = "{name}"
model = "{model}"
seed = 5
[strategy]
name = "{strategy}"
{settings}
[work]
epochs = {epochs}
batch_size = {batch}
[rounds]
count = {rounds}
deadline = "10 min"
at_least = 5
keep_models = "no limit"
[selection]
devices = 5
wait_for = 5
[evaluation]
data = "{data}"
[budget]
adapt = false
seconds = {seconds}
{programs}
"""
FOR_ALL = "[programs]\nfor_all = true"
METHODS = {
    "fedavg": "learning_rate = {rate}\nmomentum = 0.9",
    "perfedmask": "learning_rate = {rate}\nmomentum = 0.9\nfine_tune_epochs = 0",
    "hermes": (
        "learning_rate = {rate}\nmomentum = 0.9\nkept_target = 0.4\naccuracy_threshold = 0.3\nfine_tune_epochs = 0"
    ),
    "fedmrn": 'learning_rate = 0.3\nnoise_masks = "signed"\nnoise_bound = 0.05',
}
LONGEST = 900
"""Seconds after which a federation counts as stuck."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model, and data for it."""

    data: str
    model: str
    batch: int
    samples: int
    """Of each device, about."""
    seconds: float
    """The budget of a round, in the units of the profiles."""
    whole_seconds: float
    """The same for a method that gives every device the whole model and freezes layers of it."""
    rate: float
    """Learning rate of gradient descent. With batch norm, rounding alone moves accuracies at 0.05; less so at 0.01."""
    epochs: int = 2


CASES = {
    "digits": Case("digits", "digits_cnn", batch=16, samples=280, seconds=0.5, whole_seconds=6.0, rate=0.05),
    "fashion-mnist": Case("fashion-mnist", "cnn4", batch=32, samples=400, seconds=8.0, whole_seconds=30.0, rate=0.05),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A method with devices of both engines, and with onnxruntime alone."""

    method: str
    counted: int
    """Updates that counted in the mixed federation."""
    expected: int
    refused: int
    rungs: Mapping[str, Sequence[str]]
    """The rungs of each device that runs programs, in the order of the rounds."""
    accuracy: float
    alone: float

    @property
    def holds(self) -> bool:
        """Whether every update counted and the accuracies are within one point."""
        return self.counted == self.expected and not self.refused and abs(self.accuracy - self.alone) <= 0.01

    def row(self) -> str:
        """Return a line of the table."""
        rungs = "; ".join(f"{name}: {' -> '.join(dict.fromkeys(steps))}" for name, steps in self.rungs.items())
        points = f"{100 * self.accuracy:.2f} | {100 * self.alone:.2f}"
        return f"| {self.method} | {self.counted} of {self.expected} | {self.refused} | {points} | {rungs} |"


HEADER = (
    "| method | updates counted | refused | accuracy mixed, % | onnxruntime alone, % | rungs |\n"
    "| --- | --- | --- | --- | --- | --- |"
)


def compare(case: Case, bundle: Path, method: str, rounds: int, programs: str = "") -> Outcome:
    """Run both federations of a method."""
    with _both(case, bundle, method, rounds, programs) as (served, names, _):
        rows = task_rows(served, names[0], rounds)
        accuracy, alone = (last_accuracy(served, name) for name in names)
    return Outcome(
        method=method,
        counted=sum(row["state"] == "done" and row["counted_in"] == row["round"] for row in rows),
        expected=rounds * len(SPEEDS),
        refused=sum(row["state"] == "refused" for row in rows),
        rungs={name: [str(row["rung"]) for row in rows if row["device"] == name] for name in PROGRAMS},
        accuracy=accuracy,
        alone=alone,
    )


def model_difference(case: Case, bundle: Path) -> tuple[float, float]:
    """Return how far apart one round of FedAvg leaves the two models: of each tensor's norm, and of its change."""
    with _both(case, bundle, "fedavg", 1, FOR_ALL) as (served, names, folder):
        mixed, alone = (_model(served, folder, name) for name in names)
    before = bundle_weights(read_bundle(bundle))
    real = [name for name, values in alone.items() if values.dtype == np.float32 and values.size]
    apart = {name: float(np.linalg.norm(mixed[name] - alone[name])) for name in real}
    of_norm = max(apart[name] / max(float(np.linalg.norm(alone[name])), 1e-12) for name in real)
    changes = {name: float(np.linalg.norm(alone[name] - before[name])) for name in real}
    return of_norm, max(apart[name] / changes[name] for name in real if changes[name] > 0)


@contextmanager
def _both(
    case: Case, bundle: Path, method: str, rounds: int, programs: str = ""
) -> Iterator[tuple[dict[str, Any], tuple[str, str], Path]]:
    """Run the mixed federation, then the other one, and yield their coordinator, their names and a folder."""
    names = (f"{method}-mixed", f"{method}-alone")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_inputs(folder, case, SPEEDS)
        fields = {
            "model": bundle,
            "strategy": method,
            "settings": METHODS[method].format(rate=case.rate),
            "rounds": rounds,
        }
        seconds = case.whole_seconds if method == "perfedmask" else case.seconds
        fields |= {"epochs": case.epochs, "batch": case.batch, "seconds": seconds}
        fields |= {"data": folder / "test.npz", "programs": programs}
        for name in names:
            (folder / f"{name}.toml").write_text(FEDERATION.format(name=name, **fields), encoding="utf-8")
        with serving(folder, *(folder / f"{name}.toml" for name in names)) as served:
            for name, on_programs in zip(names, (PROGRAMS, ()), strict=True):
                run_devices(join_commands(folder, served, name, SPEEDS, on_programs), LONGEST)
            yield served, names, folder


def write_inputs(folder: Path, case: Case, speeds: Mapping[str, float]) -> None:
    """Write every device's samples and profile, and the samples that the coordinator tests with."""
    data = load(case.data)
    order = np.random.default_rng(0).permutation(len(data.train))
    x, y = data.batch(order[: (case.samples + 4) * len(speeds)])
    x_test, y_test = data.evenly(2000, "test")
    np.savez(folder / "test.npz", x=x[:100], y=y[:100], x_test=x_test, y_test=y_test)
    start = 0
    for number, (device, speed) in enumerate(speeds.items()):
        end = start + case.samples - 3 + 2 * number  # no multiples of a batch
        np.savez(folder / f"{device}.npz", x=x[start:end], y=y[start:end], x_test=x_test, y_test=y_test)
        for engine in ENGINES:
            path = folder / f"{device}-{engine}.json"
            path.write_text(json.dumps(_profile(speed, ENGINES[engine])), encoding="utf-8")
        start = end


def _profile(speed: float, engine: str) -> dict[str, Any]:
    """Return the profile of a device, which does not depend on its engine: so its plans do not either."""
    profile: dict[str, Any] = json.loads(json.dumps(PROFILE)) | {"engine": engine}
    for key in profile["cost"]:
        if "seconds" in key:
            profile["cost"][key] *= speed
    return profile


def join_commands(
    folder: Path, served: dict[str, Any], name: str, speeds: Mapping[str, float], on_programs: Sequence[str]
) -> dict[str, list[str]]:
    """Return the command by which each device takes part in a federation."""
    engines = {device: "executorch" if device in on_programs else "onnx" for device in speeds}
    join = [sys.executable, "-m", "edgefl", "join", pairing_uri(served, name), "--threads", "1"]
    return {
        device: [
            *join,
            *("--name", device, "--engine", engine, "--data", str(folder / f"{device}.npz")),
            *("--home", str(folder / name / device), "--profile", str(folder / f"{device}-{engine}.json")),
        ]
        for device, engine in engines.items()
    }


def _model(served: dict[str, Any], folder: Path, name: str) -> dict[str, np.ndarray[Any, Any]]:
    path = folder / f"{name}.safetensors"
    fed(served, "export", name, "--format", "weights", "--out", str(path))
    return load_file(path)


def _bundle(case: Case, folder: Path) -> Path:
    path = folder / f"{case.model}.zip"
    edgefl("export", "--model", case.model, "--programs", "--batch", str(case.batch), "--out", str(path))
    return path


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(CASES), help="separated by commas (default: all)")
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas (default: all)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--for-all", action="store_true", help="keep every device on rungs")
    args = parser.parse_args()
    good = True
    for name in args.data.split(","):
        with tempfile.TemporaryDirectory() as folder:
            case, bundle = CASES[name], _bundle(CASES[name], Path(folder))
            print(f"{case.model} on {name}, {args.rounds} rounds\n\n{HEADER}", flush=True)
            for method in args.methods.split(","):
                found = compare(case, bundle, method, args.rounds, FOR_ALL if args.for_all else "")
                print(found.row(), flush=True)
                good &= found.holds
            of_norm, of_change = model_difference(case, bundle)
            good &= of_norm <= 1e-4
            print(
                f"\none round of fedavg: {of_norm:.1e} of a tensor's norm, {of_change:.1e} of its change\n", flush=True
            )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

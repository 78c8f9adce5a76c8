"""One federation of ExecuTorch and onnxruntime devices over HTTP, beside the same one of onnxruntime devices alone.

    python -m benchmarks.mixed_engines [--data digits,fashion-mnist] [--methods fedavg,...] [--rounds 10]
                                       [--seeds 5,6,7] [--for-all]

Two devices run programs, three run graphs, each in a process of its own; they differ in speed, so they get different
parts of the model. Their numbers of samples are no multiples of a batch. Data, profiles, names and seeds are the same
in both federations. For every method the table has: updates that counted of those planned, refusals, rungs, and the
accuracy of both global models for every seed. With --for-all every device is kept on rungs, so that both federations
plan the same and only the engines differ; without it, onnxruntime devices get widths between the rungs.

Then, for one round of FedAvg on the same rungs: the largest relative difference of a tensor of the two new models. It
starts from a model that onnxruntime devices trained for a few rounds: in the first steps after initialisation, batch
norm over small weights and max pools over a constant background make much of any rounding. The same round is also run
by onnxruntime alone from weights that differ by a millionth, to tell what an engine adds to that.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from edgefl.artifacts.bundle import read_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.data import load
from edgefl.wire import encode_weights
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
seed = {seed}
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
WARM_ROUNDS = 3
"""Rounds before the one whose weights are compared."""
NUDGE = 1e-6
"""By how much the weights of the control differ, relative to each."""


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
    lengths: tuple[int, ...] = (200, 400)
    """Samples of each device, about, in the rounds whose weights are compared. Each step makes more of any rounding:
    only the shortest round must agree to 1e-4."""


CASES = {
    "digits": Case(
        data="digits",
        model="digits_cnn",
        batch=16,
        samples=280,
        seconds=0.5,
        whole_seconds=6.0,
        rate=0.05,
        lengths=(200, 280),
    ),
    "fashion-mnist": Case(
        data="fashion-mnist",
        model="cnn4",
        batch=32,
        samples=1500,
        seconds=30.0,
        whole_seconds=50.0,
        rate=0.01,
    ),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A method with devices of both engines, and with onnxruntime alone."""

    method: str
    counted: int
    """Updates that counted in the mixed federations."""
    expected: int
    refused: int
    rungs: Mapping[str, Sequence[str]]
    """The rungs of each device that runs programs, in the order of the rounds, for the first seed."""
    accuracies: Sequence[tuple[float, float]]
    """Mixed and alone, by seed."""

    @property
    def difference(self) -> float:
        """How far the mixed federations are above the others, on average."""
        return sum(mixed - alone for mixed, alone in self.accuracies) / len(self.accuracies)

    @property
    def holds(self) -> bool:
        """Whether every update counted and the accuracies are within one point on average."""
        return self.counted == self.expected and not self.refused and abs(self.difference) <= 0.01

    def row(self) -> str:
        """Return a line of the table."""
        rungs = "; ".join(f"{name}: {' -> '.join(key for key, _ in groupby(s))}" for name, s in self.rungs.items())
        mixed, alone = (" ".join(f"{100 * value:.2f}" for value in side) for side in zip(*self.accuracies, strict=True))
        points = f"{mixed} | {alone} | {100 * self.difference:+.2f}"
        return f"| {self.method} | {self.counted} of {self.expected} | {self.refused} | {points} | {rungs} |"


HEADER = (
    "| method | updates counted | refused | accuracy mixed, % | onnxruntime alone, % | mean difference | rungs |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


def compare(case: Case, bundle: Path, method: str, rounds: int, seeds: Sequence[int], programs: str = "") -> Outcome:
    """Run both federations of a method, once for each seed."""
    accuracies, rows = [], []
    for seed in seeds:
        with _both(case, (bundle, bundle), method, rounds, seed, programs) as (served, names, _):
            rows.append(task_rows(served, names[0], rounds))
            mixed, alone = (last_accuracy(served, name) for name in names)
            accuracies.append((mixed, alone))
    every = [row for found in rows for row in found]
    return Outcome(
        method=method,
        counted=sum(row["state"] == "done" and row["counted_in"] == row["round"] for row in every),
        expected=rounds * len(SPEEDS) * len(seeds),
        refused=sum(row["state"] == "refused" for row in every),
        rungs={name: [str(row["rung"]) for row in rows[0] if row["device"] == name] for name in PROGRAMS},
        accuracies=accuracies,
    )


def model_difference(case: Case, bundle: Path, *, control: bool = False) -> float:
    """Return how far apart one round of FedAvg leaves the two models, relative to each tensor's norm, at most.

    For the control, no device runs programs, and one federation starts from weights that differ a little.
    """
    with tempfile.TemporaryDirectory() as place:
        bundles = (_nudged(case, bundle, Path(place)) if control else bundle, bundle)
        with _both(case, bundles, "fedavg", 1, 5, FOR_ALL, () if control else PROGRAMS) as (served, names, folder):
            mixed, alone = (_model(served, folder, name) for name in names)
    real = [name for name, values in alone.items() if values.dtype == np.float32 and values.size]
    apart = {name: float(np.linalg.norm(mixed[name] - alone[name])) for name in real}
    return max(apart[name] / max(float(np.linalg.norm(alone[name])), 1e-12) for name in real)


def _trained(case: Case, bundle: Path, folder: Path) -> Path:
    """Return the bundle with the weights that onnxruntime devices trained for a few rounds."""
    with _both(case, (bundle, bundle), "fedavg", WARM_ROUNDS, 5, FOR_ALL, ()) as (served, names, place):
        weights = _model(served, place, names[0])
    return _with_weights(case, bundle, weights, folder / "trained")


def _nudged(case: Case, bundle: Path, folder: Path) -> Path:
    """Return the bundle with weights that differ by about a millionth."""
    draws = np.random.default_rng(1)
    weights = {
        name: (values * (1 + NUDGE * draws.standard_normal(values.shape))).astype(values.dtype)
        if values.dtype == np.float32
        else values
        for name, values in bundle_weights(read_bundle(bundle)).items()
    }
    return _with_weights(case, bundle, weights, folder / "nudged")


def _with_weights(case: Case, bundle: Path, weights: Mapping[str, np.ndarray[Any, Any]], folder: Path) -> Path:
    folder.mkdir()
    path = folder / "initial.safetensors"
    path.write_bytes(encode_weights(weights, {"model": read_bundle(bundle).graph.digest}))
    return _bundle(case, folder, "--weights", str(path))


@contextmanager
def _both(
    case: Case,
    bundles: tuple[Path, Path],
    method: str,
    rounds: int,
    seed: int,
    programs: str = "",
    on_programs: Sequence[str] = PROGRAMS,
) -> Iterator[tuple[dict[str, Any], tuple[str, str], Path]]:
    """Run the mixed federation, then the other one, and yield their coordinator, their names and a folder."""
    names = (f"{method}-mixed", f"{method}-alone")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_inputs(folder, case, SPEEDS)
        fields = {"strategy": method, "settings": METHODS[method].format(rate=case.rate), "rounds": rounds}
        seconds = case.whole_seconds if method == "perfedmask" else case.seconds
        fields |= {"epochs": case.epochs, "batch": case.batch, "seconds": seconds}
        fields |= {"data": folder / "test.npz", "programs": programs, "seed": seed}
        for name, bundle in zip(names, bundles, strict=True):
            text = FEDERATION.format(name=name, model=bundle, **fields)
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        with serving(folder, *(folder / f"{name}.toml" for name in names)) as served:
            for name, able in zip(names, (on_programs, ()), strict=True):
                run_devices(join_commands(folder, served, name, SPEEDS, able), LONGEST)
            yield served, names, folder


def write_inputs(folder: Path, case: Case, speeds: Mapping[str, float]) -> None:
    """Write every device's samples and profile, and the samples that the coordinator tests with."""
    data = load(case.data)
    order = np.random.default_rng(0).permutation(len(data.train))
    x, y = data.batch(order[: (case.samples + 4) * len(speeds)])
    x_test, y_test = data.batch(np.arange(len(data.test)), "test")
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


def _bundle(case: Case, folder: Path, *options: str) -> Path:
    path = folder / f"{case.model}.zip"
    edgefl("export", "--model", case.model, "--programs", "--batch", str(case.batch), *options, "--out", str(path))
    return path


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(CASES), help="separated by commas (default: all)")
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas (default: all)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seeds", default="5,6,7", help="separated by commas")
    parser.add_argument("--for-all", action="store_true", help="keep every device on rungs")
    args = parser.parse_args()
    good, seeds = True, [int(seed) for seed in args.seeds.split(",")]
    for name in args.data.split(","):
        with tempfile.TemporaryDirectory() as place:
            folder, case = Path(place), CASES[name]
            bundle = _bundle(case, folder)
            print(f"{case.model} on {name}, {args.rounds} rounds, seeds {args.seeds}\n\n{HEADER}", flush=True)
            for method in filter(None, args.methods.split(",")):
                found = compare(case, bundle, method, args.rounds, seeds, FOR_ALL if args.for_all else "")
                print(found.row(), flush=True)
                good &= found.holds
            trained = _trained(case, bundle, folder)
            for samples in case.lengths:
                short = replace(case, samples=samples, epochs=1)
                apart, control = model_difference(short, trained), model_difference(short, trained, control=True)
                good &= samples > case.lengths[0] or apart <= 1e-4
                print(f"\none round of fedavg, {samples} samples a device, of a tensor's norm: {apart:.1e};", end=" ")
                print(f"by onnxruntime alone from weights that differ by {NUDGE:.0e}: {control:.1e}", flush=True)
            print()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

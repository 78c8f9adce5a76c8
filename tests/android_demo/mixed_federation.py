"""One federation of two Java clients and two Python agents, beside the same one of four Python agents.

    python -m tests.android_demo.mixed_federation --rounds 10

Two of the devices are strong and two are weak, one of each in Java, so that their plans differ: narrower parts, frozen
layers. Data, profiles, names and seeds are the same in both federations, so the coordinator plans the same for both.
For every method the table has: updates that counted of those that were planned, the accuracy of the global model on
digits that no device has, and the largest difference of a weight after the first round.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from tests.android_demo.coordinator import (
    MODEL,
    PROFILE,
    fed,
    last_accuracy,
    pairing_uri,
    run_devices,
    serving,
    task_rows,
)
from tests.android_demo.java_client import JavaClient, java_client_jar

FEDERATION = """
[federation]
name = "{name}"
model = "{model}"
seed = 5
[strategy]
name = "{strategy}"
{settings}
[work]
epochs = 2
batch_size = 16
[rounds]
count = {rounds}
deadline = "5 min"
at_least = 4
keep_models = "no limit"
[selection]
devices = 4
wait_for = 4
[evaluation]
data = "{data}"
[budget]
adapt = false
seconds = 0.1
"""
METHODS = {
    "fedavg": "learning_rate = 0.05\nmomentum = 0.9",
    "perfedmask": "learning_rate = 0.05\nfine_tune_epochs = 0",
    "hermes": (
        "learning_rate = 0.05\nkept_target = 0.4\nprune_rate = 0.15\naccuracy_threshold = 0.3\nfine_tune_epochs = 0"
    ),
    "fedmrn": 'learning_rate = 0.3\nnoise_masks = "signed"\nnoise_bound = 0.05',
}
DEVICES = ("strong-1", "strong-2", "weak-1", "weak-2")
JAVA = ("strong-1", "weak-1")
SLOWER = 6
"""Times that a weak device takes as long as a strong one."""
LONGEST = 240
"""Seconds after which a federation counts as stuck."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A method with Java clients, and without."""

    method: str
    rounds: int
    counted: int
    """Updates of all rounds that counted, with Java clients."""
    expected: int
    kept: dict[str, float]
    """The smallest share of the parameters that each device had."""
    trained: dict[str, float]
    """The smallest share that it trained."""
    same_plans: bool
    java: tuple[str, ...]
    """The devices that are Java clients, as the coordinator knows them."""
    accuracy: float
    python_accuracy: float
    first_difference: float
    last_difference: float

    def row(self) -> str:
        """Return a line of the table."""
        points = f"{100 * self.accuracy:.2f} | {100 * self.python_accuracy:.2f}"
        shares = f"{min(self.kept.values()):.2f} | {min(self.trained.values()):.2f}"
        differences = f"{self.first_difference:.1e} | {self.last_difference:.1e}"
        counted = f"{self.counted} of {self.expected}"
        return f"| {self.method} | {self.rounds} | {counted} | {shares} | {points} | {differences} |"


HEADER = (
    "| method | rounds | updates counted | least kept | least trained | accuracy mixed, % | Python alone, % "
    "| largest difference, round 1 | at the end |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def compare(jar: Path, folder: Path, method: str, rounds: int) -> Comparison:
    """Run both federations of a method, each device in a process of its own."""
    names = (f"{method}-mixed", f"{method}-python")
    write_inputs(folder)
    files = [_write_federation(folder, name, method, rounds) for name in names]
    with serving(folder, *files) as served:
        for name in names:  # one after the other: two cores are not enough for eight devices
            java = JAVA if name.endswith("mixed") else ()
            run_devices(_commands(jar, folder / name, served, name, java), LONGEST)
        tasks = {name: task_rows(served, name, rounds) for name in names}
        mixed, python = (last_accuracy(served, name) for name in names)
        java_clients = _java_clients(served, names[0])
        first, last = (_difference(served, folder, names, number) for number in (1, rounds))
    rows = tasks[names[0]]
    return Comparison(
        method=method,
        rounds=rounds,
        counted=sum(row["state"] == "done" and row["counted_in"] == row["round"] for row in rows),
        expected=rounds * len(DEVICES),
        kept=_least(rows, "kept_fraction"),
        trained=_least(rows, "trained_fraction"),
        java=java_clients,
        same_plans=_plans(rows) == _plans(tasks[names[1]]),
        accuracy=mixed,
        python_accuracy=python,
        first_difference=first,
        last_difference=last,
    )


def write_inputs(folder: Path) -> None:
    """Write every device's digits and profile, and the digits that the coordinator tests with."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    x, y = (digits.images[order, None] / 16).astype(np.float32), digits.target[order].astype(np.int64)
    test = {"x_test": x[1400:], "y_test": y[1400:]}
    np.savez(folder / "test.npz", x=x[:1400], y=y[:1400], **test)
    for number, device in enumerate(DEVICES):
        mine = slice(350 * number, 350 * (number + 1))
        np.savez(folder / f"{device}.npz", x=x[mine], y=y[mine], **test)
        (folder / f"{device}.json").write_text(json.dumps(_profile(device)), encoding="utf-8")


def _profile(device: str) -> dict[str, Any]:
    profile: dict[str, Any] = json.loads(json.dumps(PROFILE))
    for key in profile["cost"]:
        if "seconds" in key and device.startswith("weak"):
            profile["cost"][key] *= SLOWER
    return profile


def _write_federation(folder: Path, name: str, method: str, rounds: int) -> Path:
    path = folder / f"{name}.toml"
    fields = {"name": name, "strategy": method, "settings": METHODS[method], "rounds": rounds}
    path.write_text(FEDERATION.format(model=MODEL, data=folder / "test.npz", **fields), encoding="utf-8")
    return path


def _commands(jar: Path, folder: Path, served: dict[str, Any], name: str, java: Sequence[str]) -> dict[str, list[str]]:
    found = {}
    for device in DEVICES:
        client = JavaClient(jar, folder / device, folder.parent / f"{device}.npz")
        profile = folder.parent / f"{device}.json"
        command = client.command(pairing_uri(served, name), "--name", device, "--profile", str(profile))
        if device not in java:
            command = [sys.executable, "-m", "edgefl", *command[command.index("join") :]]
        found[device] = command
    return found


def _least(tasks: list[dict[str, Any]], share: str) -> dict[str, float]:
    return {device: min(row[share] for row in tasks if row["device"] == device) for device in DEVICES}


def _plans(tasks: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((row["round"], row["device"], row["kept_fraction"], row["trained_fraction"]) for row in tasks)


def _java_clients(served: dict[str, Any], name: str) -> tuple[str, ...]:
    devices = json.loads(fed(served, "devices", name, "--json"))["devices"]
    return tuple(sorted(each["id"] for each in devices if each["software"].startswith("edgefl-java ")))


def _difference(served: dict[str, Any], folder: Path, names: Sequence[str], number: int) -> float:
    """Return the largest difference of any weight of the two global models after a round."""
    models = []
    for name in names:
        path = folder / f"{name}-{number}.safetensors"
        fed(served, "export", name, "--round", str(number), "--format", "weights", "--out", str(path))
        models.append(load_file(path))
    assert models[0].keys() == models[1].keys()
    return max(float(np.abs(models[0][tensor] - values).max(initial=0)) for tensor, values in models[1].items())


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas (default: all)")
    parser.add_argument("--jar", type=Path, help="the client (default: build it)")
    options = parser.parse_args()
    jar = options.jar or java_client_jar()
    sys.stdout.write(HEADER + "\n")
    good = True
    for method in options.methods.split(","):
        with tempfile.TemporaryDirectory() as folder:
            found = compare(jar, Path(folder), method, options.rounds)
        sys.stdout.write(found.row() + "\n")
        sys.stdout.flush()
        good &= found.counted == found.expected and abs(found.accuracy - found.python_accuracy) <= 0.01
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

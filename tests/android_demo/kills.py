"""Kill the Java client at random instants of everything it does, and see that it loses nothing and sends nothing twice.

    python -m tests.android_demo.kills --kills 50

One device, in a federation of a coordinator that runs as a process of its own, over TLS. It gets SIGKILL again and
again, in a moment that chance chooses: while it starts, enrols, takes a task, downloads, trains, writes a checkpoint,
its model or its result, sends, or cleans up. Each time it is started again. The kernel tells when a file appears, so
that moments of a millisecond are met too. Then it may finish, and is compared with a device that nobody disturbed:

    every task counts once, in its own round, with the same steps, loss and accuracy
    the global model and the device's own model are equal to the bit
    the device has noted each task once; nothing else is left of any, and there is one device, however often it enrolled
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.android_demo.coordinator import PROFILE, fed, pairing_uri, serving, write_digits, write_federation
from tests.android_demo.folder_events import CREATED, DELETED, RENAMED, WRITTEN, FolderEvents
from tests.android_demo.java_client import JavaClient, java_client_jar

LONGEST_LIFE = 60.0
"""Seconds after which a client that nobody killed counts as stuck."""
METHODS = {
    "fedavg": "learning_rate = 0.02\nmomentum = 0.9\nfine_tune_epochs = 4\nfine_tune_rate = 0.01",
    "fedmrn": 'noise_masks = "signed"\nnoise_bound = 0.05\nfine_tune_epochs = 4\nfine_tune_rate = 0.01',
}
EPOCHS, CHECKPOINT_SECONDS = 30, 0.05
ANSWERS = ("accepted", "already have it", "late")


@dataclass(frozen=True, slots=True)
class Moment:
    """When a client is killed: within some seconds of something that happens to a file, or of its start."""

    phase: str
    kind: int | None
    file: str
    seconds: float
    then: str = ""
    """A file that must be written to first."""

    def comes(self, process: "subprocess.Popen[bytes]", events: FolderEvents) -> bool:
        """Wait until it comes; return whether it did."""
        wanted = [(self.kind, self.file)] if self.kind else []
        wanted += [(WRITTEN, self.then)] if self.then else []
        end = time.monotonic() + LONGEST_LIFE
        while wanted and process.poll() is None and time.monotonic() < end:
            if events.has(*wanted[0], 0.2):
                del wanted[0]
        return not wanted


# The seconds are what the phase takes here, so that kills spread over all of it.
ENROLLING = (Moment("starting", None, "", 0.4), Moment("enrolling", RENAMED, "phone/device.json", 0.1))
MOMENTS = (
    Moment("starting", None, "", 0.4),
    Moment("coming back", RENAMED, "phone/device.json", 0.05),
    Moment("taking a task", CREATED, "task/plan.json.new", 0.002),
    Moment("downloading", CREATED, "cache/*.part", 0.0005),
    Moment("training", RENAMED, "task/plan.json", 0.4),
    Moment("writing a checkpoint", CREATED, "task/checkpoint.safetensors.new", 0.002),
    Moment("training on", RENAMED, "task/checkpoint.safetensors", 0.2),
    Moment("writing its model", CREATED, "model/trained.safetensors.new", 0.005),
    Moment("writing its result", CREATED, "task/result.safetensors.new", 0.002),
    Moment("sending", RENAMED, "task/result.safetensors", 0.015),
    Moment("waiting for its receipt", RENAMED, "task/result.safetensors", 0.005, "state/coordinator.sqlite-wal"),
    Moment("noting the receipt", CREATED, "phone/history.jsonl.new", 0.003),
    Moment("cleaning up", DELETED, "task/plan.json", 0.0005),
)


@dataclass
class Outcome:
    """What a run came to."""

    phases: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    """Files of tasks that were there after a kill."""
    answers: Counter[str] = field(default_factory=Counter)
    """What the coordinator said to results, as far as a client lived to hear it."""
    tasks: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """How often the client was killed."""
        return sum(self.phases.values())


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run(jar: Path, folder: Path, kills: int, seed: int, method: str = "fedavg") -> Outcome:
    """Run a federation with a client that is killed, and the same one with a client that is not."""
    profile, data = folder / "profile.json", write_digits(folder / "mine.npz")
    profile.write_text(json.dumps(PROFILE), encoding="utf-8")
    rounds = kills + 2
    names = ("killed", "undisturbed")
    files = [write_federation(folder, name, method, METHODS[method], EPOCHS, rounds) for name in names]
    options = ("--name", "phone", "--profile", str(profile), "--checkpoint-seconds", str(CHECKPOINT_SECONDS))
    with serving(folder, *files) as served:
        homes = {name: folder / name / "phone" for name in names}
        commands = {
            name: JavaClient(jar, home, data).command(pairing_uri(served, name), *options)
            for name, home in homes.items()
        }
        with (folder / "undisturbed.log").open("wb") as log:
            other = subprocess.Popen(commands["undisturbed"], stderr=log)
        outcome = _disturb(commands["killed"], homes["killed"], kills, random.Random(seed))
        outcome.tasks = rounds + 1
        with (folder / "killed/killed.log").open("ab") as log:
            if subprocess.run(commands["killed"], stderr=log, timeout=300).returncode or other.wait(300):
                outcome.problems.append(f"a client ended with an error: see {folder}")
        said = (folder / "killed/killed.log").read_text(encoding="utf-8").splitlines()
        outcome.answers.update(line.strip() for line in said if line.strip() in ANSWERS)
        outcome.problems += _compare(served, folder, rounds)
    outcome.problems += _leftovers(homes["killed"])
    return outcome


def _disturb(command: list[str], home: Path, kills: int, chance: random.Random) -> Outcome:
    """Start the client and kill it, again and again."""
    for name in ("task", "cache", "model"):
        (home / name).mkdir(parents=True)
    outcome, waiting = Outcome(), list[Moment]()
    while outcome.kills < kills:
        if not waiting:
            waiting = chance.sample(MOMENTS, len(MOMENTS))  # each in turn, in any order
        enrols = not _has_joined(home) and outcome.kills < max(1, kills // 10)
        moment = chance.choice(ENROLLING) if enrols else waiting.pop()
        if not _kill(command, home, moment, chance):
            outcome.problems.append(f"the moment of {moment.phase!r} did not come: see {home.parent}")
            break
        outcome.phases[moment.phase] += 1
        left = sorted(path.name for path in (*home.glob("task/*"), *home.glob("cache/*.part")))
        outcome.left.update("a download" if name.endswith(".part") else name for name in left)
        say(f"kill {outcome.kills:3}: {moment.phase:<23} left: {', '.join(left) or '-'}")
    return outcome


def _kill(command: list[str], home: Path, moment: Moment, chance: random.Random) -> bool:
    """Run the client until the moment, and return whether it came."""
    delay = chance.uniform(0, moment.seconds)
    with (
        FolderEvents([home, home / "task", home / "cache", home / "model", home.parents[1] / "state"]) as events,
        home.with_name("killed.log").open("ab") as log,
        subprocess.Popen(command, stderr=log) as process,
    ):
        try:
            came = moment.comes(process, events)
            time.sleep(delay)
        finally:
            process.kill()
        return came


def _has_joined(home: Path) -> bool:
    file = home / "device.json"
    return file.exists() and json.loads(file.read_text(encoding="utf-8"))["token"] is not None


def _compare(served: dict[str, Any], folder: Path, rounds: int) -> list[str]:
    """Return how the two federations differ."""
    problems, rows, models, tasks = [], {}, {}, list[str]()
    for name in ("killed", "undisturbed"):
        found = json.loads(fed(served, "telemetry", name, "--format", "json"))["rows"]
        rows[name] = [[row[key] for key in ("round", "device", "state", "steps", "loss", "accuracy")] for row in found]
        path = folder / f"{name}.safetensors"
        fed(served, "export", name, "--format", "weights", "--out", str(path))
        models[name] = (path.read_bytes(), _own_model(folder / name / "phone"))
        tasks = [row["task"] for row in found] if name == "killed" else tasks
        if [row[:3] for row in rows[name]] != [[number, "phone", "done"] for number in range(rounds + 1)]:
            problems.append(f"the tasks of {name!r} are {[row[:3] for row in rows[name]]}")
    if rows["killed"] != rows["undisturbed"]:
        pairs = zip(rows["killed"], rows["undisturbed"], strict=False)
        problems += [f"a task differs: {one}, {other}" for one, other in pairs if one != other]
    for which, pair in zip(("global model", "device's own model"), zip(*models.values(), strict=True), strict=True):
        if pair[0] != pair[1]:
            problems.append(f"the {which} is another one")
    noted = (folder / "killed/phone/history.jsonl").read_text(encoding="utf-8").splitlines()
    if [json.loads(line)["task_id"] for line in noted] != tasks:
        problems.append(f"the client has noted {len(noted)} tasks")
    devices = json.loads(fed(served, "devices", "killed", "--json"))["devices"]
    return problems + ([f"there are {len(devices)} devices"] if len(devices) != 1 else [])


def _own_model(home: Path) -> bytes:
    """Return the weights that the device trained last, for itself."""
    models = json.loads((home / "model/models.json").read_text(encoding="utf-8"))
    return (home / "model" / str(models["personal"])).read_bytes()


def _leftovers(home: Path) -> list[str]:
    temporary = home.with_name(home.name + "-tmp")
    left = [path.name for path in (*home.glob("task/*"), *home.glob("cache/*.part"), *temporary.glob("onnx*/*"))]
    return [f"left on the disk: {', '.join(left)}"] if left else []


def main() -> int:
    """Run it, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--method", choices=METHODS, default="fedavg")
    parser.add_argument("--jar", type=Path, help="the client (default: build it)")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        jar = options.jar or java_client_jar()
        outcome = run(jar, Path(folder), options.kills, options.seed, options.method)
        if outcome.problems:
            say((Path(folder) / "killed/killed.log").read_text(encoding="utf-8")[-4000:])
    for problem in outcome.problems:
        say(f"problem: {problem}")
    for what, counts in (("killed while", outcome.phases), ("left", outcome.left), ("answers heard:", outcome.answers)):
        say(f"{what} " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    say(
        f"{outcome.kills} kills, {outcome.tasks} tasks, {len(outcome.problems)} problems, "
        f"{time.monotonic() - began:.0f} s: {'differs' if outcome.problems else 'every task once, equal to the bit'}"
    )
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""An exact head with a Java device beside a Python one: sums, gradients and a personal head over HTTP."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.android_demo.coordinator import MODEL, fed, pairing_uri, run_devices, serving
from tests.android_demo.java_client import JavaClient
from tests.android_demo.mixed_federation import write_inputs

FEDERATION = """
[federation]
name = "heads"
model = "{model}"
seed = 5
[strategy]
name = "fedavg"
learning_rate = 0.05
momentum = 0.9
exact_head = "logistic"
head_rounds = 1
personal_head = "prior"
[work]
epochs = 1
batch_size = 16
[rounds]
count = 4
deadline = "2 min"
at_least = 2
keep_models = "no limit"
[selection]
devices = 2
wait_for = 2
[evaluation]
data = "{data}"
[budget]
adapt = false
"""
DEVICES = {"strong-1": "java", "strong-2": "python"}
SAMPLES = 315
"""Training samples of each device: 350, of which a tenth is held out."""


def commands(jar: Path, folder: Path, served: dict[str, Any]) -> dict[str, list[str]]:
    found = {}
    for device, language in DEVICES.items():
        client = JavaClient(jar, folder / device, folder / f"{device}.npz")
        profile = str(folder / f"{device}.json")
        command = client.command(pairing_uri(served, "heads"), "--name", device, "--profile", profile)
        if language == "python":
            command = [sys.executable, "-m", "edgefl", *command[command.index("join") :]]
        found[device] = command
    return found


def test_a_java_and_a_python_device_fit_one_head(client_jar: Path, tmp_path: Path) -> None:
    """Two rounds of training, one of sums, one of gradients; then each makes its head its own. Every update counts."""
    write_inputs(tmp_path)
    file = tmp_path / "heads.toml"
    file.write_text(FEDERATION.format(model=MODEL, data=tmp_path / "test.npz"), encoding="utf-8")
    with serving(tmp_path, file) as served:
        run_devices(commands(client_jar, tmp_path, served), 120)
        rows = json.loads(fed(served, "telemetry", "heads", "--format", "json"))["rows"]
        rounds = json.loads(fed(served, "rounds", "heads", "--json"))["rounds"]
        software = {
            each["id"]: each["software"].partition(" ")[0]
            for each in json.loads(fed(served, "devices", "heads", "--json"))["devices"]
        }
    assert {device: software[device] == "edgefl-java" for device in DEVICES} == {"strong-1": True, "strong-2": False}
    ended = {(row["round"], row["device"]): (row["state"], row["samples"]) for row in rows}
    assert ended == {(number, device): ("done", SAMPLES) for number in range(5) for device in DEVICES}
    assert all(row["counted_in"] == row["round"] for row in rows if row["round"] < 4)
    assert all((row["accuracy"] is None) == (row["round"] in (2, 3)) for row in rows)
    losses = {number: [row["loss"] for row in rows if row["round"] == number] for number in (2, 3)}
    assert max(losses[3]) < min(losses[2]), "the head that both fitted is better than the averaged one"
    accuracy = {each["number"]: each["report"].get("accuracy") for each in rounds}
    assert accuracy[3] >= accuracy[1]

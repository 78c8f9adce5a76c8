"""A whole federation of real processes: one coordinator, five devices of different budgets, ten rounds over HTTP."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from edgefl.masks import Array, full_mask
from edgefl.planning import predict
from edgefl.values import DeviceProfile
from edgefl.wire import BodyKind, decode
from tests.cli.running_coordinator import coordinator, joining
from tests.device_runtime.federation import BUNDLE, bundle
from tests.values.samples import PROFILE

ROUNDS, DEADLINE = 10, 120.0
SLOWNESS = (0.5, 1.5, 3.0, 5.0, 12.0)
"""What the whole model would take on each device, in the time that a round gives it."""

FEDERATION = f"""\
[federation]
name = "digits"
model = "{BUNDLE.name}"
seed = 3

[strategy]
name = "fedavg"
learning_rate = 0.1
momentum = 0.9

[work]
epochs = 2
batch_size = 32
most_steps = 20

[rounds]
count = {ROUNDS}
deadline = {DEADLINE}

[selection]
devices = 5
wait_for = 5

[evaluation]
data = "digits"

[budget]
adapt = false
"""


def profile_of(slowness: float) -> DeviceProfile:
    """A device on which a round of the whole model would take so many times what it may take."""
    fit = replace(
        PROFILE.cost, overhead_seconds=0.0, seconds_per_activation_byte=0.0, seconds_per_trained_parameter=0.0
    )
    base = replace(PROFILE, cost=fit, memory_free_bytes=2**33, memory_total_bytes=2**34)
    seconds = predict(base, full_mask(bundle().graph).cost, batch=32, steps=20).round_seconds
    assert seconds is not None
    factor = slowness * DEADLINE / 2 / seconds
    slower = replace(
        fit,
        forward_seconds_per_multiply_add=fit.forward_seconds_per_multiply_add * factor,
        backward_seconds_per_multiply_add=fit.backward_seconds_per_multiply_add * factor,
    )
    return replace(base, cost=slower)


def federate(folder: Path) -> dict[str, Any]:
    """Run the federation, and return what an operator sees at its end."""
    (folder / BUNDLE.name).write_bytes(BUNDLE.read_bytes())
    (folder / "federation.toml").write_text(FEDERATION)
    profiles = {number: profile_of(slowness) for number, slowness in enumerate(SLOWNESS, start=1)}
    with coordinator(folder / "state", str(folder / "federation.toml")) as server:
        key = server.key_of("digits")
        with joining(server.url, key, folder, *profiles, profiles=profiles) as devices:
            for device in devices:
                _, said = device.communicate(timeout=300)
                assert device.returncode == 0, said
        token = (folder / "state" / "admin-token").read_text().strip()
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as admin:
            path = "/v1/federations/digits"
            return {
                "overview": admin.get(path).json(),
                "rounds": admin.get(f"{path}/rounds").json()["rounds"],
                "telemetry": list(csv.DictReader(io.StringIO(admin.get(f"{path}/telemetry?format=csv").text))),
                "model": weights_of(admin.get(f"{path}/model?format=weights").content),
                "parts": {
                    number: weights_of(admin.get(f"{path}/devices/device-{number}/model?format=weights").content)
                    for number in range(1, 6)
                },
                "onnx": admin.get(f"{path}/devices/device-5/model?format=onnx").content,
            }


def weights_of(data: bytes) -> dict[str, Array]:
    return decode(data, kind=BodyKind.WEIGHTS).arrays


@pytest.mark.slow
def test_five_devices_of_different_budgets_teach_one_model_and_the_same_seed_gives_the_same_weights(
    tmp_path: Path,
) -> None:
    runs = []
    for run in range(2):
        folder = tmp_path / str(run)
        folder.mkdir()
        runs.append(federate(folder))
    first, second = runs
    assert first["overview"]["state"] == "finished"
    accuracies = [one["report"]["accuracy"] for one in first["rounds"]]
    assert len(accuracies) == ROUNDS
    assert accuracies[-1] > 0.9
    assert accuracies[-1] > accuracies[0]
    assert all(one["report"]["updates"] == 5 for one in first["rounds"])
    sizes = [sum(array.size for array in first["parts"][number].values()) for number in range(1, 6)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) >= 4
    seen = {(row["device"], int(row["round"])) for row in first["telemetry"]}
    assert seen == {(f"device-{number}", turn) for number in range(1, 6) for turn in range(ROUNDS)}
    assert len(first["onnx"]) > 1000
    for name, array in first["model"].items():
        np.testing.assert_array_equal(array, second["model"][name])

"""Freezing, channels and one-bit updates in one federation, compared with FedAvg: real processes over HTTP.

    python -m benchmarks.composition [--rounds 40] [--steps 60] [--tune 6]

One coordinator (`edgefl serve`) and five devices (`edgefl join`) of different budgets, twice: CNN4 on Fashion-MNIST,
clients of a Dirichlet partition, the same seed. First FedAvg, in which every device trains the whole model; then
PerFedMask's planned freezing on HeteroFL's widths with FedMRN's one-bit uplink. Both have the rates and the plain
descent of FedMRN's paper, and end with the same fine-tuning.
Printed: uplink bytes a round as the coordinator counted them, profiles and reports included, and accuracy before and
after personalisation on the devices' own validation data.
"""

import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from edgefl.artifacts.bundle import Bundle, write_bundle
from edgefl.masks import full_mask
from edgefl.planning import predict
from edgefl.values import DeviceProfile, dumps
from edgefl.values.formatting import format_part
from export.bundle import make_bundle
from export.model_source import open_source
from export.zoo import block_of
from tests.cli.running_coordinator import coordinator
from tests.values.samples import PROFILE

_BODIES_IN = 'edgefl_body_bytes_total{direction="in"}'
_SLOWNESS = (0.5, 1.5, 2.5, 4.0, 8.0)
"""What a round of the whole model would take on each device, in the time that a round gives it."""
_DEADLINE = 600.0
_BATCH = 32

_COMPOSED = """\
name = "perfedmask"
learning_rate = 0.1
momentum = 0.0
weight_decay = 0.0
schedule = "constant"
width = "levels"
sent = "masked_noise"
"""
_FEDAVG = """\
name = "fedavg"
learning_rate = 0.03
width = "full"
"""
_FEDERATION = """\
[federation]
name = "run"
model = "model.zip"
seed = 5
[strategy]
{strategy}
fine_tune_epochs = {tune}
fine_tune_rate = 0.03
[work]
epochs = 10
batch_size = {batch}
most_steps = {steps}
[rounds]
count = {rounds}
deadline = {deadline}
[selection]
devices = 5
wait_for = 5
[evaluation]
data = "fashion-mnist"
every = 5
[budget]
adapt = false
"""


def main() -> None:
    """Run both, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=60, help="training steps of a device in a round")
    parser.add_argument("--tune", type=int, default=6, help="epochs of fine-tuning")
    parser.add_argument("--partition", default="dirichlet:0.3")
    parser.add_argument("--clients", type=int, default=40, help="clients of the partition; five of them are used")
    args = parser.parse_args()
    source = open_source("cnn4", classes=None, sample=None, seed=0, weights=None)
    bundle = make_bundle(source.model, source.name, source.example, block_of=block_of)
    found = {}
    for name, strategy in (("fedavg", _FEDAVG), ("perfedmask x heterofl x fedmrn", _COMPOSED)):
        with tempfile.TemporaryDirectory() as folder:
            found[name] = _federate(Path(folder), bundle, strategy, args, whole=name == "fedavg")
        print(f"{name}: {_words(found[name])}", flush=True)
    before, after = found.values()
    print(f"uplink bytes a round: 1/{before['up'] / after['up']:.1f} of FedAvg's")
    print(f"personal accuracy: {100 * (after['personal'] - before['personal']):+.1f} points beside FedAvg's")


def _federate(folder: Path, bundle: Bundle, strategy: str, args: argparse.Namespace, *, whole: bool) -> dict[str, Any]:
    write_bundle(bundle, folder / "model.zip")
    text = _FEDERATION.format(
        strategy=strategy, tune=args.tune, batch=_BATCH, steps=args.steps, rounds=args.rounds, deadline=_DEADLINE
    )
    (folder / "federation.toml").write_text(text)
    with coordinator(folder / "state", str(folder / "federation.toml"), "--log-level", "warning") as server:
        devices = [
            _join(
                server.url, server.key_of("run"), folder, number, _profile(bundle, 0.5 if whole else slow, args), args
            )
            for number, slow in enumerate(_SLOWNESS, start=1)
        ]
        for device in devices:
            _, said = device.communicate()
            if device.returncode:
                raise SystemExit(said)
        token = (folder / "state" / "admin-token").read_text().strip()
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as admin:
            told = admin.get("/v1/federations/run").json()
            rows = list(csv.DictReader(io.StringIO(admin.get("/v1/federations/run/telemetry?format=csv").text)))
            metrics = admin.get("/metrics").text
    (up,) = (float(line.split()[1]) for line in metrics.splitlines() if line.startswith(_BODIES_IN))
    down = sum(int(row["down_bytes"]) for row in rows if int(row["round"]) < args.rounds)
    tuned = {row["device"]: float(row["accuracy"]) for row in rows if int(row["round"]) == args.rounds}
    for name, accuracy in sorted(tuned.items()):
        print(f"    {name}: {accuracy:.1%} after personalisation")
    if len(tuned) != len(_SLOWNESS):
        raise SystemExit(f"only {len(tuned)} devices made the model their own: the means are not of the same devices")
    return {
        "up": up / args.rounds,
        "down": down / args.rounds,
        "accuracy": told["accuracy"],
        "judged": told["judged_fraction"],
        "before": told["personal"]["device_accuracy_before"],
        "personal": told["personal"]["device_accuracy"],
    }


def _words(found: dict[str, Any]) -> str:
    return (
        f"{found['up']:,.0f} bytes up and {found['down']:,.0f} down a round, global accuracy {found['accuracy']:.1%}"
        f"{format_part(found['judged'])}, "
        f"on the devices {found['before']:.1%} before and {found['personal']:.1%} after personalisation"
    )


def _profile(bundle: Bundle, slowness: float, args: argparse.Namespace) -> DeviceProfile:
    """Return a device on which a round of the whole model takes so many times what it may take."""
    fit = replace(PROFILE.cost, overhead_seconds=0.0, seconds_per_activation_byte=0.0)
    base = replace(PROFILE, cost=fit, memory_free_bytes=2**33, memory_total_bytes=2**34)
    seconds = predict(base, full_mask(bundle.graph).cost, batch=_BATCH, steps=args.steps).round_seconds
    factor = slowness * _DEADLINE / 2 / (seconds or 1.0)
    slower = replace(
        fit,
        forward_seconds_per_multiply_add=fit.forward_seconds_per_multiply_add * factor,
        backward_seconds_per_multiply_add=fit.backward_seconds_per_multiply_add * factor,
        seconds_per_trained_parameter=fit.seconds_per_trained_parameter * factor,
    )
    return replace(base, cost=slower)


def _join(
    url: str, key: str, folder: Path, number: int, profile: DeviceProfile, args: argparse.Namespace
) -> "subprocess.Popen[str]":
    (folder / f"profile-{number}.json").write_text(dumps(profile), encoding="utf-8")
    words = ["join", url, "--name", f"device-{number}", "--home", str(folder / f"{number}"), "--threads", "1"]
    words += ["--data", "fashion-mnist", "--client", f"{number}/{args.clients}", "--partition", args.partition]
    words += ["--profile", str(folder / f"profile-{number}.json")]
    environment = os.environ | {"EDGEFL_JOIN_KEY": key}
    command = [sys.executable, "-m", "edgefl", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


if __name__ == "__main__":
    main()

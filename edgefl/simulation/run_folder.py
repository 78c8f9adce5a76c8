"""A run in a folder: its request, the results of every round and device, and the final models.

    request.json          what was asked (`edgefl.simulation.request`)
    model.zip             the bundle that it started from
    fleet.json            the devices: class, samples of each label
    rounds.jsonl          one line a round, with what every device did in it
    parts.json            of each device's last part: which layers it trains, which channels it keeps
    masks/                those parts as masks, for `edgefl inspect`
    personal.json         how good the last model is for each device, before and after it made the model its own
    weights.safetensors   the global model in the end, all of it
    held.safetensors      the mask of the part of it that devices hold: the part that was judged
    summary.json          the whole run in a few figures; its presence means that the run came to its end

`edgefl simulate` writes it while it goes on; `edgefl report` and `edgefl compare` read it, a run under way too.
"""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.artifacts.artifact_store import write_atomically
from edgefl.artifacts.bundle import Bundle, write_bundle
from edgefl.charts.device_parts import DevicePart, part_of
from edgefl.errors import EdgeFLError, SchemaError
from edgefl.masks import Mask, Weights
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.request import SimulationRequest, read_request
from edgefl.simulation.results import PersonalResult, RoundResult
from edgefl.simulation.summary import Summary
from edgefl.values import dumps, from_json, loads, to_json
from edgefl.wire import encode_mask, encode_weights

__all__ = ["FleetRow", "Run", "RunFolder", "read_run"]

_MOST_MASKS = 1000
"""Devices whose masks are kept."""


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One device, for tables."""

    device_id: str
    kind: str
    """Its class."""
    labels: tuple[int, ...]
    """Training samples of each label."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was read."""

    path: Path
    request: SimulationRequest
    fleet: tuple[FleetRow, ...]
    rounds: tuple[RoundResult, ...]
    parts: tuple[DevicePart, ...]
    personal: PersonalResult | None
    summary: Summary | None
    """None while the run goes on, and if it was interrupted."""


class RunFolder:
    """Writes a run."""

    def __init__(self, path: Path, request: SimulationRequest, bundle: Bundle, fleet: Sequence[FleetDevice]) -> None:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise EdgeFLError(f"{path} exists already", fix="Choose another folder with --out, or remove it.")
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        (path / "request.json").write_text(dumps(request, indent=2) + "\n", encoding="utf-8")
        write_bundle(bundle, path / "model.zip")
        rows = [to_json(_row(device)) for device in fleet]
        (path / "fleet.json").write_text(json.dumps(rows) + "\n", encoding="utf-8")
        (path / "rounds.jsonl").touch()

    def add_round(self, result: RoundResult) -> None:
        """Add a finished round."""
        with (self.path / "rounds.jsonl").open("a", encoding="utf-8") as file:
            file.write(dumps(result) + "\n")

    def finish(
        self,
        weights: Weights,
        held: Mask,
        masks: Mapping[str, Mask],
        personal: PersonalResult | None,
        summary: Summary,
    ) -> None:
        """Write the final models and the summary; `held` is the part of the global model that devices hold."""
        some = dict(list(masks.items())[:_MOST_MASKS])
        (self.path / "masks").mkdir(exist_ok=True)
        for device, mask in some.items():
            (self.path / "masks" / f"{device}.safetensors").write_bytes(encode_mask(mask))
        parts = [to_json(part_of(device, mask)) for device, mask in some.items()]
        (self.path / "parts.json").write_text(json.dumps(parts) + "\n", encoding="utf-8")
        if personal is not None:
            (self.path / "personal.json").write_text(dumps(personal) + "\n", encoding="utf-8")
        (self.path / "weights.safetensors").write_bytes(encode_weights(weights, {}))
        (self.path / "held.safetensors").write_bytes(encode_mask(held))
        write_atomically(self.path / "summary.json", (dumps(summary, indent=2) + "\n").encode())


def read_run(path: Path) -> Run:
    """Read a run, finished or not."""
    if not (path / "request.json").is_file():
        raise EdgeFLError(f"{path} is not a run folder", fix="Give a folder that `edgefl simulate --out` wrote.")
    try:
        summary = path / "summary.json"
        return Run(
            path,
            read_request((path / "request.json").read_bytes()),
            tuple(from_json(FleetRow, row) for row in _json(path / "fleet.json")),
            tuple(loads(RoundResult, line) for line in _lines(path / "rounds.jsonl")),
            tuple(from_json(DevicePart, row) for row in _json(path / "parts.json")),
            loads(PersonalResult, (path / "personal.json").read_bytes()) if (path / "personal.json").exists() else None,
            loads(Summary, summary.read_bytes()) if summary.exists() else None,
        )
    except (SchemaError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise SchemaError(f"{path} cannot be read: {error}", fix="Simulate it again.") from None


def _json(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else []


def _lines(path: Path) -> list[str]:
    """Return the complete lines of a file that may still be written to."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def _row(device: FleetDevice) -> FleetRow:
    dataset = device.data.dataset
    labels = np.bincount(dataset.train.labels[device.data.split.train], minlength=dataset.classes)
    return FleetRow(device.device_id, device.kind.name, tuple(int(count) for count in labels))

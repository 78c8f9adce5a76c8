"""The results of a run over HTTP, from the coordinator's reports and the devices' folders."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from device_runtime.personal_model import load_personal
from edgefl.artifacts.bundle import Bundle, pack_bundle
from edgefl.errors import EdgeFLError
from edgefl.federation.evaluation import Score, networks_in
from edgefl.masks import Mask, Weights
from edgefl.simulation.device_rounds import kept_fraction
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.jobs import evaluation_of
from edgefl.simulation.request import SimulationInputs, SimulationRequest
from edgefl.simulation.results import DeviceRound, Fate, PersonalResult, RoundResult
from edgefl.simulation.task_time import spent_by
from edgefl.simulation.worker import SimulationWorker
from edgefl.strategies import Model
from edgefl.wire import BodyKind, decode, decode_mask

__all__ = ["Download", "final_results", "round_results"]

Download = Callable[..., bytes]
_FATES = {"done": Fate.ARRIVED, "refused": Fate.REFUSED, "late": Fate.LATE}


def round_results(
    get: Download, name: str, bundle: Bundle, found: SimulationInputs, known: Sequence[RoundResult], count: int
) -> list[RoundResult]:
    """Return the rounds from the known ones to `count`, from the coordinator's reports and the devices' telemetry.

    Its mask is the one that a device has by now: that of the round, if it was its last one.
    """
    rows = json.loads(get(f"/v1/federations/{name}/telemetry"))["rows"]
    devices = {device.device_id: device for device in found.fleet}
    results, began_at = [], sum(result.simulated_seconds for result in known)
    for told in json.loads(get(f"/v1/federations/{name}/rounds"))["rounds"]:
        if not len(known) <= told["number"] < count:
            continue
        report = told["report"] or {}
        mine = sorted((row for row in rows if row["round"] == told["number"]), key=lambda row: str(row["device"]))
        done = tuple(
            _device_round(devices[row["device"]], row, part_mask(get, name, row["device"], bundle)) for row in mine
        )
        took = max((one.simulated_seconds for one in done), default=0.0)
        score = None
        if report.get("accuracy") is not None:
            score = Score(report["accuracy"], report["test_loss"], report["test_samples"], report["judged_fraction"])
        seconds = told["done_at"] - told["opened_at"]
        results.append(RoundResult(told["number"], done, score, seconds, began_at, took))
        began_at += took
    return results


def part_mask(get: Download, name: str, device: str, bundle: Bundle) -> Mask | None:
    """Return a device's mask; None if it never took part."""
    try:
        return decode_mask(get(f"/v1/federations/{name}/devices/{device}/model", {"format": "mask"}), bundle.graph)
    except EdgeFLError:
        return None


def _device_round(device: FleetDevice, row: Mapping[str, Any], mask: Mask | None) -> DeviceRound:
    up, down = row["up_bytes"] or 0, row["down_bytes"] or 0
    took = spent_by(device.kind, row["predicted_seconds"] or 0.0, row["predicted_peak_bytes"] or 0, down, up)
    return DeviceRound(
        device_id=device.device_id,
        kept_fraction=row["kept_fraction"] or 0.0,
        trained_fraction=row["trained_fraction"] or 0.0,
        down_bytes=down,
        setup_bytes=0,
        up_bytes=up,
        steps=row["steps"] or 0,
        multiply_adds=0,
        predicted_seconds=row["predicted_seconds"],
        measured_seconds=row["round_seconds"] or 0.0,
        step_seconds=row["p50_step_seconds"] or 0.0,
        loss=row["loss"] or 0.0,
        own_accuracy=row["accuracy"],
        refused=row["refusal_reason"],
        mask="" if mask is None else mask.digest,
        fate=_FATES.get(row["state"], Fate.LOST),
        simulated_seconds=took.seconds,
        joules=took.joules,
        peak_bytes=took.peak_bytes,
        samples=row["samples"] or 0,
    )


def final_results(
    get: Download, name: str, bundle: Bundle, found: SimulationInputs, homes: Path, request: SimulationRequest
) -> tuple[dict[str, Mask], Weights, Mask, PersonalResult | None]:
    """Return the devices' masks, the global model, the part of it that they hold, and the accuracy for every device."""
    weights = decode(get(f"/v1/federations/{name}/model", {"format": "weights"}), kind=BodyKind.WEIGHTS).arrays
    held = decode_mask(get(f"/v1/federations/{name}/model", {"format": "mask", "part": "held"}), bundle.graph)
    parts = {device.device_id: part_mask(get, name, device.device_id, bundle) for device in found.fleet}
    masks = {device: mask for device, mask in parts.items() if mask is not None}
    personal = _evaluated(bundle, found, homes, masks, weights) if request.personalise else None
    return masks, weights, held, personal


def _evaluated(
    bundle: Bundle, found: SimulationInputs, homes: Path, masks: Mapping[str, Mask], weights: Weights
) -> PersonalResult:
    """Evaluate each device's submodel of the global model, and its own model, on its own test samples."""
    worker = SimulationWorker(pack_bundle(bundle), found.fleet)
    model = Model(bundle.graph, weights)
    before, after, kept = {}, {}, {}
    for place, device in enumerate(found.fleet):
        mask = masks.get(device.device_id)
        if mask is None or not len(device.test):
            continue
        before[device.device_id] = _own_accuracy(worker, place, networks_in(found.strategy, model, mask))
        kept[device.device_id] = kept_fraction(mask)
        try:
            own = load_personal(homes / device.device_id / "personal")
        except EdgeFLError:
            after[device.device_id] = before[device.device_id]
            continue
        after[device.device_id] = _own_accuracy(worker, place, own.networks)
        kept[device.device_id] = kept_fraction(own.mask)
    return PersonalResult(before, after, kept, (), 0.0)


def _own_accuracy(worker: SimulationWorker, place: int, networks: Sequence[Weights]) -> float:
    return worker.evaluate(replace(evaluation_of(networks), device=place)).accuracy

"""One run of the study: a strategy in a set-up with a seed, in this process, and its figures as plain numbers."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.accuracy_study.data import dataset_of, of_own_classes
from benchmarks.accuracy_study.entries import Entry, Limit, levels_for, settings_in
from benchmarks.accuracy_study.overlaps import overlap_of
from benchmarks.accuracy_study.setups import Setup
from edgefl.artifacts.bundle import Bundle, read_bundle
from edgefl.errors import EdgeFLError
from edgefl.federation import EvaluationSettings, FederationSettings, RoundSettings, SelectionSettings
from edgefl.local_rules.probabilistic_masks import Extraction
from edgefl.model_graph import ModelGraph
from edgefl.simulation import (
    DeviceClass,
    DeviceRound,
    FleetDevice,
    PersonalResult,
    RoundResult,
    SimulatedFederation,
    fleet_of,
)
from edgefl.strategies import strategy_of
from edgefl.strategies.fedmap import FedMAP
from edgefl.values import Budget, LocalWork, Setting
from edgefl.wire import BodyKind, decode

__all__ = ["Run", "federation_of", "run"]

LATE = 0.3
"""The share of the rounds, at the end, over which the late accuracy is averaged: it depends less on the last one."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be run."""

    setup: Setup
    entry: Entry
    seed: int
    models: Path
    """Where bundles and initial weights are."""


def run(wanted: Run) -> dict[str, Any]:
    """Do a run, and return its figures; what goes wrong is one of them."""
    began, cpu = time.perf_counter(), time.process_time()
    said: dict[str, Any] = {
        "setup": wanted.setup.name,
        "label": wanted.entry.label,
        "strategy": wanted.entry.strategy,
        "settings": settings_in(wanted.setup, wanted.entry),
        "limit": wanted.entry.limit.value,
        "seed": wanted.seed,
    }
    try:
        said |= _figures(wanted)
    except EdgeFLError as error:
        said["error"] = f"{type(error).__name__}: {error}"
    said["seconds"], said["processor_seconds"] = time.perf_counter() - began, time.process_time() - cpu
    return said


def _figures(wanted: Run) -> dict[str, Any]:
    setup = wanted.setup
    with federation_of(wanted) as federation:
        rounds = list(federation.rounds())
        overlap, chance = overlap_of(federation)
        series = _series_by_size(federation, setup.sizes)
        personal = federation.personalise()
        told = _told(wanted, federation.model.graph)
        if wanted.entry.fine_tuned:
            series["fine-tuned"] = _fine_tuned(federation, wanted.entry, told)
    return _summary(rounds, personal) | {
        "settings": told,
        "overlap": overlap,
        "overlap_by_chance": chance,
        "series": series,
        "curve": [_point(result) for result in rounds],
    }


def federation_of(wanted: Run) -> SimulatedFederation:
    """Return the federation of a run, before its first round."""
    setup, name = wanted.setup, wanted.setup.model
    bundle = read_bundle(wanted.models / f"{name}.zip")
    weights = decode((wanted.models / f"{name}-{wanted.seed}.safetensors").read_bytes(), kind=BodyKind.WEIGHTS).arrays
    settings = FederationSettings(
        name="study",
        rounds=RoundSettings(count=max(1, round(setup.rounds * wanted.entry.rounds)), deadline=1e6),
        selection=SelectionSettings(devices=setup.per_round),
        seed=wanted.seed,
        work=LocalWork(epochs=min(wanted.entry.epochs or setup.epochs, setup.epochs), batch_size=setup.batch),
        evaluation=EvaluationSettings(data="study", every=setup.evaluate_every),
    )
    strategy = strategy_of(wanted.entry.strategy, _told(wanted, bundle.graph))
    return SimulatedFederation(bundle, _fleet(wanted, bundle), strategy, settings, weights=weights)


def _told(wanted: Run, graph: ModelGraph) -> dict[str, Setting]:
    """Return what the strategy is told."""
    told = settings_in(wanted.setup, wanted.entry)
    if wanted.entry.fitted_levels:
        told["levels"] = levels_for(graph, wanted.setup.capacities)
    return told


def _fleet(wanted: Run, bundle: Bundle) -> tuple[FleetDevice, ...]:
    setup = wanted.setup
    capacities = wanted.entry.capacities or setup.capacities
    kinds = [_kind(setup, wanted.entry.limit, capacity, bundle) for capacity in capacities]
    data = dataset_of(setup.data, setup.train, setup.test)
    divide = partial(fleet_of, scheme=setup.scheme, seed=wanted.seed, matched=setup.matched)
    if not setup.own_classes:
        return divide(data, clients=setup.clients, classes=kinds)
    shares = zip(kinds, of_own_classes(data, len(kinds)), strict=True)
    fleets = [divide(own, clients=setup.clients // len(kinds), classes=[kind]) for kind, own in shares]
    return tuple(device for fleet in fleets for device in fleet)


def _kind(setup: Setup, limit: Limit, capacity: float, bundle: Bundle) -> DeviceClass:
    """Return the kind of device that can do this share of the whole."""
    name = f"d{capacity:g}"
    if capacity == 1 or limit is Limit.NOTHING:
        return DeviceClass(name=name, memory_bytes=2**40)
    if limit is Limit.EPOCHS:
        return DeviceClass(name=name, memory_bytes=2**40, most_epochs=max(1, setup.epochs // 2))
    limits = {
        Limit.TRAINED: Budget(trainable_parameters=int(capacity * bundle.graph.parameters)),
        Limit.KEPT: Budget(kept_fraction=capacity),
        Limit.DENSITY: Budget(weight_density=capacity),
    }
    return DeviceClass(name=name, memory_bytes=2**40, limits=limits[limit])


def _series_by_size(federation: SimulatedFederation, sizes: Sequence[float]) -> dict[str, dict[str, float | None]]:
    """Return the accuracy of extracted submodels by size; of FedMAP's drawn ones too (section 5.2)."""
    found = {"size": {str(size): _extracted(federation, size) for size in sizes}} if sizes else {}
    if sizes and isinstance(federation.strategy, FedMAP):
        usual, federation.strategy = federation.strategy, replace(federation.strategy, extraction=Extraction.SAMPLE)
        found["size, drawn"] = {str(size): _extracted(federation, size) for size in sizes}
        federation.strategy = usual
    return found


def _extracted(federation: SimulatedFederation, size: float) -> float | None:
    score = federation.extracted(size)[1]
    return None if score is None else score.accuracy


def _fine_tuned(federation: SimulatedFederation, entry: Entry, told: Mapping[str, Setting]) -> dict[str, float | None]:
    """Return the devices' accuracy by epochs of fine-tuning, each from the last model."""
    found = {}
    for epochs in entry.fine_tuned:
        federation.strategy = strategy_of(entry.strategy, {**told, "fine_tune_epochs": epochs})
        found[str(epochs)] = federation.personalise().mean_after
    return found


def _summary(rounds: list[RoundResult], personal: PersonalResult) -> dict[str, Any]:
    done = [one for result in rounds for one in result.devices if one.refused is None]
    scores = [result.score.accuracy for result in rounds if result.score is not None]
    refused = sorted({one.refused for result in rounds for one in result.devices if one.refused is not None})
    return {
        "accuracy": scores[-1],
        "judged_fraction": [result.score.judged_fraction for result in rounds if result.score is not None][-1],
        "late_accuracy": statistics.fmean(scores[-max(1, round(LATE * len(scores))) :]),
        "before": personal.mean_before,
        "after": personal.mean_after,
        "up_bytes": _mean([one.up_bytes for one in done]),
        "down_bytes": _mean([one.down_bytes for one in done]),
        "setup_bytes": sum(one.setup_bytes for result in rounds for one in result.devices),
        "multiply_adds": _mean([one.multiply_adds for one in done]),
        "trained_fraction": _mean([one.trained_fraction for one in done]),
        "kept_fraction": _mean(list(personal.kept_fraction.values())),
        "step_milliseconds": 1000 * statistics.median([one.step_seconds for one in done]) if done else None,
        "updates": len(done),
        "refused": refused[:3],
    }


def _point(result: RoundResult) -> dict[str, Any]:
    return {
        "round": result.number + 1,
        "accuracy": None if result.score is None else result.score.accuracy,
        "loss": None if result.score is None else result.score.loss,
        "own_accuracy": result.own_accuracy,
        "up_bytes": result.up_bytes,
        "down_bytes": result.down_bytes,
        "kept_fraction": _mean([one.kept_fraction for one in _done(result)]),
    }


def _done(result: RoundResult) -> list[DeviceRound]:
    return [one for one in result.devices if one.refused is None]


def _mean(values: list[int] | list[float]) -> float | None:
    return sum(values) / len(values) if values else None

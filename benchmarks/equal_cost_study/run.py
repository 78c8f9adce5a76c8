"""One run: a method in a scenario with a seed, for the scenario's time, and its figures as plain numbers."""

import logging
import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.accuracy_study.data import dataset_of, of_own_classes
from benchmarks.equal_cost_study.methods import Method, fitting_width, round_seconds
from benchmarks.equal_cost_study.scenarios import Scenario
from edgefl.artifacts.bundle import Bundle, read_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.artifacts.widen import widen
from edgefl.errors import EdgeFLError
from edgefl.federation import EvaluationSettings, FederationSettings, RoundSettings, SelectionSettings
from edgefl.federation.evaluation import networks_in
from edgefl.masks import leading_channels
from edgefl.model_graph import ModelGraph
from edgefl.planning import predict
from edgefl.simulation import DeviceClass, FleetDevice, SimulatedFederation, fleet_of
from edgefl.simulation.device_class import simulated_profile
from edgefl.simulation.run_cost import costs_of
from edgefl.strategies import strategy_of
from edgefl.strategies.held_part import judged_part
from edgefl.values import LocalWork
from edgefl.wire import BodyKind, decode

__all__ = ["Run", "run"]

_SLACK = 1.02


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be run."""

    setup: Scenario
    entry: Method
    seed: int
    models: Path


def run(wanted: Run) -> dict[str, Any]:
    """Do a run, and return its figures; what goes wrong is one of them."""
    logging.getLogger("edgefl").setLevel(logging.ERROR)  # that a device is left out is what some methods are about
    said = {"setup": wanted.setup.name, "label": wanted.entry.label, "seed": wanted.seed, "rate": wanted.entry.rate}
    try:
        return said | _figures(wanted)
    except EdgeFLError as error:
        return said | {"error": f"{type(error).__name__}: {error}"}


def _figures(wanted: Run) -> dict[str, Any]:
    scenario, method = wanted.setup, wanted.entry
    bundle = read_bundle(wanted.models / f"{scenario.model}.zip")
    deadline = _deadline(bundle.graph, scenario)
    fits = partial(_fits, bundle.graph, scenario, deadline)
    fitting = [fitting_width(partial(fits, kind)) for kind in scenario.kinds]
    wide = widen(bundle, method.widen(fitting, scenario.clients), seed=wanted.seed)
    weights = None
    if wide.graph.digest == bundle.graph.digest:
        body = (wanted.models / f"{scenario.model}-{wanted.seed}.safetensors").read_bytes()
        weights = decode(body, kind=BodyKind.WEIGHTS).arrays
    limit = _slowest(bundle.graph, scenario) if method.waits else deadline
    budget = scenario.rounds * (deadline + scenario.transfers)
    told = method.told(fitting, scenario.clients)
    open_ = partial(_federation, wanted, wide, weights, limit + scenario.transfers, told)
    with open_(3) as probe:
        took = [result.simulated_seconds for result in probe.rounds()]
    each, last = max(took[:-1]), took[-1] if method.head else 0.0
    count = max(int((budget - last) / max(each, 1e-9)), 1) + method.head
    with open_(count) as federation:
        rounds = list(federation.rounds())
        part = judged_part(federation.strategy, federation.model)
        networks = networks_in(federation.strategy, federation.model, part)
        inference = _inference(federation, len(networks))
    costs = list(costs_of(rounds))
    scores = [None if result.score is None else result.score.accuracy for result in rounds]
    return {
        "rounds": count,
        "widths": fitting,
        "accuracy": scores[-1],
        "seconds": costs[-1].seconds,
        "budget": budget,
        "joules": costs[-1].joules,
        "up_bytes": costs[-1].up_bytes / scenario.clients,
        "down_bytes": costs[-1].down_bytes / scenario.clients,
        "inference": inference / max(leading_channels(bundle.graph, 1.0).cost.forward_multiply_adds, 1),
        "devices": statistics.fmean(len(result.devices) for result in rounds),
        "refused": sorted({one.refused for result in rounds for one in result.devices if one.refused})[:3],
        "curve": [
            {"seconds": cost.seconds, "joules": cost.joules, "up_bytes": cost.up_bytes, "accuracy": score}
            for cost, score in zip(costs, scores, strict=True)
            if score is not None
        ],
    }


def _inference(federation: SimulatedFederation, networks: int) -> int:
    """Return the multiply-adds of a prediction with what is judged."""
    part = judged_part(federation.strategy, federation.model)
    split = getattr(federation.strategy, "networks", None)
    masks = [part] if split is None or networks == 1 else split(part)
    return sum(mask.cost.forward_multiply_adds for mask in masks)


def _federation(
    wanted: Run, bundle: Bundle, weights: Any, deadline: float, told: dict[str, Any], count: int
) -> SimulatedFederation:
    scenario = wanted.setup
    settings = FederationSettings(
        name="equal-cost",
        rounds=RoundSettings(count=count, deadline=deadline),
        round_share=1.0,
        selection=SelectionSettings(devices=scenario.clients),
        seed=wanted.seed,
        work=LocalWork(epochs=100, batch_size=scenario.batch, most_steps=scenario.steps),
        evaluation=EvaluationSettings(data="study", every=max(1, count // 6)),
    )
    strategy = strategy_of(wanted.entry.strategy, told)
    start = bundle_weights(bundle) if weights is None else weights
    return SimulatedFederation(bundle, _fleet(wanted), strategy, settings, weights=start)


def _fleet(wanted: Run) -> tuple[FleetDevice, ...]:
    scenario, data = wanted.setup, dataset_of(wanted.setup.data, wanted.setup.train, None)
    divide = partial(fleet_of, scheme=scenario.scheme, seed=wanted.seed, validation=0.0, test=0.0)
    if not scenario.own_classes:
        return divide(data, clients=scenario.clients, classes=scenario.kinds)
    shares = zip(scenario.kinds, of_own_classes(data, len(scenario.kinds)), strict=True)
    each = scenario.clients // len(scenario.kinds)
    return tuple(device for kind, own in shares for device in divide(own, clients=each, classes=[kind]))


def _deadline(graph: ModelGraph, scenario: Scenario) -> float:
    return _SLACK * min(round_seconds(graph, kind, scenario.steps, scenario.batch) for kind in scenario.kinds)


def _slowest(graph: ModelGraph, scenario: Scenario) -> float:
    return _SLACK * max(round_seconds(graph, kind, scenario.steps, scenario.batch) for kind in scenario.kinds)


def _fits(graph: ModelGraph, scenario: Scenario, deadline: float, kind: DeviceClass, width: float) -> bool:
    cost = leading_channels(graph, width).cost
    use = predict(simulated_profile(kind), cost, batch=scenario.batch, steps=scenario.steps)
    return (use.round_seconds or 0.0) <= deadline and (use.peak_bytes or 0) <= kind.memory_bytes

"""What the contract of strategies is tested on: every registered strategy, unequal devices, and rounds that they did.

Devices really train: the digits, a small exported network, the trainer and rules that run on a Pi. A strategy that is
registered is in `CASES` and so in every test of the contract; `SETTINGS` says how its phases come within a few rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from unittest.mock import patch

from device_runtime import trainer
from edgefl.artifacts.bundle import pack_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation import FederationSettings, RoundSettings
from edgefl.federation.seeds import combine_seed, round_seed
from edgefl.federation.updates import client_update_of, mask_after
from edgefl.masks import Array, Mask
from edgefl.simulation import FleetDevice, fleet_of
from edgefl.simulation.job_dispatch import DispatchedJob, JobDispatcher
from edgefl.simulation.worker import SimulationWorker
from edgefl.strategies import (
    STRATEGIES,
    ClientUpdate,
    Model,
    Participant,
    PlannedTask,
    RoundContext,
    Strategy,
    strategy_of,
)
from edgefl.values import Budget, ClientPlan, LocalWork, Setting
from edgefl.wire import ResultBody, decode_result, encode_result
from tests.device_runtime.federation import bundle, digits
from tests.values.samples import PROFILE

ROUNDS = 3
SEED = 11
WORK = LocalWork(epochs=1, batch_size=32, most_steps=2)
GRAPH = bundle().graph

Settings = Mapping[str, Setting]
SETTINGS: Mapping[str, Settings] = {
    "fedmap": {"mask_rounds": 1, "weight_rounds": 1, "capacities": "0.5, 0.25"},
    "hermes": {"accuracy_threshold": 0.0},
    "split_mix": {"base_networks": 4},
    "joined": {"nets": "0.25 x 4"},
    "sub_fedavg": {"accuracy_threshold": 0.0, "mask_distance": 0.0, "learning_rate": 0.1},
}
VARIANTS: Mapping[str, tuple[str, Settings]] = {
    "fedmap of channels": ("fedmap", {"mask_rounds": 1, "weight_rounds": 1, "granularity": "channel"}),
    "fedspa of channels": ("fedspa", {"granularity": "channel"}),
    "hermes with noise": ("hermes", {"accuracy_threshold": 0.0, "sent": "masked_noise", "frozen": "planned"}),
    "hermes of intersections": ("hermes", {"accuracy_threshold": 0.0, "aggregation": "intersection"}),
    "hermes by magnitude": ("hermes", {"accuracy_threshold": 0.0, "prune_by": "magnitude"}),
    "hermes by magnitude with noise": (
        "hermes",
        {"accuracy_threshold": 0.0, "prune_by": "magnitude", "sent": "masked_noise", "frozen": "planned"},
    ),
    "fedpm that counts on": ("fedpm", {"reset_every": 2}),
    "per_fedavg of first order": ("per_fedavg", {"variant": "first_order"}),
    "lg_fedavg after whole rounds": ("lg_fedavg", {"whole_rounds": 1, "shared_layers": 1, "shared_end": "first"}),
    "perfedmask of rolling parts": ("perfedmask", {"width": "fit", "placement": "rolling", "sent": "scaled_sign"}),
}
CASES: Mapping[str, tuple[str, Settings]] = {name: (name, SETTINGS.get(name, {})) for name in STRATEGIES} | dict(
    VARIANTS
)


LIMITS: Mapping[str, Budget] = {
    "free": Budget(),
    "timed": Budget(round_seconds=0.0085),
    "small": Budget(peak_bytes=51_300_000),
    "frugal": Budget(joules=0.045),
    "few-trained": Budget(trainable_parameters=2000),
    "narrow": Budget(kept_fraction=0.35),
    "sparse": Budget(weight_density=0.3),
    "no-time": Budget(round_seconds=0.001),
    "no-room": Budget(peak_bytes=1_000_000),
}
"""Devices by name. The whole model of 6,138 parameters takes 0.0109 s, 52.1 MB and 0.066 J; half its width 0.0065 s,
51.2 MB and 0.039 J. The last two can do nothing at all."""
HOPELESS = ("no-time", "no-room")


def strategy(case: str) -> Strategy:
    name, settings = CASES[case]
    return strategy_of(name, settings)


@cache
def fleet() -> tuple[FleetDevice, ...]:
    """The devices with their data; all have samples of all digits."""
    dealt = fleet_of(digits(), clients=len(LIMITS), scheme="iid", seed=1)
    return tuple(replace(device, device_id=name, profile=PROFILE) for name, device in zip(LIMITS, dealt, strict=True))


def places() -> dict[str, int]:
    """The place of each device in the fleet."""
    return {device.device_id: place for place, device in enumerate(fleet())}


@cache
def packed() -> bytes:
    return pack_bundle(bundle())


@dataclass(frozen=True, eq=False)
class Done:
    """What a device did in a round."""

    planned: PlannedTask
    plan: ClientPlan
    report: ResultBody
    """What its rule produced, before it was encoded."""
    body: bytes
    client_update: ClientUpdate
    """The body as the coordinator reads it."""
    next_mask: Mask | None
    """The device's mask from now on, if it is another one than the plan's."""


@dataclass(frozen=True, eq=False)
class Played:
    """A round that was played."""

    number: int
    before: Model
    after: Model
    participants: tuple[Participant, ...]
    done: Mapping[str, Done]
    """By device."""

    @property
    def planning(self) -> RoundContext:
        return RoundContext(self.number, ROUNDS, round_seed(SEED, self.number), WORK)

    @property
    def combining(self) -> RoundContext:
        return RoundContext(self.number, ROUNDS, combine_seed(SEED, self.number), WORK)

    @property
    def client_updates(self) -> list[ClientUpdate]:
        return [one.client_update for one in self.done.values()]


@cache
def played(case: str) -> tuple[Played, ...]:
    """The rounds of a strategy, in which every device that it asks does what it asks."""
    made = strategy(case)
    settings = FederationSettings(name="contract", rounds=RoundSettings(count=ROUNDS), seed=SEED, work=WORK)
    dispatcher = JobDispatcher(bundle(), settings, places())
    workshop = SimulationWorker(packed(), fleet())
    model = made.begin(GRAPH, bundle_weights(bundle()))
    participants = tuple(Participant(name, PROFILE, budget) for name, budget in LIMITS.items())
    rounds = []
    for number in range(ROUNDS):
        begun = Played(number, model, model, participants, {})
        planned_tasks = made.plan(model, participants, begun.planning)
        done = {
            task.device_id: _done(workshop, made, settings, model, task)
            for task in dispatcher.dispatch(model, planned_tasks, number)
        }
        model = made.combine(model, [one.client_update for one in done.values()], begun.combining)
        rounds.append(replace(begun, after=model, done=done))
        participants = tuple(_after(one, done.get(one.device_id)) for one in participants)
    return tuple(rounds)


def lasting(model: Model) -> dict[str, Array]:
    """What stays where nobody trains: weights, or in FedPM the probabilities that its weights are drawn from anew."""
    drawn = {name.removeprefix("p/"): array for name, array in model.state.items() if name.startswith("p/")}
    return {**model.weights, **drawn}


def _done(
    workshop: SimulationWorker, made: Strategy, settings: FederationSettings, model: Model, task: DispatchedJob
) -> Done:
    with patch.object(trainer, "encode_result", wraps=encode_result) as encoded:
        outcome = workshop.train(task.job)
    assert outcome.body is not None, outcome.refused
    came = decode_result(outcome.body, GRAPH)
    found = client_update_of(task.plan, task.planned.mask, model.weights, came)
    next_mask = mask_after(made, settings, found)
    return Done(task.planned, task.plan, encoded.call_args.args[0], outcome.body, found, next_mask)


def _after(participant: Participant, done: Done | None) -> Participant:
    """What is known of a device after a round."""
    if done is None:
        return participant
    mask = done.next_mask or done.planned.mask
    return replace(participant, samples=done.report.result.samples, mask=mask)

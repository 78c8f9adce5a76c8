"""A whole federation on one machine: the real rules, engine, codecs and strategies, with no network between them.

fleet.py        the devices: what each can do, and its data
settings.py     how many rounds, how many devices in each, how much work
federation.py   the rounds: select, plan, hand out, train, check, combine, evaluate
handout.py      from a strategy's orders to plans and bodies, with the bytes that a device downloads
jobs.py         what goes to a worker and what comes back
workshop.py     a worker's side: a device's trainer on what was handed out, and scoring
own_models.py   the models that devices keep from round to round
engine.py       onnxruntime that loads each graph once
recent.py       what is kept of graphs, masks and weights
recorder.py     a device's telemetry as its profile predicts it
crew.py         workers: this process, or several others
results.py      what a round and the end of a federation gave

`edgefl simulate` and the studies in `benchmarks` call this. Everything but measured times follows from the seed,
whatever the number of workers.
"""

from edgefl.simulation.crew import Crew, crew_of
from edgefl.simulation.device_class import DeviceClass, simulated_profile
from edgefl.simulation.federation import Federation
from edgefl.simulation.fleet import FleetDevice, fleet_of
from edgefl.simulation.results import DeviceRound, Fate, PersonalResult, RoundResult, Score
from edgefl.simulation.settings import FederationSettings

__all__ = [
    "Crew",
    "DeviceClass",
    "DeviceRound",
    "Fate",
    "Federation",
    "FederationSettings",
    "FleetDevice",
    "PersonalResult",
    "RoundResult",
    "Score",
    "crew_of",
    "fleet_of",
    "simulated_profile",
]

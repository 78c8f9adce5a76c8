"""A whole federation on one machine: the real rules, engine, codecs and strategies, with no network between them.

request.py         what is asked of a simulation, and what it names
device_class.py    a kind of device; known_classes.py has those that are built in, with their sources
fleet.py           the devices: what each can do, and its data
settings.py        how many rounds, how many devices in each, how much work
simulate.py        a whole run, kept in a folder
federation.py      the rounds: select, plan, hand out, train, check, combine, evaluate
clock.py           simulated time: who is there, what becomes of a task, when a round is over
availability.py    when devices are there: by chance, or by a trace
timeline.py        what a task takes on the device that is simulated
handout.py         from a strategy's orders to plans and bodies, with the bytes that a device downloads
jobs.py            what goes to a worker and what comes back
workshop.py        a worker's side: a device's trainer on what was handed out, and scoring
own_models.py      the models that devices go on with from round to round
engine.py          onnxruntime that loads each graph once
recent.py          what is kept of graphs, masks and weights
recorder.py        a device's telemetry as its profile predicts it
crew.py            workers: this process, or several others; ray_crew.py: those of a Ray cluster
over_http.py       the same with a real coordinator and real agents
    federation_text.py, agents.py, http_results.py
                   its federation file, its agents, and what came of it
results.py, device_rounds.py, summary.py, parts.py
                   what a round, a device's task, a run and a part come to
run_folder.py      a run in a folder
built_in.py, model_source.py
                   models that are here exported, and all others

`edgefl simulate` and the studies in `benchmarks` call this. Everything but measured times follows from the seed,
whatever the number of workers.
"""

from edgefl.simulation.device_class import DeviceClass, simulated_profile
from edgefl.simulation.executor import Executor, open_executor
from edgefl.simulation.fleet import FleetDevice, fleet_of
from edgefl.simulation.results import DeviceRound, Fate, PersonalResult, RoundResult, Score
from edgefl.simulation.settings import FederationSettings
from edgefl.simulation.simulated_federation import SimulatedFederation

__all__ = [
    "Executor",
    "DeviceClass",
    "DeviceRound",
    "Fate",
    "SimulatedFederation",
    "FederationSettings",
    "FleetDevice",
    "PersonalResult",
    "RoundResult",
    "Score",
    "open_executor",
    "fleet_of",
    "simulated_profile",
]

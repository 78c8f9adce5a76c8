"""A whole federation on one machine: real training, rules, codecs and strategies, simulated time, no network between.

`edgefl simulate` and the studies in `benchmarks` call this. Everything but measured times follows from the seed,
whatever the number of workers.

request.py                what is simulated, and what that names
device_class.py           a class of devices: speed, memory, network, power, reliability
known_classes.py          the built-in device classes, each with the source of its figures
fleet.py                  the devices: their class and their data
built_in_models.py        models that come exported, so that they need no torch
model_source.py           from a model's name to its bundle
simulate.py               a whole run, kept in a folder
simulated_federation.py   the rounds: select, plan, dispatch, train, check, aggregate, evaluate
job_dispatch.py           planned tasks become jobs, with the bytes that each device downloads
jobs.py                   what goes to a worker, and what comes back
executor.py               runs jobs in this process or in several
ray_executor.py           runs jobs on a Ray cluster
worker.py                 trains devices' tasks and evaluates models
cached_engine.py          onnxruntime that loads each graph once
device_models.py          the models that devices keep from round to round
recorder.py               a device's telemetry as its profile predicts it
simulated_clock.py        simulated time: who is online, what becomes of a task, when a round ends
availability.py           when devices are online: at random, or by a trace
nights.py                 when phones are online that charge at night
buffered_rounds.py        buffered mode: tasks whenever devices are there, a new model whenever the buffer is full
task_time.py              the time and energy of a task on the simulated device
device_rounds.py          the record of one device's task
run_cost.py               what a run has spent, and the limits at which it ends
results.py                the records of rounds and of personalisation
summary.py                a whole run in a few figures
run_folder.py             a run in a folder
over_http.py              the same simulation with a real coordinator and real agents
agents.py                 the real agents of many simulated devices in one process
http_results.py           the results of a run over HTTP
"""

from edgefl.simulation.device_class import DeviceClass, simulated_profile
from edgefl.simulation.executor import Executor, open_executor
from edgefl.simulation.fleet import FleetDevice, fleet_of
from edgefl.simulation.results import DeviceRound, Fate, PersonalResult, RoundResult
from edgefl.simulation.run_cost import CostLimits, RunCost, limits_from
from edgefl.simulation.simulated_federation import SimulatedFederation

__all__ = [
    "CostLimits",
    "Executor",
    "DeviceClass",
    "DeviceRound",
    "Fate",
    "SimulatedFederation",
    "FleetDevice",
    "PersonalResult",
    "RoundResult",
    "RunCost",
    "limits_from",
    "open_executor",
    "fleet_of",
    "simulated_profile",
]

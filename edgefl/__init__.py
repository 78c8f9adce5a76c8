"""EdgeFL: federated training in which every device trains the part of the model it can afford.

This package is the core and the command line. It needs only numpy and safetensors. Importing it imports neither, so
that the command line starts at once: import what you need from its packages (`edgefl.masks`, `edgefl.wire`, ...).

errors.py               the exceptions that EdgeFL raises on purpose
values/                 data types with units and checks, and their JSON form
model_graph/            framework-free description of a model and the cost of its submodels
masks/                  which part of a model a device keeps and trains
noise.py                seeded random numbers that are equal on every platform
wire/                   the binary format of weights, updates and masks
data/                   data sets and their partitions
artifacts/              exported bundles, and graphs cut from them
local_rules/            how a device trains
planning/               from device profiles and budgets to masks
strategies/             federated algorithms
federation/             settings and rounds of a federation
charts/                 charts of the HTML pages
user_code.py            imports of models and strategies that users name
coordinator_url.py      which coordinators may be sent secrets without encryption
pins.py                 the keys that a coordinator's certificate may have
pinned_tls.py           TLS that trusts these keys and nothing else
pairing.py              everything that a device needs to join, as one URI
coordinator_process.py  a temporary coordinator in a subprocess
simulation/             a simulated fleet with real training
bench/                  benchmarks of `edgefl bench`
conformance/            a suite that checks any client: `edgefl conformance`
report/                 HTML pages about simulated runs
cli/                    the command line
__main__.py             `python -m edgefl`
"""

import os

__all__ = ["__version__"]

# onnxruntime sends usage data to its maker unless this is set before it is imported. A device that trains on private
# data must not; set the variable to 0 to allow it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"

"""A round as the coordinator, the simulator and `edgefl plan` all run it, from settings to evaluation.

settings.py            what a federation is configured with
seeds.py               every seed, derived from the federation's one seed, and the round contexts that hold them
strategy.py            the strategy of a federation, and which of its rounds are for every device
sample.py              what a sample of the federation is: from its settings, its bundle and its evaluation data
participants.py        a device's profile, correction and limits become what a strategy is told about it
client_selection.py    which devices are selected (reliable ones more often), and the plan for them
capability_check.py    leaves out devices whose software cannot do what was planned, and plans again for the others
programs.py            the programs of devices whose engine runs compiled ones: which exist, and what a task runs
program_planning.py    plans such devices on rungs: as if all programs existed, and then with those that do
budget_reasons.py      why nothing fits a device: what the least would take, beside its budget
left_out.py            leaves out devices whose claims make planning or aggregation fail
dispatch.py            planned tasks become client plans, and the bodies that they name
submodel_document.py   the document that names a task's tensors
measurement.py         steps of a federation's model that a client measures itself with
updates.py             a device's result becomes the update that a strategy aggregates; old updates weigh less
evaluation.py          accuracy and loss from logits
cache.py               a least-recently-used cache
"""

from edgefl.federation.settings import (
    BudgetCaps,
    BufferingSettings,
    EvaluationSettings,
    FederationMode,
    FederationSettings,
    RoundSettings,
    SampleSettings,
    SelectionSettings,
    StrategyChoice,
    UploadLimits,
)

__all__ = [
    "BudgetCaps",
    "BufferingSettings",
    "EvaluationSettings",
    "FederationMode",
    "FederationSettings",
    "RoundSettings",
    "SampleSettings",
    "SelectionSettings",
    "StrategyChoice",
    "UploadLimits",
]

"""Plans ask for nothing that a device's software cannot do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from edgefl.federation.capability_check import UNSAID, plan_capable
from edgefl.federation.client_selection import plan_round
from edgefl.local_rules import RULES, rule_names
from edgefl.masks import freeze, full_mask
from edgefl.strategies import FedAvg, Model, Participant, PerFedMask, PlannedTask, RoundContext, strategy_of
from edgefl.values import Capabilities, EngineSoftware, GraphFormat
from tests.federation.test_left_out import CONTEXT, MODEL, TASK, participant
from tests.strategies import test_perfedmask as papers_fleet
from tests.values.samples import CAPABILITIES

ALL = replace(CAPABILITIES, rules=rule_names(), codecs=("dense", "slice", "sparse", "bits", "counts"))
CONTRACT = ("sgd", "fine_tune", "masked_noise")
"""The rules that every client has, and no setting that was added to them."""
EXECUTORCH = EngineSoftware(name="executorch", version="1.1", format=GraphFormat.EXECUTORCH)


def with_software(name: str, capabilities: Capabilities | None) -> Participant:
    return replace(participant(name), capabilities=capabilities)


def planned(
    strategy_name: str, software: Mapping[str, Capabilities | None], **settings: str
) -> tuple[set[str], dict[str, str]]:
    strategy = strategy_of(strategy_name, settings)
    devices = [with_software(name, capabilities) for name, capabilities in software.items()]
    plan = plan_capable(lambda some: strategy.plan(MODEL, some, CONTEXT), devices)
    return set(plan.tasks), dict(plan.left_out)


@pytest.mark.parametrize(
    ("strategy", "change", "reason"),
    [
        ("fedavg", {"rules": ("masked_noise",)}, "lacks the rule 'sgd'"),
        ("fedmrn", {"rules": ("sgd",)}, "lacks the rule 'masked_noise'"),
        ("fedavg", {"codecs": ("bits",)}, "lacks the codec 'dense', which updates of this federation need"),
        ("fedmrn", {"codecs": ("dense",)}, "lacks the codec 'bits', which updates of this federation need"),
        ("fedavg", {"engines": (EXECUTORCH,)}, "has no engine for graphs of the format 'onnx'"),
        ("fedavg", {"engines": ()}, "has no engine for graphs of the format 'onnx'"),
        ("fedavg", {"batch_sizes": (8, 16)}, "cannot run batches of 32 samples, only 8, 16"),
    ],
)
def test_a_device_that_lacks_what_its_task_needs_is_left_out_with_the_reason(
    strategy: str, change: dict[str, object], reason: str
) -> None:
    lacking = replace(ALL, **change)  # type: ignore[arg-type]
    tasks, left_out = planned(strategy, {"a": ALL, "b": lacking, "c": None})
    assert tasks == {"a", "c"}
    assert left_out == {"b": f"its client edgefl-java 0.1.0 {reason}"}


def test_a_device_that_has_what_is_needed_and_no_more_is_planned_for() -> None:
    small = replace(ALL, rules=("sgd",), codecs=("dense",), batch_sizes=(32,), engines=(EXECUTORCH, *ALL.engines))
    assert planned("fedavg", {"a": small}) == ({"a"}, {})


def test_the_next_in_the_queue_take_the_places_of_those_that_are_left_out() -> None:
    lacking = replace(ALL, rules=())
    software = dict.fromkeys("abc", lacking) | dict.fromkeys("de", ALL)
    plan = plan_round(FedAvg(), MODEL, list("abcde"), 2, CONTEXT, lambda name: with_software(name, software[name]), str)
    assert sorted(plan.tasks) == ["d", "e"]
    assert sorted(plan.left_out) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rules": ("fine_tune",)}, "lacks the rule 'sgd'"),
        ({"codecs": ()}, "lacks the codec 'dense', which updates of this federation need"),
        ({"batch_sizes": (7,)}, "cannot run batches of 32 samples, only 7"),
        ({"engines": ()}, "has no engine for graphs of the format 'onnx'"),
    ],
)
def test_if_all_lack_it_each_is_told_why_and_the_strategy_is_not_asked_about_each(
    change: dict[str, Any], reason: str
) -> None:
    calls = []

    class Counting(FedAvg):
        def plan(
            self, model: Model, participants: Sequence[Participant], round_context: RoundContext
        ) -> Mapping[str, PlannedTask]:
            calls.append(len(participants))
            return super().plan(model, participants, round_context)

    lacking = replace(ALL, **change)
    names = [f"d{number}" for number in range(500)]
    plan = plan_round(Counting(), MODEL, names, 10, CONTEXT, lambda name: with_software(name, lacking), str)
    assert not plan.tasks
    assert plan.left_out == dict.fromkeys(names, f"its client edgefl-java 0.1.0 {reason}")
    assert calls == [10]


class Sharing(FedAvg):
    """Shares out the layers of a model among the devices of a round."""

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        whole, layers, tasks = full_mask(model.graph), [layer.name for layer in model.graph.layers], {}
        for place, one in enumerate(participants):
            frozen = [name for at, name in enumerate(layers) if at % len(participants) != place]
            tasks[one.device_id] = replace(TASK, mask=freeze(whole, frozen))
        return tasks


def test_a_group_planner_covers_all_layers_with_the_rest() -> None:
    fleet = [with_software("a", ALL), with_software("b", replace(ALL, rules=())), with_software("c", None)]
    plan = plan_capable(lambda some: Sharing().plan(MODEL, some, CONTEXT), fleet)
    assert set(plan.tasks) == {"a", "c"}
    assert {layer for task in plan.tasks.values() for layer in task.mask.trained} == {
        layer.name for layer in MODEL.graph.layers
    }


def test_perfedmask_plans_as_if_who_is_left_out_had_not_come() -> None:
    strategy, model, context = PerFedMask(), papers_fleet.MODEL, papers_fleet.ROUND_CONTEXT
    strong, *weak = papers_fleet.fleet(weak=3, strong=1)
    fleet = [replace(strong, capabilities=replace(ALL, rules=())), *weak]
    plan = plan_capable(lambda some: strategy.plan(model, some, context), fleet)
    without = strategy.plan(model, weak, context)
    assert {name: task.mask.digest for name, task in plan.tasks.items()} == {
        name: task.mask.digest for name, task in without.items()
    }


def test_a_hostile_name_of_a_client_makes_no_long_reason() -> None:
    client = replace(ALL.client, name="x" * 200, version="y" * 200)
    _, left_out = planned("fedavg", {"a": replace(ALL, rules=(), client=client), "b": None})
    assert len(left_out["a"]) <= 300
    assert left_out["a"].endswith("lacks the rule 'sgd'")


@pytest.mark.parametrize(("settings", "rule"), [({}, "sgd"), ({"sent": "masked_noise"}, "masked_noise")])
def test_hermes_plans_for_clients_that_prune_nothing_if_they_report_sensitivities(
    settings: dict[str, str], rule: str
) -> None:
    reporting = replace(ALL, rules=(*CONTRACT, "sgd.sensitivity", "masked_noise.sensitivity"))
    older = replace(ALL, rules=CONTRACT)
    other = replace(ALL, rules=(*CONTRACT, "fine_tune.sensitivity"))
    tasks, left_out = planned("hermes", {"python": ALL, "java": reporting, "older": older, "other": other}, **settings)
    assert tasks == {"python", "java"}
    reason = f"its client edgefl-java 0.1.0 lacks the setting 'sensitivity' of the rule {rule!r}"
    assert left_out == {"older": reason, "other": reason}


@pytest.mark.parametrize("strategy", ["fedmrn", "hermes"])
def test_other_noise_than_uniform_needs_clients_that_know_it(strategy: str) -> None:
    uniform = replace(ALL, rules=(*CONTRACT, "masked_noise.sensitivity"))
    clients = {"a": ALL, "b": uniform}
    assert planned(strategy, clients, sent="masked_noise", noise_distribution="uniform") == ({"a", "b"}, {})
    tasks, left_out = planned(strategy, clients, sent="masked_noise", noise_distribution="gaussian")
    assert tasks == {"a"}
    assert left_out == {"b": "its client edgefl-java 0.1.0 lacks the setting 'distribution' of the rule 'masked_noise'"}


def test_by_magnitude_hermes_needs_clients_that_prune() -> None:
    tasks, left_out = planned("hermes", {"a": ALL, "b": replace(ALL, rules=CONTRACT)}, prune_by="magnitude")
    assert tasks == {"a"}
    assert left_out == {"b": "its client edgefl-java 0.1.0 lacks the rule 'channel_pruning'"}


def test_who_said_nothing_has_every_rule_of_then_and_nothing_that_was_added() -> None:
    assert set(UNSAID.rules) <= set(RULES)
    for name in ("fedavg", "fedmrn", "fedspa", "perfedmask", "ditto"):
        assert planned(name, {"older": UNSAID}) == ({"older"}, {})
    assert planned("hermes", {"older": UNSAID}, prune_by="magnitude") == ({"older"}, {})
    _, left_out = planned("hermes", {"older": UNSAID})
    assert left_out["older"].endswith("lacks the setting 'sensitivity' of the rule 'sgd'")


def test_personalisation_leaves_out_who_cannot_fine_tune() -> None:
    method = strategy_of("fedavg", {"fine_tune_epochs": 1})
    fleet = [with_software("a", ALL), with_software("b", replace(ALL, rules=("sgd",)))]
    context = replace(CONTEXT, round=CONTEXT.rounds)
    plan = plan_capable(lambda some: method.personalise(MODEL, some, context), fleet)
    assert set(plan.tasks) == {"a"}
    assert plan.left_out == {"b": "its client edgefl-java 0.1.0 lacks the rule 'fine_tune'"}


@pytest.mark.parametrize(
    ("strategy", "rule"), [("lg_fedavg", "shared_layers"), ("per_fedavg", "maml"), ("sub_fedavg", "weight_pruning")]
)
def test_baselines_with_rules_of_their_own_leave_out_clients_that_lack_them(strategy: str, rule: str) -> None:
    tasks, left_out = planned(strategy, {"a": ALL, "b": replace(ALL, rules=CONTRACT), "older": UNSAID})
    assert tasks == {"a"}
    assert left_out["b"] == f"its client edgefl-java 0.1.0 lacks the rule {rule!r}"
    assert left_out["older"].endswith(f"lacks the rule {rule!r}")

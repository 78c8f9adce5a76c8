"""The tensors that plans name, and the graphs that are cut for what rules really train."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest

from edgefl.artifacts.bundle import TRAIN
from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation import FederationSettings, RoundSettings
from edgefl.federation.dispatch import BodyRole, DispatchedTask, Dispatcher
from edgefl.masks import Mask, full_mask, leading_channels, random_channels
from edgefl.strategies import Model, PlannedTask
from edgefl.values import ClientPlan, LocalWork, RuleSettings, Submodel, digest_of, loads
from tests.device_runtime.federation import bundle

GRAPH = bundle().graph
ROUNDS = 3


@dataclass
class Kept:
    """Keeps bodies by their digests."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    roles: list[BodyRole] = field(default_factory=list)

    def store(self, bodies: Any) -> list[str]:
        digests = [digest_of(body) for _, body in bodies]
        self.bodies.update(zip(digests, (body for _, body in bodies), strict=True))
        self.roles.extend(role for role, _ in bodies)
        return digests

    def reuse(self, role: BodyRole, digest: str) -> bool:
        return digest in self.bodies


def dispatch(masks: dict[str, Mask], rule: RuleSettings, kept: Kept, number: int = 0) -> list[DispatchedTask]:
    dispatcher = Dispatcher(
        settings=FederationSettings(name="named", rounds=RoundSettings(count=ROUNDS)),
        bundle=bundle(),
        training_graph=lambda mask: cut_training_graph(bundle().files[TRAIN], mask),
        task_id=lambda number, serial, device: f"{number}-{device}",
    )
    planned = {device: PlannedTask(mask, rule, LocalWork()) for device, mask in masks.items()}
    return dispatcher.dispatch(Model(GRAPH, bundle_weights(bundle())), planned, kept, number=number)


def one(mask: Mask, rule: RuleSettings, number: int = 0) -> tuple[Submodel, set[str]]:
    """The tensors that a plan names, and the outputs of its graph."""
    kept = Kept()
    (task,) = dispatch({"pi": mask}, rule, kept, number)
    return named_by(task.plan, kept), outputs_of(kept.bodies[task.plan.graph or ""])


def named_by(plan: ClientPlan, kept: Kept) -> Submodel:
    assert plan.tensors is not None
    return loads(Submodel, kept.bodies[plan.tensors])


def outputs_of(graph: bytes) -> set[str]:
    return {output.name for output in onnx.load_from_string(graph).graph.output}


def test_every_tensor_of_the_submodel_is_named_in_the_models_order_at_its_widths() -> None:
    mask = leading_channels(GRAPH, 0.5)
    named, _ = one(mask, RuleSettings(name="sgd"))
    assert [tensor.name for tensor in named.tensors] == [tensor.name for tensor in GRAPH.tensors]
    for tensor in named.tensors:
        spec = GRAPH.tensor[tensor.name]
        assert (tensor.shape, tensor.dtype, tensor.role) == (mask.shapes[tensor.name], spec.dtype, spec.role)
        assert (tensor.layer, tensor.trained, tensor.sent) == (GRAPH.layer_of[tensor.name], True, "dense")
    assert named.payloads == ()


@pytest.mark.parametrize("layers", [GRAPH.trainable_layers[:2], GRAPH.trainable_layers[-1:]])
def test_frozen_tensors_are_neither_trained_nor_sent(layers: tuple[str, ...]) -> None:
    named, outputs = one(Mask.of(GRAPH, trained=layers), RuleSettings(name="masked_noise"))
    assert {tensor.layer for tensor in named.tensors if tensor.trained} == set(layers)
    assert all((tensor.sent is not None) == tensor.trained for tensor in named.tensors)
    assert gradients(outputs) == {t.name for t in named.tensors if t.trained and t.role != "statistic"}


@pytest.mark.parametrize("head", ["train", "freeze", "head_only"])
def test_the_graph_of_fine_tuning_is_cut_for_what_it_trains(head: str) -> None:
    named, outputs = one(full_mask(GRAPH), RuleSettings(name="fine_tune", settings={"head": head}), ROUNDS)
    heads = {tensor.layer for tensor in named.tensors if tensor.role == "head"}
    others = set(GRAPH.trainable_layers) - heads
    expected = {"train": heads | others, "freeze": others, "head_only": heads}[head]
    assert {tensor.layer for tensor in named.tensors if tensor.trained} == expected
    assert gradients(outputs) == {t.name for t in named.tensors if t.trained and t.role != "statistic"}
    assert all(tensor.sent is None for tensor in named.tensors)


def test_nothing_is_sent_in_a_personal_round_whatever_the_rule() -> None:
    named, _ = one(full_mask(GRAPH), RuleSettings(name="sgd"), ROUNDS)
    assert all(tensor.trained and tensor.sent is None for tensor in named.tensors)


def test_masks_of_equal_widths_share_the_document_and_other_rules_have_their_own() -> None:
    kept = Kept()
    masks = {f"pi-{seed}": random_channels(GRAPH, 0.5, np.random.default_rng(seed)) for seed in range(5)} | {
        "whole": full_mask(GRAPH)
    }
    plans = {task.plan.device_id: task.plan for task in dispatch(masks, RuleSettings(name="sgd"), kept)}
    assert len({plan.mask for plan in plans.values()}) == len(masks)
    assert len({plan.tensors for plan in plans.values()}) == 2
    assert kept.roles.count(BodyRole.TENSORS) == 2
    (other,) = dispatch({"pi-0": masks["pi-0"]}, RuleSettings(name="masked_noise"), kept)
    assert other.plan.tensors not in {plan.tensors for plan in plans.values()}


def gradients(outputs: set[str]) -> set[str]:
    return {name.removeprefix("grad:") for name in outputs if name.startswith("grad:")}

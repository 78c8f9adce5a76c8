"""Gradient descent against PyTorch's own optimiser, schedulers and clipping, for 20 steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LRScheduler, MultiStepLR

from edgefl.local_rules import Batch, Descent, FineTune, Sgd, TrainingInput
from edgefl.local_rules.descent import Schedule, ScheduleUnit
from edgefl.local_rules.fine_tune import HeadTreatment
from edgefl.masks import Mask, full_mask, gather
from tests.export.local_rules.engines import OnnxStep, TorchStep, batches, exported, network, run_rule

STEPS = 20
pytestmark = pytest.mark.usefixtures("one_thread")


def torch_training(
    data: list[Batch],
    settings: dict[str, Any],
    *,
    clip: float | None = None,
    proximal: float = 0.0,
    held: dict[str, np.ndarray] | None = None,
    frozen: tuple[str, ...] = (),
    schedule: Callable[[SGD], LRScheduler] | None = None,
) -> dict[str, np.ndarray]:
    """The network after training by PyTorch alone; `held` masks weights and gradients, as FedSpa's Eq. 3 says."""
    model = network().train()
    flags = {name: torch.from_numpy(array) for name, array in (held or {}).items()}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(flags.get(name, torch.tensor(True)))
            parameter.requires_grad_(not name.startswith(frozen) if frozen else True)
    start = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimiser = SGD([p for p in model.parameters() if p.requires_grad], **settings)
    scheduler = schedule(optimiser) if schedule else None
    for batch in data:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.from_numpy(batch.x)), torch.from_numpy(batch.y))
        loss.backward()  # type: ignore[no-untyped-call]
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(flags.get(name, torch.tensor(True)))
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:  # the gradient of mu / 2 * |w - w_global|^2
                parameter.grad.add_(proximal * (parameter.detach() - start[name]))
        optimiser.step()
        if scheduler:
            scheduler.step()
    stored = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name: tensor.detach().numpy() for name, tensor in stored.items()}


def part_for(mask: Mask, weights: dict[str, np.ndarray], **others: Any) -> TrainingInput:
    return TrainingInput(mask, gather(mask, weights), seed=1, steps=STEPS, **others)


def assert_near(found: Any, expected: dict[str, np.ndarray]) -> None:
    for name, array in found.items():
        assert np.allclose(array, expected[name], rtol=1e-4, atol=2e-6), name


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "momentum and decay": ({"momentum": 0.9, "weight_decay": 5e-3}, {}),
    "nesterov": ({"momentum": 0.8, "weight_decay": 1e-3, "nesterov": True}, {}),
    "clipped": ({"momentum": 0.5}, {"clip": 0.5}),
    "proximal": ({}, {"proximal": 0.5}),
    "everything": ({"momentum": 0.9, "nesterov": True, "weight_decay": 1e-2}, {"clip": 0.7, "proximal": 0.3}),
}


@pytest.mark.parametrize("case", CASES)
def test_twenty_steps_equal_pytorchs(case: str) -> None:
    settings, more = CASES[case]
    data, found = batches(STEPS), exported()
    descent = Descent(learning_rate=0.1, clip_norm=more.get("clip"), proximal=more.get("proximal", 0.0), **settings)
    part = part_for(full_mask(found.graph), found.weights())
    _, update = run_rule(Sgd(descent=descent), part, TorchStep(network()), data)
    expected = torch_training(data, {"lr": 0.1, **settings}, **more)
    assert_near(update.weights, expected)
    moved = max(float(np.abs(expected[name] - part.weights[name]).max()) for name in part.weights)
    assert moved > 0.05


SCHEDULES: dict[str, tuple[dict[str, Any], Callable[[SGD], LRScheduler]]] = {
    "step decay": ({"schedule": Schedule.STEP_DECAY}, lambda o: MultiStepLR(o, [STEPS // 2, 3 * STEPS // 4], 0.1)),
    "exponential": (
        {"schedule": Schedule.EXPONENTIAL, "decay_factor": 0.2},
        lambda o: ExponentialLR(o, 0.2 ** (1 / STEPS)),
    ),
    "cosine": ({"schedule": Schedule.COSINE, "final_rate": 0.01}, lambda o: CosineAnnealingLR(o, STEPS, 0.01)),
}


@pytest.mark.parametrize("case", SCHEDULES)
def test_schedules_equal_pytorchs(case: str) -> None:
    settings, schedule = SCHEDULES[case]
    data, found = batches(STEPS), exported()
    rule = Sgd(descent=Descent(learning_rate=0.3, schedule_by=ScheduleUnit.STEP, **settings))
    _, update = run_rule(rule, part_for(full_mask(found.graph), found.weights()), TorchStep(network()), data)
    assert_near(update.weights, torch_training(data, {"lr": 0.3}, schedule=schedule))


def test_held_weights_train_as_if_the_others_did_not_exist() -> None:
    data, found = batches(STEPS), exported()
    held = {"5.weight": np.random.default_rng(0).random((7, 36)) < 0.5}
    mask = Mask.of(found.graph, held=held)
    settings: dict[str, Any] = {"momentum": 0.9, "weight_decay": 1e-2}
    rule = Sgd(descent=Descent(learning_rate=0.1, clip_norm=0.7, **settings))
    _, update = run_rule(rule, part_for(mask, found.weights()), TorchStep(network()), data)
    assert_near(update.weights, torch_training(data, {"lr": 0.1, **settings}, clip=0.7, held=held))
    assert not update.weights["5.weight"][~held["5.weight"]].any()


def test_frozen_layers_train_as_parameters_without_gradients() -> None:
    data, found = batches(STEPS), exported()
    rule = FineTune(descent=Descent(learning_rate=0.2, momentum=0.9), head=HeadTreatment.FREEZE)
    part = part_for(full_mask(found.graph), found.weights())
    _, update = run_rule(rule, part, TorchStep(network()), data)
    assert_near(update.weights, torch_training(data, {"lr": 0.2, "momentum": 0.9}, frozen=("7.",)))
    assert np.array_equal(update.weights["7.weight"], part.weights["7.weight"])


def test_the_exported_graph_trains_as_pytorch_does() -> None:
    data, found = batches(STEPS), exported()
    settings: dict[str, Any] = {"momentum": 0.9, "weight_decay": 5e-3}
    part = part_for(full_mask(found.graph), found.weights())
    _, update = run_rule(Sgd(descent=Descent(learning_rate=0.1, **settings)), part, OnnxStep(found), data)
    expected = torch_training(data, {"lr": 0.1, **settings})
    assert set(update.tensors) == set(found.graph.tensor)
    for name, array in update.weights.items():
        assert np.allclose(array, expected[name], rtol=1e-3, atol=1e-4), name

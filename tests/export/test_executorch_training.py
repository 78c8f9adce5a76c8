"""Training programs, run by ExecuTorch itself: gradients are PyTorch's, of the whole model and of submodels."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.errors import ExportError
from edgefl.masks import Mask, gather
from edgefl.model_graph import ModelGraph
from edgefl.values import SAMPLE_WEIGHTS, digest_of
from export.describe_graph import describe
from export.executorch import Runner, TrainingProgram, run_step, submodel, traced_submodel, training_program
from export.executorch.quiet_output import quiet
from export.executorch.source_modules import module_using
from export.executorch.step import trace_step
from export.executorch.toolchain import lower_portable
from export.losses import Loss
from export.trace_model import trace_model
from export.zoo.cnn import cnn4
from export.zoo.lenet import lenet5
from export.zoo.mlp import mlp
from export.zoo.resnet import ResidualBlock
from export.zoo.seeding import seeded
from tests.export.parity import assert_close, random_mask

ROOT = Path(__file__).parents[2]
BATCH = 4


pytestmark = pytest.mark.usefixtures("one_thread")


class Residual(nn.Module):
    """A residual block with a stride and a convolution on its shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.block = ResidualBlock(3, 6, 2, 2)
        self.head = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.block(x).mean((2, 3)))
        return scores


def group_norm_cnn() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 16, 5)),
    )


def depthwise() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU6()),
        *(nn.Conv2d(6, 6, 3, stride=2, padding=1, groups=6), nn.ReLU(), nn.Conv2d(6, 8, 1)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)),
    )


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "group norm": (group_norm_cnn, (1, 12, 12)),
    "cnn4": (lambda: cnn4(5, 1, image_size=16), (1, 16, 16)),
    "residual": (Residual, (3, 8, 8)),
    "depthwise": (depthwise, (3, 9, 9)),
    "mlp": (lambda: mlp(5, 12), (12,)),
    "lenet5": (lambda: lenet5(5, 1), (1, 28, 28)),
}
IN_SMALL = ("group norm", "mlp")
"""Networks whose whole step is lowered in every run; of some that takes a minute."""


class Case:
    """A network with its graph, its weights and a batch."""

    def __init__(self, name: str) -> None:
        build, shape = NETWORKS[name]
        with seeded(0):
            self.model = build()
            self.x = torch.randn(BATCH, *shape)
        for parameter in self.model.parameters():
            if parameter.dim() > 1:  # the zoo's small initial weights would leave gradients of nothing but rounding
                nn.init.kaiming_normal_(parameter, generator=torch.Generator().manual_seed(parameter.numel()))
        self.graph: ModelGraph = describe(trace_model(self.model, self.x, training=True), name)
        self.y = np.random.default_rng(0).integers(0, 5, BATCH)
        stored = self.model.state_dict()
        self.weights = {tensor: stored[tensor].numpy().copy() for tensor in self.graph.tensor}


@cache
def case(name: str) -> Case:
    return Case(name)


@cache
def full_program(name: str) -> TrainingProgram:
    return training_program(case(name).model, case(name).x, Mask.of(case(name).graph))


def torch_step(given: Case, mask: Mask, weights: dict[str, Any]) -> dict[str, Any]:
    """What a step returns, by PyTorch."""
    model = submodel(given.model, mask, weights).train()
    logits = model(given.x)
    loss = nn.functional.cross_entropy(logits, torch.from_numpy(given.y))
    loss.backward()  # type: ignore[no-untyped-call]
    found = {"loss": loss.detach().numpy(), "correct": logits.argmax(1).numpy() == given.y}
    for name, parameter in model.named_parameters():
        if name in mask.trained_tensors and parameter.grad is not None:
            found[GRADIENT + name] = parameter.grad.numpy()
    statistics = {name: buffer.numpy() for name, buffer in model.named_buffers() if name in mask.trained_tensors}
    return found | {NEW_STATISTIC + name: array for name, array in statistics.items()}


def our_step(given: Case, program: TrainingProgram, runner: Runner, part: dict[str, Any]) -> dict[str, Any]:
    return run_step(program, runner, {"x": given.x.numpy(), "y": given.y, **part})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in IN_SMALL else pytest.mark.thorough) for name in NETWORKS]
)
def test_a_step_of_the_whole_model_is_torchs(name: str) -> None:
    given, program = case(name), full_program(name)
    mask = Mask.of(given.graph)
    ours = our_step(given, program, Runner(program.pte), given.weights)
    theirs = torch_step(given, mask, given.weights)
    assert list(ours) == list(theirs)
    assert_close(ours, theirs)


def random_submodel(given: Case, seed: int) -> Mask:
    """Random channels, and a random third of the layers to train."""
    generator = np.random.default_rng(seed)
    layers = given.graph.trainable_layers
    trained = generator.permutation(layers)[: max(1, len(layers) // 3)]
    return Mask.of(given.graph, kept=random_mask(given.graph, generator).kept, trained=trained)


@pytest.mark.parametrize("name", [pytest.param("group norm", marks=pytest.mark.thorough), "depthwise", "mlp"])
def test_a_step_of_a_submodel_is_torchs_and_has_no_frozen_gradients(name: str) -> None:
    given = case(name)
    mask = random_submodel(given, 7)
    program = training_program(given.model, given.x, mask)
    ours = our_step(given, program, Runner(program.pte), gather(mask, given.weights))
    theirs = torch_step(given, mask, given.weights)
    assert list(ours) == list(theirs)
    assert len(program.outputs) < len(full_program(name).outputs)
    assert len(program.pte) < len(full_program(name).pte)
    assert_close(ours, theirs)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ["cnn4", "lenet5", "residual"])
def test_the_traced_step_of_a_submodel_is_torchs(name: str, seed: int) -> None:
    """Larger networks: the step that would be compiled, run by torch, because compiling takes ten times as long."""
    given = case(name)
    mask = random_submodel(given, seed)
    small = submodel(given.model, mask).train()
    with quiet():
        step = trace_step(small, given.x, list(given.graph.tensor), set(mask.trained_tensors), Loss.CROSS_ENTROPY)
    alike = np.full(BATCH, 1 / BATCH, np.float32)
    inputs = {"x": given.x.numpy(), "y": given.y, SAMPLE_WEIGHTS: alike, **gather(mask, given.weights)}
    found = step.graph(*(torch.from_numpy(inputs[name]) for name in step.inputs))
    ours = {name: tensor.numpy() for name, tensor in zip(step.outputs, found, strict=True)}
    theirs = torch_step(given, mask, given.weights)
    assert list(ours) == list(theirs)
    assert_close(ours, theirs)


@pytest.mark.parametrize("name", ["cnn4", "depthwise", "mlp"])
def test_twenty_steps_stay_together(name: str) -> None:
    given, program = case(name), full_program(name)
    mask, runner, rate = Mask.of(given.graph), Runner(program.pte), 0.02
    ours, theirs = dict(given.weights), dict(given.weights)
    for _ in range(20):
        ours |= updated(ours, our_step(given, program, runner, ours), rate)
        theirs |= updated(theirs, torch_step(given, mask, theirs), rate)
    moved = max(float(np.abs(theirs[tensor] - given.weights[tensor]).max()) for tensor in theirs)
    assert moved > 0.01
    assert_close(ours, theirs, tolerance=1e-3)


def updated(weights: dict[str, Any], results: dict[str, Any], rate: float) -> dict[str, Any]:
    new = {name.removeprefix(NEW_STATISTIC): value for name, value in results.items() if name.startswith(NEW_STATISTIC)}
    for name, value in results.items():
        if name.startswith(GRADIENT):
            tensor = name.removeprefix(GRADIENT)
            new[tensor] = weights[tensor] - np.float32(rate) * value
    return new


@pytest.mark.thorough
def test_a_program_depends_on_the_model_alone_in_every_process() -> None:
    code = (
        "from tests.export.test_executorch_training import full_program;"
        "from edgefl.values import digest_of; print(digest_of(full_program('mlp').pte))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=ROOT, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest_of(full_program("mlp").pte)
    assert done.stderr == ""  # neither torch nor ExecuTorch has anything to tell the user


def test_masks_of_the_same_widths_share_a_program() -> None:
    given = case("mlp")
    group = next(group for group in given.graph.groups if group.width == 512)
    first, last = ({group.name: range(begin, begin + 100)} for begin in (0, 400))
    masks = [Mask.of(given.graph, kept=kept, trained=["head"]) for kept in (first, last)]
    programs = [training_program(given.model, given.x, mask) for mask in masks]
    assert programs[0].pte == programs[1].pte
    assert programs[0].mask != programs[1].mask


def test_the_manifest_names_inputs_and_outputs_in_order() -> None:
    program, given = full_program("group norm"), case("group norm")
    assert program.inputs == ("x", "y", SAMPLE_WEIGHTS, *given.graph.tensor)
    assert program.outputs == ("loss", "correct", *(GRADIENT + tensor for tensor in given.graph.tensor))
    assert program.batch == BATCH
    assert program.mask == Mask.of(given.graph).digest


def test_a_wrong_batch_size_is_refused_in_words() -> None:
    given, program = case("mlp"), full_program("mlp")
    inputs = {"x": given.x[:2].numpy(), "y": given.y[:2], **given.weights}
    with pytest.raises(ExportError, match="batch size"):
        run_step(program, Runner(program.pte), inputs)


def test_an_operation_without_a_kernel_is_refused_by_its_name_and_module() -> None:
    graph = make_fx(lambda x: torch.linalg.eigvalsh(x))(torch.eye(3))
    with pytest.raises(ExportError, match=r"no kernel for the operation aten.*eigh.* in module 'body'") as caught:
        lower_portable(graph, [torch.eye(3)], lambda operation: f"module 'body' of {operation}")
    assert "ONNX" in caught.value.fix


def test_the_module_of_an_operation_is_found() -> None:
    given = case("group norm")
    small = traced_submodel(given.model, given.x, Mask.of(given.graph), training=True)
    assert module_using(small, given.x, "aten.native_group_norm_backward.default") == "module '1' (GroupNorm)"
    assert module_using(small, given.x, "aten.unheard_of.default") == "the model"

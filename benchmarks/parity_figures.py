"""Measurements of `benchmarks.parity`: one model, several engines, the same batches and masks for all."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch  # noqa: TID251  the benchmark is about it
from torch import nn  # noqa: TID251

from edgefl.masks import Mask, full_mask
from examples.outside_model import Outsider
from export.engines import ExecuTorchParityEngine, OnnxParityEngine, ParityEngine, Step
from export.executorch import submodel
from export.model_source import open_source
from export.parity import Parity, compare, perturb_biases, random_batch, random_submodel, reference, state_of
from export.sgd_trajectory import distance, follow_trajectory, plan_trajectory
from export.zoo.seeding import seeded

__all__ = ["ENGINES", "OUTSIDER", "Distance", "Figures", "Plan", "examine"]

ENGINES = ("onnx", "executorch")
OUTSIDER = "outsider"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to compare."""

    masks: int
    steps: int
    widths: int
    batch: int
    threads: int
    plain: bool
    """Whether to walk without minding kinks."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Where a walk ended."""

    ours: float
    own: float
    """How far PyTorch in single precision came from PyTorch in double precision."""
    moved: float
    """How far PyTorch came from the start."""


@dataclass(slots=True)
class Figures:
    """What was found of one engine on one model."""

    full: Parity | None = None
    masks: list[Parity] = field(default_factory=list)
    walk: Distance | None = None
    widths: list[Parity] = field(default_factory=list)
    """Of random masks without frozen layers, all served by the session of the one ONNX graph."""
    seconds: float = 0.0
    """What the engine took: exports and steps, without PyTorch."""


def examine(name: str, engines: list[str], plan: Plan, say: Callable[[str], None]) -> dict[str, Figures]:
    """Compare engines with PyTorch on one model."""
    model, example = _subject(name)
    examination = _Examination(model, example, engines, plan)
    graph = examination.graph
    say("full width")
    whole = full_mask(graph)
    steps = examination.steps(whole)
    for engine, parity in examination.compare(whole, steps, seed=0).items():
        examination.figures[engine].full = parity
    if plan.steps:
        say(f"{plan.steps} steps")
        examination.walk(steps)
    generator = np.random.default_rng(0)
    for number in range(1, plan.masks + 1):
        mask = random_submodel(graph, generator, frozen=0.5)
        say(f"mask {number} of {plan.masks}, {len(mask.trained)} of {len(whole.trained)} layers trained")
        for engine, parity in examination.compare(mask, examination.steps(mask), seed=number).items():
            examination.figures[engine].masks.append(parity)
    one_session = {engine: step for engine, step in steps.items() if engine == "onnx"}
    for number in range(1, plan.widths + 1 if one_session else 1):
        if number % 10 == 0:
            say(f"width {number} of {plan.widths}")
        found = examination.compare(random_submodel(graph, generator), one_session, seed=1000 + number)
        examination.figures["onnx"].widths.append(found["onnx"])
    return examination.figures


def _subject(name: str) -> tuple[nn.Module, torch.Tensor]:
    """Return a model with its biases and norms off their first values, and an example of its input."""
    if name == OUTSIDER:
        with seeded(0):
            return perturb_biases(Outsider()).train(), torch.zeros(2, 3, 16, 16)
    source = open_source(name)
    return perturb_biases(source.model).train(), source.example


class _Examination:
    """One model, and the engines that are compared on it."""

    def __init__(self, model: nn.Module, example: torch.Tensor, engines: list[str], plan: Plan) -> None:
        self.figures = {engine: Figures() for engine in engines}
        self._model, self._example, self._plan = model, example, plan
        self._weights = state_of(model)
        start = time.perf_counter()
        onnx = OnnxParityEngine(model, example, threads=plan.threads)
        self.graph = onnx.graph
        batch = random_batch(example, plan.batch, torch.Generator().manual_seed(0))
        made: dict[str, ParityEngine] = {"onnx": onnx, "executorch": ExecuTorchParityEngine(model, batch)}
        self._engines = {engine: made[engine] for engine in engines}
        if "onnx" in engines:
            self.figures["onnx"].seconds += time.perf_counter() - start

    def steps(self, mask: Mask) -> dict[str, Step]:
        """Return every engine's training step of a mask."""
        found = {}
        for name, engine in self._engines.items():
            start = time.perf_counter()
            found[name] = engine.step(mask)
            self.figures[name].seconds += time.perf_counter() - start
        return found

    def compare(self, mask: Mask, steps: Mapping[str, Step], seed: int) -> dict[str, Parity]:
        """Compare the loss and gradients of a mask's submodel on a batch."""
        part = submodel(self._model, mask, self._weights)
        given = reference(part, self._example, batch=self._plan.batch, seed=seed)
        trained = {name for name, _ in part.named_parameters()} & set(mask.trained_tensors)
        found = {}
        for name, step in steps.items():
            start = time.perf_counter()
            found[name] = compare(given, step(given.inputs), trained)
            self.figures[name].seconds += time.perf_counter() - start
        return found

    def walk(self, steps: Mapping[str, Step]) -> None:
        """Let PyTorch and every engine walk from the same start over the same batches."""
        plan = self._plan
        walk = plan_trajectory(
            self._model, self._example, steps=plan.steps, batch=plan.batch, avoid_kinks=not plan.plain
        )
        own = distance(walk.own_end, walk.end)
        for name, step in steps.items():
            start = time.perf_counter()
            reached = follow_trajectory(walk, step)
            self.figures[name].seconds += time.perf_counter() - start
            self.figures[name].walk = Distance(distance(reached, walk.end), own, walk.moved)

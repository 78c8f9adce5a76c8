"""One thing to measure: a training program, a mask, a batch size; and one real training step of it.

It measures what a round does: the engine's forward and backward pass, and SGD with momentum around it. Samples and
weights are synthetic, because kernels do not run faster on better ones.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from device_runtime.engines import Engine
from edgefl.local_rules import Batch, Descent, Sgd, TrainingInput, TrainStep
from edgefl.masks import Array, Mask, Weights
from edgefl.model_graph import Cost, TensorRole
from edgefl.values import Program

__all__ = ["Case", "CaseProgram", "Sample", "Trial", "load_step", "synthetic_weights", "work_of"]

_RULE = Sgd(descent=Descent(learning_rate=1e-6, momentum=0.9, weight_decay=5e-4))
_BLOCK = 1 << 12
_ONES = (TensorRole.NORM, TensorRole.STATISTIC)

CROSS_ENTROPY, MASKED_CROSS_ENTROPY = "cross_entropy", "masked_cross_entropy"


@dataclass(frozen=True, slots=True)
class Sample:
    """The input and output of a model."""

    shape: tuple[int, ...]
    dtype: str
    outputs: int
    loss: str = CROSS_ENTROPY

    @property
    def labels(self) -> Array | None:
        """Flags of the classes that the device has, for a loss that needs them: all."""
        return np.ones(self.outputs, np.float32) if self.loss == MASKED_CROSS_ENTROPY else None

    def batch(self, size: int) -> Batch:
        """Return a synthetic batch."""
        generator = np.random.default_rng(size)
        shape = (size, *self.shape)
        # Zero is a valid index in every alphabet.
        real = self.dtype.startswith("float")
        x = generator.standard_normal(shape, np.float32).astype(self.dtype) if real else np.zeros(shape, self.dtype)
        if self.loss in (CROSS_ENTROPY, MASKED_CROSS_ENTROPY):
            return Batch(x, generator.integers(0, self.outputs, size))
        return Batch(x, np.zeros((size, self.outputs), np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class CaseProgram:
    """A training graph or program. Cases that share one share what the engine loads."""

    model: str
    data: bytes
    sample: Sample
    program: Program | None = None
    """The description of `data`, if that is an ExecuTorch program."""


@dataclass(frozen=True, eq=False)  # no slots: the cost is cached
class Case:
    """One thing to measure."""

    program: CaseProgram
    mask: Mask
    batch: int

    @cached_property
    def cost(self) -> Cost:
        """The cost of the mask for one sample."""
        return self.mask.cost

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of one step."""
        return self.batch * (self.cost.forward_multiply_adds + self.cost.backward_multiply_adds)

    @property
    def likely_bytes(self) -> int:
        """A generous guess of the memory of its step, before anything is measured."""
        return 5 * self.cost.activation_bytes(self.batch) + 5 * self.cost.parameter_bytes


def work_of(cost: Cost, batch: int) -> dict[str, int]:
    """Return the work of one step on a batch, by the names that `edgefl.values.CostFit` uses."""
    return {
        "forward_multiply_adds": batch * cost.forward_multiply_adds,
        "backward_multiply_adds": batch * cost.backward_multiply_adds,
        "activation_bytes": cost.activation_bytes(batch),
        "parameter_bytes": cost.parameter_bytes,
        "trained_parameters": cost.trained_parameters,
    }


def load_step(engine: Engine, case: Case) -> TrainStep:
    """Load the program of a case."""
    program = case.program
    return engine.train_step(program.data, case.mask, labels=program.sample.labels, program=program.program)


class Trial:
    """A case in memory, ready to train."""

    def __init__(self, case: Case, step: TrainStep) -> None:
        self._part = TrainingInput(case.mask, synthetic_weights(case.mask), seed=1)
        self._state = _RULE.begin(self._part)
        self._batch = case.program.sample.batch(case.batch)
        self._step = step

    def run(self, times: int = 1) -> None:
        """Train for some steps."""
        for _ in range(times):
            _RULE.step(self._part, self._state, self._batch, self._step)


def synthetic_weights(mask: Mask) -> Weights:
    """Return synthetic weights: one block of noise, repeated, since drawing millions is slow on a small device."""
    block = np.random.default_rng(0).standard_normal(_BLOCK, np.float32) * np.float32(0.05)
    return {name: _tensor(mask, name, shape, block) for name, shape in mask.shapes.items()}


def _tensor(mask: Mask, name: str, shape: tuple[int, ...], block: Array) -> Array:
    spec = mask.graph.tensor[name]
    if spec.role in _ONES:
        return np.ones(shape, spec.dtype.value)
    filled: np.ndarray[Any, Any] = np.resize(block, shape).astype(spec.dtype.value, copy=False)
    return filled

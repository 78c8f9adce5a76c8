"""The engines that are compared with PyTorch, behind one call: a mask in, its training step out.

Parity checks, tests and benchmarks use these; devices have their own engines. ONNX exports once, has one session for
every width, and cuts the graph where layers are frozen. ExecuTorch compiles a program for every mask.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.onnx_session import open_onnx_session
from edgefl.errors import MissingDependencyError
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from export.describe_graph import describe
from export.losses import LABEL_MASK
from export.training_graph import training_graph

__all__ = ["Arrays", "ParityEngine", "ExecuTorchParityEngine", "OnnxParityEngine", "Step", "onnx_step"]

Arrays = Mapping[str, npt.NDArray[Any]]
Step = Callable[[Arrays], Arrays]
"""One training step: inputs by name in (surplus ones are ignored), outputs by name out."""


class ParityEngine(Protocol):
    """An engine that can train a submodel."""

    def step(self, mask: Mask) -> Step:
        """Return the training step of a mask's submodel, without the gradients of its frozen layers."""


def onnx_step(graph: bytes, *, threads: int = 0) -> Step:
    """Open a training graph with onnxruntime; 0 threads means one per core."""
    try:
        session = open_onnx_session(graph, threads=threads)
    except ImportError:
        raise MissingDependencyError("onnxruntime", action="The parity check", extra="device") from None
    inputs = [node.name for node in session.get_inputs()]
    outputs = [node.name for node in session.get_outputs()]
    # A loss that masks labels equals the plain one if all labels are present.
    labels = {n.name: np.ones(n.shape, np.float32) for n in session.get_inputs() if n.name == LABEL_MASK}

    def step(given: Arrays) -> Arrays:
        known = {**labels, **given}
        found = session.run(outputs, {name: known[name] for name in inputs})
        return dict(zip(outputs, found, strict=True))

    return step


class OnnxParityEngine:
    """One export, and one session for every mask that freezes nothing."""

    def __init__(self, model: nn.Module, example: Tensor, *, threads: int = 0) -> None:
        exported, traced = training_graph(model, example)
        self._onnx: bytes = exported.SerializeToString(deterministic=True)
        self.graph: ModelGraph = describe(traced, type(model).__name__)
        self._threads = threads
        self._whole = onnx_step(self._onnx, threads=threads)

    def step(self, mask: Mask) -> Step:
        """Return the step of the one session, or of a cut graph if layers are frozen."""
        if mask.trained == set(mask.graph.trainable_layers):
            return self._whole
        return onnx_step(cut_training_graph(self._onnx, mask), threads=self._threads)


class ExecuTorchParityEngine:
    """A program for every mask, for batches of the size of the example."""

    def __init__(self, model: nn.Module, example: Tensor) -> None:
        self._model, self._example = model, example

    def step(self, mask: Mask) -> Step:
        """Compile the mask's program, which takes seconds to minutes."""
        from export.executorch import Runner, run_step, training_program

        program = training_program(self._model, self._example, mask)
        runner = Runner(program.pte)
        return lambda given: run_step(program, runner, given)

"""The ExecuTorch engine: training programs compiled for one mask and one batch size.

A program takes and returns its tensors by position (see `export.executorch.training`): x, y, sample_weights, then every
tensor of the model in its order; loss, correctness, the gradients and new statistics of what the mask trains. Its
Python binding needs torch, which is imported with it and only here.
"""

import contextlib
import importlib.metadata
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from device_runtime.engines.engine import ThreadSettings
from edgefl.errors import ExportError, MaskError
from edgefl.local_rules import Batch, StepResult, trained_parameters
from edgefl.masks import Array, Mask, Weights
from edgefl.model_graph import TensorRole

__all__ = ["ExecuTorchEngine", "ExecuTorchPredictor", "ExecuTorchStep", "open_engine"]


_INT64 = 4
"""ExecuTorch's number for this dtype."""


def open_engine(threads: ThreadSettings) -> "ExecuTorchEngine":
    """Return the engine."""
    return ExecuTorchEngine(threads)


class ExecuTorchEngine:
    """ExecuTorch's runtime on the CPU."""

    def __init__(self, threads: ThreadSettings) -> None:
        import torch  # noqa: TID251  matrix products run on torch's threads

        torch.set_num_threads(threads.count)
        runtime = _runtime()  # now, so that its memory is not attributed to the first model
        with _quiet():
            if runtime._threadpool_get_thread_count() != threads.count:  # for XNNPACK
                runtime._unsafe_reset_threadpool(threads.count)
        self.threads = threads

    @property
    def name(self) -> str:
        """The engine and its version."""
        return f"executorch {importlib.metadata.version('executorch')}"

    def train_step(self, graph: bytes, mask: Mask, *, labels: Array | None = None) -> "ExecuTorchStep":
        """Load the training program of this mask."""
        return ExecuTorchStep(_Program(graph), mask, labels)

    def predictor(self, model: bytes) -> "ExecuTorchPredictor":
        """Load an inference program, which contains its weights."""
        return ExecuTorchPredictor(_Program(model))


class ExecuTorchStep:
    """A loaded training program. Its gradients are overwritten by the next step."""

    def __init__(self, program: "_Program", mask: Mask, labels: Array | None) -> None:
        self._program = program
        self._tensors = tuple(mask.graph.tensor)
        # A program whose loss leaves out classes that the device does not have takes one more input.
        self._labels = [labels] if labels is not None and program.inputs == len(self._tensors) + 4 else []
        self._shapes = mask.shapes
        self._gradients = trained_parameters(mask)
        self.batch_size: int | None = program.batch_size
        kept = set(mask.trained_tensors)
        self._statistics = tuple(
            t.name for t in mask.graph.tensors if t.role is TensorRole.STATISTIC and t.name in kept
        )

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        """Run forward and backward."""
        changed = [name for name in self._tensors if weights[name].shape != self._shapes[name]]
        if changed:
            raise MaskError(
                f"tensor {changed[0]!r} has shape {weights[changed[0]].shape}, but the program was compiled for "
                f"{self._shapes[changed[0]]}",
                fix="Train with onnxruntime where widths change, or ask for a program of this mask.",
            )
        alike = np.full(len(batch.x), 1 / len(batch.x), np.float32)
        found = self._program.run([batch.x, batch.y, alike, *self._labels, *(weights[name] for name in self._tensors)])
        rest = found[len(found) - len(self._gradients) - self._statistic_count(found) :]
        first = found[1] if len(found) - len(rest) > 1 else np.zeros(0, np.bool_)
        gradients = dict(zip(self._gradients, rest, strict=False))
        statistics = dict(zip(self._statistics, rest[len(self._gradients) :], strict=True))
        return StepResult(float(found[0].reshape(())), first.astype(np.bool_), gradients, statistics)

    def cancel(self) -> None:
        """Do nothing: a running program cannot be interrupted. Its process can be ended."""

    def _statistic_count(self, found: list[Array]) -> int:
        """Return the number of new statistics of a step: all of the model's, or 0 if its norms keep none."""
        return len(self._statistics) if len(found) > len(self._gradients) + len(self._statistics) else 0


class ExecuTorchPredictor:
    """An inference program. Its batch size is fixed, so samples are run one at a time."""

    def __init__(self, program: "_Program") -> None:
        self._program = program
        self.sample_shape: tuple[int | None, ...] = program.sample_shape
        self.sample_dtype: str = program.sample_dtype

    def __call__(self, weights: Weights, x: Array) -> Array:
        """Return the model's output for every sample."""
        return np.concatenate([np.array(self._program.run([x[at : at + 1]])[0]) for at in range(len(x))])

    def cancel(self) -> None:
        """Do nothing: a running program cannot be interrupted. Its process can be ended."""


class _Program:
    """A loaded program."""

    def __init__(self, pte: bytes) -> None:
        self._pte = pte  # the runtime points into these bytes: without them the process crashes
        runtime = _runtime()
        with _quiet():
            try:
                self._module: Any = runtime._load_for_executorch_from_buffer(pte)
                about = self._module.method_meta("forward")
            except RuntimeError as error:
                raise ExportError(f"ExecuTorch cannot load the program: {error}", fix="Download it again.") from None
        self.inputs: int = about.num_inputs()
        """The number of its inputs."""
        first = about.input_tensor_meta(0)
        self.batch_size: int = first.sizes()[0]
        self.sample_shape: tuple[int, ...] = tuple(first.sizes()[1:])
        self.sample_dtype: str = "int64" if first.dtype() == _INT64 else "float32"

    def run(self, inputs: list[Array]) -> list[Array]:
        """Run the program. Its outputs are overwritten by the next run."""
        import torch  # noqa: TID251

        tensors = tuple(torch.from_numpy(np.require(array, requirements=["C", "W"])) for array in inputs)
        try:
            found = self._module.run_method("forward", tensors, clone_outputs=False)
        except RuntimeError as error:
            raise ExportError(
                f"ExecuTorch cannot run the program on a batch of {len(inputs[0])}: {error}",
                fix="Give batches of the size it was compiled for, and the weights of its mask.",
            ) from None
        return [tensor.numpy() for tensor in found]


def _runtime() -> Any:
    """Import the runtime's binding."""
    with _quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its packages use deprecated features of Python, torch and each other
        from executorch.extension.pybindings import portable_lib  # noqa: TID251

        return portable_lib


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard what the runtime's libraries print while they load."""
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)

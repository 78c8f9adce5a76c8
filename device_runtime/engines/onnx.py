"""The onnxruntime engine: one training graph for every width and batch size.

Weights go in without a copy, and gradients come out into buffers that are reused between steps. The graph arrives
already cut for what the rule trains; one that returns more than that works too, and takes longer.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnxruntime

from device_runtime.engines.engine import ThreadSettings
from device_runtime.engines.float_environment import preserved_float_environment
from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.artifacts.onnx_session import first_line, open_onnx_session
from edgefl.errors import ExportError, MaskError
from edgefl.local_rules import Batch, StepResult, trained_parameters
from edgefl.masks import Array, Mask, Weights
from edgefl.values import GraphFormat, Program

__all__ = ["OnnxEngine", "OnnxPredictor", "OnnxStep", "check_graph_alone", "open_engine", "open_session"]

_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
    "tensor(double)": np.float64,
}


def open_engine(threads: ThreadSettings) -> "OnnxEngine":
    """Return the engine."""
    return OnnxEngine(threads)


class OnnxEngine:
    """onnxruntime on the CPU."""

    format = GraphFormat.ONNX

    def __init__(self, threads: ThreadSettings) -> None:
        self.threads = threads

    @property
    def name(self) -> str:
        """The engine and its version."""
        return f"onnxruntime {onnxruntime.__version__}"

    def train_step(
        self, graph: bytes, mask: Mask, *, labels: Array | None = None, program: Program | None = None
    ) -> "OnnxStep":
        """Load a training graph that is cut for what the mask trains."""
        check_graph_alone(program)
        return OnnxStep(open_session(graph, self.threads), trained_parameters(mask), labels)

    def predictor(self, model: bytes, *, program: Program | None = None) -> "OnnxPredictor":
        """Load a model, with its weights inside or as inputs."""
        check_graph_alone(program)
        return OnnxPredictor(open_session(model, self.threads))


class OnnxStep:
    """A loaded training graph. Its gradients are overwritten by the next step."""

    batch_size: int | None = None

    def __init__(self, session: Any, trained: Collection[str], labels: Array | None) -> None:
        self._session = session
        self._options = onnxruntime.RunOptions()
        self._binding = session.io_binding()
        self._inputs = [node.name for node in session.get_inputs()]
        # Graphs of older exports declare the seed as it is; newer ones in a type that every binding can feed.
        self._takes_unsigned_seed = any(n.name == "seed" and n.type == "tensor(uint64)" for n in session.get_inputs())
        self._outputs = _outputs(session)
        self._read: dict[str, Array] = {}
        self._buffers: dict[str, Array] = {}
        self._gradients: dict[str, Array] = {}
        self._statistics: dict[str, Array] = {}
        self._samples = -1
        self._labels = labels
        missing = [name for name in trained if GRADIENT + name not in self._outputs]
        if missing:
            raise ExportError(
                f"the training graph has no gradient of {min(missing)!r}",
                fix="Give the graph of this model, cut for this mask or whole.",
            )

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        """Run forward and backward."""
        others = False
        for name in self._inputs:
            others |= self._bind_input(name, self._input(name, weights, batch)) and name in weights
        if others or len(batch.x) != self._samples:
            self._bind_outputs(weights, batch)
        try:
            self._session.run_with_iobinding(self._binding, self._options)
        except Exception as error:  # onnxruntime raises a dozen kinds, of its own and RuntimeError
            _check_memory(error)
            raise ExportError(
                f"onnxruntime cannot run the step: {first_line(error)}",
                fix="Check that the samples have the model's shape, and their labels its classes.",
            ) from None
        correct = self._buffers.get("correct", _NONE)
        return StepResult(float(self._buffers["loss"].reshape(())), correct, self._gradients, self._statistics)

    def cancel(self) -> None:
        """End a running step before its next operation, also within loops and branches, and every later step."""
        self._options.terminate = True

    def _input(self, name: str, weights: Weights, batch: Batch) -> Array:
        match name:
            case "x":
                return np.asarray(batch.x, order="C")
            case "y":
                return np.asarray(batch.y, order="C")
            case "seed":
                seed = np.array(batch.seed, np.uint64)
                return seed if self._takes_unsigned_seed else seed.view(np.int64)
            case "label_mask":
                if self._labels is None:
                    raise ExportError(
                        "the training graph masks labels, but the labels of this device are not known",
                        fix="Give the labels of its training data.",
                    )
                return self._labels
        if name not in weights:
            raise MaskError(f"tensor {name!r} is missing from the weights", fix="Give every tensor of the submodel.")
        return np.asarray(weights[name], order="C")

    def _bind_input(self, name: str, array: Array) -> bool:
        """Let the graph read an array in place. One that it reads already stays bound, even if its values changed."""
        if self._read.get(name) is array:
            return False
        self._binding.bind_cpu_input(name, array)
        self._read[name] = array  # the graph holds a bare pointer, so the memory must be kept alive
        return True

    def _bind_outputs(self, weights: Weights, batch: Batch) -> None:
        """Allocate memory for the outputs of a step whose arrays or number of samples differ from the last one's."""
        for name, dtype in self._outputs.items():
            self._bind_output(name, dtype, _shape(name, weights, batch))
        self._samples = len(batch.x)
        self._gradients = _named(self._buffers, GRADIENT)
        self._statistics = _named(self._buffers, NEW_STATISTIC)

    def _bind_output(self, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
        """Let the graph write an output to memory that is reused in every step while shapes stay the same."""
        known = self._buffers.get(name)
        if known is None or known.shape != shape:
            buffer = self._buffers[name] = np.empty(shape, dtype)
            self._binding.bind_output(name, "cpu", 0, dtype, shape, buffer.ctypes.data)


class OnnxPredictor:
    """A model for prediction."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._options = onnxruntime.RunOptions()
        self._inputs = [node.name for node in session.get_inputs()]
        features = next((node for node in session.get_inputs() if node.name == "x"), None)
        shape = () if features is None else features.shape[1:]
        self.sample_shape: tuple[int | None, ...] = tuple(size if isinstance(size, int) else None for size in shape)
        kind = _NUMPY.get("" if features is None else features.type, np.float32)
        self.sample_dtype: str = np.dtype(kind).name

    def __call__(self, weights: Weights, x: Array) -> Array:
        """Return the model's output for every sample."""
        missing = [name for name in self._inputs if name != "x" and name not in weights]
        if missing:
            raise MaskError(f"the model reads {missing[0]!r}, which the weights lack", fix="Give its own weights.")
        feed = {name: x if name == "x" else np.asarray(weights[name], order="C") for name in self._inputs}
        try:
            found: Array = self._session.run(None, feed, self._options)[0]
        except Exception as error:  # onnxruntime raises a dozen kinds, of its own and RuntimeError
            _check_memory(error)
            raise ExportError(
                f"onnxruntime cannot run the model: {first_line(error)}",
                fix="Check that the samples have the model's shape.",
            ) from None
        if found.ndim != 2 or len(found) != len(x):
            raise ExportError(f"the model returns an array of shape {found.shape}", fix="Give a model that classifies.")
        return found

    def cancel(self) -> None:
        """End a running call before its next operation, and every later call."""
        self._options.terminate = True


_NONE = np.zeros(0, np.bool_)
_NO_MEMORY = ("Failed to allocate memory", "bad allocation", "bad_alloc")


def _named(buffers: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in buffers.items() if name.startswith(prefix)}


def _outputs(session: Any) -> dict[str, Any]:
    """Return the outputs of a training graph with their types; raise if it is not a training graph."""
    found = {node.name: _NUMPY.get(node.type) for node in session.get_outputs()}
    inputs = {node.name for node in session.get_inputs()}
    strange = [name for name, dtype in found.items() if dtype is None or not _is_known(name, inputs)]
    if strange or "loss" not in found:
        problem = f"it has an output {strange[0]!r}" if strange else "it has no output 'loss'"
        raise ExportError(f"this is not a training graph: {problem}", fix="Give a graph that `edgefl export` wrote.")
    return found


def _is_known(output: str, inputs: set[str]) -> bool:
    return output in ("loss", "correct") or any(
        output.startswith(prefix) and output.removeprefix(prefix) in inputs for prefix in (GRADIENT, NEW_STATISTIC)
    )


def _shape(output: str, weights: Weights, batch: Batch) -> tuple[int, ...]:
    for prefix in (GRADIENT, NEW_STATISTIC):
        if output.startswith(prefix):
            return weights[output.removeprefix(prefix)].shape
    return (len(batch.x),) if output == "correct" else ()


def open_session(model: bytes, threads: ThreadSettings) -> Any:
    """Load a graph into onnxruntime with this engine's options."""
    settings = {
        "session.set_denormal_as_zero": "1",
        "session.intra_op.allow_spinning": str(int(threads.spinning)),
    }
    with preserved_float_environment():
        return open_onnx_session(model, threads=threads.count, settings=settings)


def check_graph_alone(program: Program | None) -> None:
    """Raise if a program is given instead of a graph."""
    if program is not None:
        raise ExportError("onnxruntime does not run ExecuTorch programs", fix="Use the engine 'executorch' for it.")


def _check_memory(error: Exception) -> None:
    """Raise `MemoryError` if that is why onnxruntime failed: it has no error of its own for it."""
    if any(words in str(error) for words in _NO_MEMORY):
        raise MemoryError from None

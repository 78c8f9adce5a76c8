"""The ExecuTorch engine: programs that were compiled for the widths of a submodel.

A program takes and returns its tensors by position; the document that comes with it (`Program`) names them. A batch
that is smaller than the program's is filled up with a sample that does not count. The Python binding needs torch, which
is imported with it and only here.
"""

import importlib.metadata
import math

import numpy as np

from device_runtime.engines.engine import ThreadSettings
from device_runtime.engines.executorch_program import LoadedProgram, TensorForm, import_runtime, quiet, unlike
from device_runtime.engines.program_check import check_training_program, check_version
from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.errors import ExportError, MaskError
from edgefl.local_rules import Batch, StepResult, trained_parameters
from edgefl.masks import Array, Mask, Weights
from edgefl.values import SAMPLE_WEIGHTS, GraphFormat, Program, ProgramRole

__all__ = ["ExecuTorchEngine", "ExecuTorchPredictor", "ExecuTorchStep", "open_engine"]

_NONE = np.zeros(0, np.bool_)


def open_engine(threads: ThreadSettings) -> "ExecuTorchEngine":
    """Return the engine."""
    return ExecuTorchEngine(threads)


class ExecuTorchEngine:
    """ExecuTorch's runtime on the CPU."""

    format = GraphFormat.EXECUTORCH

    def __init__(self, threads: ThreadSettings) -> None:
        import torch  # noqa: TID251  matrix products run on torch's threads

        torch.set_num_threads(threads.count)
        runtime = import_runtime()  # now, so that its memory is not attributed to the first model
        with quiet():
            if runtime._threadpool_get_thread_count() != threads.count:  # for XNNPACK
                runtime._unsafe_reset_threadpool(threads.count)
        self.threads = threads

    @property
    def name(self) -> str:
        """The engine and its version."""
        return f"executorch {importlib.metadata.version('executorch')}"

    def train_step(
        self, graph: bytes, mask: Mask, *, labels: Array | None = None, program: Program | None = None
    ) -> "ExecuTorchStep":
        """Load a training program, which `program` describes. It may train more layers than the mask."""
        if program is None:
            raise ExportError("a training program needs its description", fix="Give the document of the program.")
        check_training_program(program, mask)
        return ExecuTorchStep(_loaded(graph, program), program, mask, labels)

    def predictor(self, model: bytes, *, program: Program | None = None) -> "ExecuTorchPredictor":
        """Load an inference program. Without a description it contains its weights."""
        if program is not None and program.spec.role is not ProgramRole.INFER:
            raise ExportError("the program does not predict", fix="Give the document of an inference program.")
        loaded = LoadedProgram(model) if program is None else _loaded(model, program)
        return ExecuTorchPredictor(loaded, ("x",) if program is None else program.inputs)


class ExecuTorchStep:
    """A loaded training program. Its gradients are overwritten by the next step."""

    def __init__(self, loaded: LoadedProgram, program: Program, mask: Mask, labels: Array | None) -> None:
        self._loaded, self._inputs, self._outputs = loaded, program.inputs, program.outputs
        self._labels = labels
        self._samples = _Samples(loaded, program.inputs.index("x"))
        self._weights: dict[int, Array] = {}
        self.batch_size: int | None = self._samples.most
        self._shapes = mask.shapes
        wanted = set(trained_parameters(mask))
        self._gradients = {name: at for name, at in _indices(program.outputs, GRADIENT).items() if name in wanted}
        trained = set(mask.trained_tensors)
        self._statistics = {n: at for n, at in _indices(program.outputs, NEW_STATISTIC).items() if n in trained}
        self._check_file(program, mask)

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        """Run forward and backward."""
        real = len(batch.x)
        self._samples.check(real)
        found = self._loaded.run([self._input(name, weights, batch) for name in self._inputs])
        at = dict(zip(self._outputs, found, strict=True))
        return StepResult(
            float(at["loss"].reshape(())),
            at["correct"][:real].astype(np.bool_) if "correct" in at else _NONE,
            {name: found[index] for name, index in self._gradients.items()},
            {name: found[index] for name, index in self._statistics.items()},
        )

    def cancel(self) -> None:
        """Do nothing: a running program cannot be interrupted. Its process can be ended."""

    def _input(self, name: str, weights: Weights, batch: Batch) -> Array:
        match name:
            case "x" | "y":
                return self._samples.filled(batch.x if name == "x" else batch.y)
            case "sample_weights":
                return self._sample_weights(len(batch.x))
            case "seed":
                return np.array(batch.seed, np.uint64).view(np.int64)
            case "label_mask":
                if self._labels is None:
                    raise ExportError(
                        "the program masks labels, but the labels of this device are not known",
                        fix="Give the labels of its training data.",
                    )
                return self._labels
        if name not in weights or weights[name].shape != self._shapes[name]:
            shape = weights[name].shape if name in weights else "no shape"
            raise MaskError(
                f"tensor {name!r} has shape {shape}, but the program was compiled for {self._shapes[name]}",
                fix="Train with onnxruntime where widths change, or ask for a program of this mask.",
            )
        return weights[name]

    def _sample_weights(self, real: int) -> Array:
        if real not in self._weights:
            made = self._weights[real] = np.zeros(self._samples.most, np.float32)
            made[:real] = 1 / real
        return self._weights[real]

    def _check_file(self, program: Program, mask: Mask) -> None:
        """Raise unless the file has the inputs and outputs that its description says."""
        batch, tensors = program.spec.batch_size, mask.graph.tensor
        expected: dict[str, TensorForm] = {n: (mask.shapes[n], tensors[n].dtype.value) for n in tensors}
        self._loaded.check_inputs(program.inputs, expected | {SAMPLE_WEIGHTS: ((batch,), "float32")})
        results: dict[str, TensorForm] = {
            prefix + name: like for name, like in expected.items() for prefix in (GRADIENT, NEW_STATISTIC)
        }
        self._loaded.check_outputs(program.outputs, results)
        shapes = [self._loaded.inputs[program.inputs.index(name)][0] for name in ("x", "y")]
        if "correct" in program.outputs:
            shapes.append(self._loaded.outputs[program.outputs.index("correct")][0])
        if any(shape[:1] != (batch,) for shape in shapes):
            raise unlike(f"it takes {shapes[0][0] if shapes[0] else 0} samples, and not {batch}")
        elements = math.prod(shapes[0][1:])
        if mask.graph.input_elements and elements != mask.graph.input_elements:
            raise unlike(f"it takes samples of {elements} numbers, the model of {mask.graph.input_elements}")


class ExecuTorchPredictor:
    """An inference program. Batches that are smaller than its own are filled up."""

    def __init__(self, loaded: LoadedProgram, inputs: tuple[str, ...]) -> None:
        if "x" not in inputs or len(inputs) != len(loaded.inputs) or len(loaded.outputs) != 1:
            raise unlike(f"it has {len(loaded.inputs)} inputs and {len(loaded.outputs)} outputs")
        self._loaded, self._inputs = loaded, inputs
        at = inputs.index("x")
        self._samples = _Samples(loaded, at)
        self.sample_shape: tuple[int | None, ...] = loaded.inputs[at][0][1:]
        self.sample_dtype: str = loaded.inputs[at][1]

    def __call__(self, weights: Weights, x: Array) -> Array:
        """Return the model's output for every sample."""
        size = self._samples.most
        return np.concatenate([self._predicted(weights, x[at : at + size]) for at in range(0, len(x), size)])

    def cancel(self) -> None:
        """Do nothing: a running program cannot be interrupted. Its process can be ended."""

    def _predicted(self, weights: Weights, x: Array) -> Array:
        feed = []
        for name, (shape, _) in zip(self._inputs, self._loaded.inputs, strict=True):
            given = self._samples.filled(x) if name == "x" else weights.get(name)
            if given is None or given.shape != shape:
                had = "no shape" if given is None else given.shape
                raise MaskError(f"{name!r} has shape {had}, but the program takes {shape}", fix="Give its own weights.")
            feed.append(given)
        found = self._loaded.run(feed)[0]
        if found.ndim != 2 or len(found) < len(x):
            raise ExportError(f"the model returns an array of shape {found.shape}", fix="Give a model that classifies.")
        return np.array(found[: len(x)])


class _Samples:
    """Fills batches up to the size that a program takes."""

    def __init__(self, loaded: LoadedProgram, x: int) -> None:
        shape = loaded.inputs[x][0] if x < len(loaded.inputs) else ()
        if not shape or shape[0] < 1:
            raise unlike(f"its samples have the shape {shape}")
        self.most = shape[0]
        """The number of samples that the program takes."""

    def check(self, real: int) -> None:
        """Raise if a batch is too large for the program."""
        if not 1 <= real <= self.most:
            raise ExportError(
                f"a batch has {real} samples, but the program takes at most {self.most}",
                fix="Plan smaller batches, or compile a program for a larger one.",
            )

    def filled(self, batch: Array) -> Array:
        """Return a batch with its first sample repeated: other values might overflow, and 0 times infinity is not 0."""
        real = len(batch)
        self.check(real)
        if real == self.most:
            return batch
        return np.concatenate([batch, np.broadcast_to(batch[:1], (self.most - real, *batch.shape[1:]))])


def _loaded(pte: bytes, program: Program) -> LoadedProgram:
    """Load a program file that a document describes."""
    check_version(program, importlib.metadata.version("executorch"))
    if len(pte) != program.size:
        raise unlike(f"it has {len(pte):,} bytes, and not {program.size:,}")
    return LoadedProgram(pte)


def _indices(outputs: tuple[str, ...], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): at for at, name in enumerate(outputs) if name.startswith(prefix)}

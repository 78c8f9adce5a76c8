"""The interface between the runtime and its engines, and the choice of an engine.

Nothing is imported before it is needed: a device that has only onnxruntime never looks for ExecuTorch.
"""

import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.local_rules import TrainStep
from edgefl.masks import Array, Mask, Weights
from edgefl.values import GraphFormat, Program

__all__ = ["ENGINES", "Engine", "Predictor", "EngineStep", "ThreadSettings", "installed_engines", "open_engine"]


@dataclass(frozen=True, slots=True)
class ThreadSettings:
    """How an engine may use the processor."""

    count: int
    spinning: bool = False
    """Whether threads busy-wait for work: slightly faster, and bad for a battery."""

    @classmethod
    def default(cls) -> "ThreadSettings":
        """Return settings for all the cores that this process may use."""
        return cls(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class EngineStep(TrainStep, Protocol):
    """A loaded training graph or program."""

    @property
    def batch_size(self) -> int | None:
        """The largest batch that it accepts, or None if it accepts any."""
        ...

    def cancel(self) -> None:
        """End the step that another thread is running, and all later ones, with an error, as soon as possible.

        An engine may have to finish the operation that it is computing, or even the step.
        """
        ...


class Predictor(Protocol):
    """Runs a model forward."""

    @property
    def sample_shape(self) -> tuple[int | None, ...]:
        """The shape of one sample; None for a size that the model leaves open."""
        ...

    @property
    def sample_dtype(self) -> str:
        """The dtype of a sample, such as 'float32'."""
        ...

    def __call__(self, weights: Weights, x: Array) -> Array:
        """Return the model's output for every sample. A model with its weights inside ignores `weights`."""
        ...

    def cancel(self) -> None:
        """End the call that another thread is running, and all later ones, as `EngineStep.cancel` does."""
        ...


class Engine(Protocol):
    """Loads training steps and predictors from exported files."""

    @property
    def format(self) -> GraphFormat:
        """What it runs."""
        ...

    @property
    def name(self) -> str:
        """The engine and its version, such as 'onnxruntime 1.31.1'."""
        ...

    def train_step(
        self, graph: bytes, mask: Mask, *, labels: Array | None = None, program: Program | None = None
    ) -> EngineStep:
        """Load a training graph, or a program with its description. It may compute more than the mask trains.

        `labels` flags the classes that the device has, for a graph that masks the others out of the loss.
        """
        ...

    def predictor(self, model: bytes, *, program: Program | None = None) -> Predictor:
        """Load a model for prediction; a program whose weights are inputs comes with its description."""
        ...


ENGINES: Mapping[str, tuple[str, str, str]] = {
    # name: (package, extra that installs it, module of the engine)
    "onnx": ("onnxruntime", "device", "device_runtime.engines.onnx"),
    "executorch": ("executorch", "executorch", "device_runtime.engines.executorch"),
}


def installed_engines() -> tuple[str, ...]:
    """Return the names of the engines whose packages are installed, the preferred one first."""
    return tuple(name for name, (package, _, _) in ENGINES.items() if importlib.util.find_spec(package) is not None)


def open_engine(name: str | None = None, threads: ThreadSettings | None = None) -> Engine:
    """Return an engine by name, or the first that is installed."""
    if name is not None and name not in ENGINES:
        raise EdgeFLError(f"there is no engine {name!r}", fix=f"Choose one of {', '.join(ENGINES)}.")
    here = installed_engines()
    chosen = name or (here[0] if here else "onnx")
    package, extra, module = ENGINES[chosen]
    if chosen not in here:
        raise MissingDependencyError(package, action=f"The engine {chosen!r}", extra=extra)
    engine: Engine = importlib.import_module(module).open_engine(threads or ThreadSettings.default())
    return engine

"""The processes in which `edgefl compile` builds the model and compiles programs.

Each has torch, which the process that talks to the coordinator never imports. One that dies takes only its program
with it, and none outlives the command.
"""

import contextlib
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeFLError, ExportError
from edgefl.values import Program, ProgramSpec

if TYPE_CHECKING:
    from edgefl.artifacts.bundle import Bundle
    from export.executorch.program import ProgramCompiler
    from export.model_source import ModelSource

__all__ = ["Compilers", "ModelChoice"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which torch model a bundle was exported from."""

    bundle: bytes
    """The bundle, a zip file."""
    model: str | None = None
    """A zoo model, or package.module:factory; None is the zoo model that the bundle names."""
    sample: str | None = None
    """The shape of one sample of a factory's model."""
    classes: int | None = None


class Compilers:
    """Processes that compile the programs of one bundle."""

    def __init__(self, choice: ModelChoice, jobs: int) -> None:
        self._choice, self._jobs = choice, jobs
        self._pool = self._started()
        self._begun: list[Future[Any]] = []
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise `ExportError` unless the torch model is the one that the bundle was exported from."""
        self._begun.append(self._pool.submit(_check))
        self._begun[-1].result()

    def compile(self, spec: ProgramSpec) -> "Future[tuple[Program, bytes]]":
        """Compile a program: its result is the document and the file."""
        with self._lock:
            try:
                begun = self._pool.submit(_compile, spec)
            except BrokenProcessPool:  # a process died with an earlier one
                self._pool = self._started()
                begun = self._pool.submit(_compile, spec)
            self._begun = [one for one in self._begun if not one.done()] + [begun]
        return begun

    def stop(self) -> None:
        """End all processes now, whatever they do."""
        if any(not one.done() for one in self._begun):
            for process in list((self._pool._processes or {}).values()):
                process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        fresh = get_context("spawn")  # torch's threads do not survive a fork
        return ProcessPoolExecutor(self._jobs, mp_context=fresh, initializer=_begin, initargs=(self._choice,))


_choice: ModelChoice | None = None
_built: "tuple[Bundle, ModelSource] | None" = None
_compiler: "ProgramCompiler | None" = None


def _begin(choice: ModelChoice) -> None:
    """Remember what to compile; the model is built with the first task, whose error can be reported."""
    import signal

    from device_runtime.agent.process_limits import end_with_parent

    global _choice
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command decides when its processes end
    _choice = choice


def _model() -> "tuple[Bundle, ModelSource]":
    from edgefl.artifacts.bundle import unpack_bundle
    from export.model_source import open_source
    from export.zoo import ZOO

    global _built
    if _built is None:
        assert _choice is not None  # the initializer ran
        bundle = unpack_bundle(_choice.bundle)
        name = _choice.model or bundle.manifest.model
        if _choice.model is None and name not in ZOO:
            raise ExportError(
                f"the bundle is one of a model {name!r}, which the zoo does not have",
                fix="Name it with --model package.module:factory and --input.",
            )
        is_zoo = ":" not in name
        classes = (_choice.classes or bundle.manifest.outputs) if is_zoo else None
        shape = ",".join(map(str, bundle.manifest.input_shape))
        _built = bundle, open_source(name, classes=classes, sample=None if is_zoo else _choice.sample or shape)
    return _built


def _check() -> None:
    from edgefl.artifacts.bundle import TRAIN
    from export.describe_graph import describe
    from export.losses import Loss
    from export.parity import check_parity
    from export.training_graph import training_graph
    from export.zoo import block_of

    bundle, source = _model()
    _, traced = training_graph(source.model, source.example, Loss(bundle.manifest.loss))
    graph = describe(traced, bundle.manifest.model, block_of)
    fix = "Give the model that the bundle was exported from: --model, --classes, --input."
    if graph.digest != bundle.graph.digest:
        raise ExportError(f"{source.name} is not the model of the bundle: its layers or widths differ", fix=fix)
    parity = check_parity(source.model, bundle.files[TRAIN], source.example)
    if not parity.holds:
        raise ExportError(
            f"{source.name} is not the model of the bundle: the gradient of {parity.worst!r} differs by "
            f"{parity.gradient_error:.1e}",
            fix=fix,
        )


def _compile(spec: ProgramSpec) -> tuple[Program, bytes]:
    from export.executorch.program import ProgramCompiler
    from export.executorch.program_cache import ProgramCache
    from export.losses import Loss

    global _compiler
    bundle, source = _model()
    try:
        cache = ProgramCache()
        known = cache.get(spec)
        if known is not None:
            return known
        if _compiler is None:  # programs of the same widths share most of the work
            _compiler = ProgramCompiler(source.model, source.example, bundle.graph, Loss(bundle.manifest.loss))
        made = _compiler.compile(spec)
        with contextlib.suppress(OSError):  # it is only a cache
            cache.put(*made)
        return made
    except EdgeFLError:
        raise
    except Exception as error:  # torch raises whatever it likes, and some of it cannot be sent between processes
        text = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        raise ExportError(f"the program cannot be compiled: {text}", fix="Report the model.") from None

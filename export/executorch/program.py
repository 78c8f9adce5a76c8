"""Compiles what a `ProgramSpec` says: the training step or the prediction of a form of submodel, weights as inputs.

    training     inputs and outputs as in `export.executorch.training`
    inference    inputs x, then every tensor of the model in the model's order; output logits, from running statistics

XNNPACK takes weights of convolutions and linear layers as constants only, so predictions use the same kernels as
training. A model's own program with its weights inside is made by `export.executorch.inference`.
"""

import importlib.metadata

from torch import Tensor, nn

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.errors import ExportError
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import Program, ProgramRole, ProgramSpec, digest_of
from export.executorch.training import LoweredGraph, lowered_prediction, lowered_step
from export.losses import Loss

__all__ = ["ProgramCompiler", "compile_program", "made_with"]


def compile_program(
    model: nn.Module, example: Tensor, graph: ModelGraph, spec: ProgramSpec, loss: Loss = Loss.CROSS_ENTROPY
) -> tuple[Program, bytes]:
    """Compile one program of a model; the example gives the shape of a sample."""
    return ProgramCompiler(model, example, graph, loss).compile(spec)


def made_with() -> str:
    """Return the name and version of the compiler."""
    return f"executorch {importlib.metadata.version('executorch')}"


class ProgramCompiler:
    """Compiles programs of one model. Cuts of the same widths and batch size are made from one lowered step."""

    def __init__(self, model: nn.Module, example: Tensor, graph: ModelGraph, loss: Loss = Loss.CROSS_ENTROPY) -> None:
        self._model, self._example, self._graph, self._loss = model, example, graph, loss
        self._steps: dict[tuple[object, ...], tuple[set[str], LoweredGraph]] = {}

    def compile(self, spec: ProgramSpec) -> tuple[Program, bytes]:
        """Compile a program. If a step that trains more layers was compiled before, this one is cut out of it."""
        if spec.model != self._graph.digest:
            raise ExportError(
                f"the program is for the model {spec.model}, but this is {self._graph.digest}",
                fix="Give the model that the bundle was exported from, with the same options.",
            )
        mask = _mask_of(self._graph, spec)
        lowered = self._step(spec, mask) if spec.role is ProgramRole.TRAIN else self._prediction(spec, mask)
        trained = mask.trained_tensors
        kept = [place for place, name in enumerate(lowered.outputs) if _tensor_of(name) in {None, *trained}]
        done = lowered.graph.compiled(kept)
        program = Program(
            spec=spec,
            inputs=lowered.inputs,
            outputs=tuple(lowered.outputs[place] for place in kept),
            pte=digest_of(done.pte),
            size=len(done.pte),
            peak_bytes=done.peak_bytes,
            made_with=made_with(),
        )
        return program, done.pte

    def _step(self, spec: ProgramSpec, mask: Mask) -> LoweredGraph:
        form = (spec.batch_size, *sorted(spec.widths.items()))
        trained, lowered = self._steps.get(form, (set(), None))
        if lowered is None or not set(spec.trained) <= trained:
            lowered = lowered_step(self._model, self._batch(spec), mask, self._loss)
            self._steps[form] = set(spec.trained), lowered
        return lowered

    def _prediction(self, spec: ProgramSpec, mask: Mask) -> LoweredGraph:
        return lowered_prediction(self._model, self._batch(spec), mask)

    def _batch(self, spec: ProgramSpec) -> Tensor:
        return self._example[:1].expand(spec.batch_size, *self._example.shape[1:]).contiguous()


def _mask_of(graph: ModelGraph, spec: ProgramSpec) -> Mask:
    """Return a mask of the widths: the first channels of every group."""
    kept = {name: range(width) for name, width in spec.widths.items()}
    return Mask.of(graph, kept=kept, trained=spec.trained)


def _tensor_of(output: str) -> str | None:
    """Return the tensor whose gradient or new value an output is, or None."""
    for prefix in (GRADIENT, NEW_STATISTIC):
        if output.startswith(prefix):
            return output.removeprefix(prefix)
    return None

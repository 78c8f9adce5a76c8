"""Descriptions of programs of the small model, as the exporter writes them."""

from dataclasses import replace
from typing import Any

from edgefl.artifacts.bundle import INFER, TRAIN
from edgefl.local_rules import trained_parameters
from edgefl.masks import Mask
from edgefl.model_graph import TensorRole
from edgefl.planning.rungs import covering_cut
from edgefl.values import Program, ProgramRole, ProgramSpec, digest_of
from tests.device_runtime.federation import bundle

PTE = b"not a program"


def training_document(mask: Mask, pte: bytes = PTE, *, batch_size: int = 32, **changes: Any) -> Program:
    """The description of a training program for the widths of a mask and at least its trained layers."""
    cut = Mask.of(mask.graph, trained=covering_cut(mask.graph, mask.trained))
    statistics = [n for n in cut.trained_tensors if mask.graph.tensor[n].role is TensorRole.STATISTIC]
    outputs = ["loss", "correct", *(f"grad:{n}" for n in trained_parameters(cut)), *(f"new:{n}" for n in statistics)]
    spec = _spec(mask, ProgramRole.TRAIN, TRAIN, covering_cut(mask.graph, mask.trained), batch_size)
    inputs = ("x", "y", "sample_weights", *mask.graph.tensor)
    return replace(_program(spec, inputs, tuple(outputs), pte), **changes)


def inference_document(mask: Mask, pte: bytes = PTE, *, batch_size: int = 8, **changes: Any) -> Program:
    """The description of an inference program for the widths of a mask."""
    spec = _spec(mask, ProgramRole.INFER, INFER, (), batch_size)
    return replace(_program(spec, ("x", *mask.graph.tensor), ("logits",), pte), **changes)


def _spec(mask: Mask, role: ProgramRole, graph: str, trained: tuple[str, ...], batch_size: int) -> ProgramSpec:
    return ProgramSpec(
        role=role,
        model=mask.graph.digest,
        graph=digest_of(bundle().files[graph]),
        widths=dict(mask.widths),
        trained=trained,
        batch_size=batch_size,
    )


def _program(spec: ProgramSpec, inputs: tuple[str, ...], outputs: tuple[str, ...], pte: bytes) -> Program:
    return Program(
        spec=spec,
        inputs=inputs,
        outputs=outputs,
        pte=digest_of(pte),
        size=len(pte),
        peak_bytes=1 << 20,
        made_with="executorch 1.4.1",
    )

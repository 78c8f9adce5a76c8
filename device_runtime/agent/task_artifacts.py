"""What a plan names, by digest: model graph, mask, weights, training graph or program; and how these become a task.

A plan for ExecuTorch names documents, which describe the programs and name their files. It names the graphs too: a
device whose engine changes can go on with a task that it has begun.

Artifacts come from the coordinator and are not trusted: a body that does not match the plan is refused before anything
is trained.
"""

from collections.abc import Callable

from device_runtime.engines import installed_engines
from device_runtime.refusal import RefusalError
from device_runtime.trainer import TrainingTask
from edgefl.masks import Array, Mask, Weights, full_mask
from edgefl.model_graph import ModelGraph
from edgefl.values import ClientPlan, GraphFormat, Program, Reason, loads
from edgefl.wire import BodyKind, Dense, Expected, Payload, Sparse, decode, decode_mask

__all__ = ["Read", "description_digests", "load_mask", "load_programs", "load_task", "runs_programs", "task_digests"]

Read = Callable[[str], bytes]
"""Returns an artifact by its digest."""


def runs_programs(plan: ClientPlan, engine: GraphFormat) -> bool:
    """Return whether a device trains a plan with its program, and not with its graph.

    A plan from before a device's engine changed may name none. onnxruntime then goes on with it, if it is installed.
    """
    if engine is not GraphFormat.EXECUTORCH:
        return False
    if plan.program is None and GraphFormat.ONNX not in installed_engines():
        raise RefusalError(
            Reason.UNSUPPORTED,
            "the plan names no ExecuTorch program, and onnxruntime is not installed here",
            fix="Compile programs for this device with `edgefl compile`.",
        )
    return plan.program is not None


def description_digests(plan: ClientPlan, engine: GraphFormat) -> tuple[str, ...]:
    """Return the digests of the artifacts that say how large a task is: a few kilobytes of all that it needs."""
    programs = (plan.program, plan.inference_program) if runs_programs(plan, engine) else ()
    return tuple(digest for digest in (plan.model, plan.mask_body, *programs) if digest is not None)


def task_digests(plan: ClientPlan, engine: GraphFormat) -> tuple[str, ...]:
    """Return the digests of everything that a task needs. Program files come on top: `load_programs` names them."""
    if plan.graph is None or plan.weights is None:
        raise RefusalError(
            Reason.UNSUPPORTED, "the plan lacks a training graph or weights", fix="Name both in the plan."
        )
    graph = None if runs_programs(plan, engine) else plan.graph
    rest = (graph, plan.weights, _inference_graph(plan, engine), plan.extras)
    return (*description_digests(plan, engine), *(digest for digest in rest if digest is not None))


def load_programs(plan: ClientPlan, engine: GraphFormat, read: Read) -> tuple[Program | None, Program | None]:
    """Return the descriptions of the programs that a device trains and predicts with; None where it runs a graph."""
    if not runs_programs(plan, engine):
        return None, None
    said = [None if digest is None else read(digest) for digest in (plan.program, plan.inference_program)]
    train, infer = (None if text is None else loads(Program, text, tolerant=True) for text in said)
    return train, infer


def _inference_graph(plan: ClientPlan, engine: GraphFormat) -> str | None:
    """Return the inference graph, unless the device has a program for inference.

    Without onnxruntime it cannot evaluate with the graph, but its own model is kept with it.
    """
    return None if runs_programs(plan, engine) and plan.inference_program is not None else plan.inference


def load_mask(plan: ClientPlan, read: Read) -> Mask:
    """Return the mask of a plan, which holds its model graph."""
    graph = loads(ModelGraph, read(plan.model))
    mask = full_mask(graph) if plan.mask_body is None else decode_mask(read(plan.mask_body), graph)
    if mask.digest != plan.mask:
        raise RefusalError(Reason.BROKEN, "the mask does not match the plan", fix="Create the plan again.")
    return mask


def load_task(plan: ClientPlan, read: Read, engine: GraphFormat, *, down_bytes: int) -> TrainingTask:
    """Return the task of a plan for an engine, for which this many bytes were downloaded."""
    task_digests(plan, engine)
    mask = load_mask(plan, read)
    dtypes = {name: str(tensor.dtype) for name, tensor in mask.graph.tensor.items()}
    expected = {name: Expected(shape, dtype=dtypes[name]) for name, shape in mask.shapes.items()}
    program, inference_program = load_programs(plan, engine, read)
    inference = _inference_graph(plan, engine) if inference_program is None else inference_program.pte
    return TrainingTask(
        plan,
        mask,
        _tensors(read(str(plan.weights)), expected),
        read(str(plan.graph) if program is None else program.pte),
        None if inference is None else read(inference),
        {} if plan.extras is None else _tensors(read(plan.extras), None),
        down_bytes,
        program=program,
        inference_program=inference_program,
    )


def _tensors(data: bytes, expected: dict[str, Expected] | None) -> Weights:
    body = decode(data, kind=BodyKind.WEIGHTS, expected=expected, intact=True)  # its digest was checked
    return {name: _array(name, payload) for name, payload in body.tensors.items()}


def _array(name: str, payload: Payload) -> Array:
    if isinstance(payload, Sparse):
        return payload.to_dense()
    if not isinstance(payload, Dense):
        raise RefusalError(
            Reason.UNSUPPORTED, f"tensor {name!r} is encoded as {payload.codec}", fix="Send it dense or sparse."
        )
    return payload.array

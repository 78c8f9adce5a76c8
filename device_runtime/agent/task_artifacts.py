"""What a plan names, by digest: model graph, mask, weights, training graph; and how these become a task.

Artifacts come from the coordinator and are not trusted: a body that does not match the plan is refused before anything
is trained.
"""

from collections.abc import Callable

from device_runtime.refusal import RefusalError
from device_runtime.trainer import TrainingTask
from edgefl.masks import Array, Mask, Weights, full_mask
from edgefl.model_graph import ModelGraph
from edgefl.values import ClientPlan, Reason, loads
from edgefl.wire import BodyKind, Dense, Expected, Payload, Sparse, decode, decode_mask

__all__ = ["Read", "description_digests", "load_mask", "load_task", "task_digests"]

Read = Callable[[str], bytes]
"""Returns an artifact by its digest."""


def description_digests(plan: ClientPlan) -> tuple[str, ...]:
    """Return the digests of the artifacts that say how large a task is: a few kilobytes of all that it needs."""
    return tuple(digest for digest in (plan.model, plan.mask_body) if digest is not None)


def task_digests(plan: ClientPlan) -> tuple[str, ...]:
    """Return the digests of everything that a task needs."""
    if plan.graph is None or plan.weights is None:
        raise RefusalError(
            Reason.UNSUPPORTED, "the plan lacks a training graph or weights", fix="Name both in the plan."
        )
    rest = (plan.graph, plan.weights, plan.inference, plan.extras)
    return (*description_digests(plan), *(digest for digest in rest if digest is not None))


def load_mask(plan: ClientPlan, read: Read) -> Mask:
    """Return the mask of a plan, which holds its model graph."""
    graph = loads(ModelGraph, read(plan.model))
    mask = full_mask(graph) if plan.mask_body is None else decode_mask(read(plan.mask_body), graph)
    if mask.digest != plan.mask:
        raise RefusalError(Reason.BROKEN, "the mask does not match the plan", fix="Create the plan again.")
    return mask


def load_task(plan: ClientPlan, read: Read, *, down_bytes: int) -> TrainingTask:
    """Return the task of a plan, for which this many bytes were downloaded."""
    task_digests(plan)
    mask = load_mask(plan, read)
    dtypes = {name: str(tensor.dtype) for name, tensor in mask.graph.tensor.items()}
    expected = {name: Expected(shape, dtype=dtypes[name]) for name, shape in mask.shapes.items()}
    return TrainingTask(
        plan,
        mask,
        _tensors(read(str(plan.weights)), expected),
        read(str(plan.graph)),
        None if plan.inference is None else read(plan.inference),
        {} if plan.extras is None else _tensors(read(plan.extras), None),
        down_bytes,
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

"""Downloads everything that a plan names: model graph, mask, weights, training graph, all by digest.

Downloads come from the coordinator and are not trusted: a body that does not match the plan is refused before anything
is trained.
"""

from device_runtime.agent.artifact_cache import ArtifactCache
from device_runtime.agent.client import CoordinatorClient
from device_runtime.refusal import RefusalError
from device_runtime.trainer import TrainingTask
from edgefl.masks import Array, Weights, full_mask
from edgefl.model_graph import ModelGraph
from edgefl.values import ClientPlan, Reason, loads
from edgefl.wire import BodyKind, Dense, Expected, Payload, Sparse, decode, decode_mask

__all__ = ["download_task"]


def download_task(plan: ClientPlan, cache: ArtifactCache, client: CoordinatorClient) -> TrainingTask:
    """Return a plan's task. Cached artifacts are not downloaded again."""
    before = client.traffic.down

    def get(digest: str) -> bytes:
        return cache.get(digest, client.download)

    graph = loads(ModelGraph, get(plan.model))
    mask = full_mask(graph) if plan.mask_body is None else decode_mask(get(plan.mask_body), graph)
    if mask.digest != plan.mask:
        raise RefusalError(Reason.BROKEN, "the mask does not match the plan", fix="Create the plan again.")
    if plan.graph is None or plan.weights is None:
        raise RefusalError(
            Reason.UNSUPPORTED, "the plan lacks a training graph or weights", fix="Name both in the plan."
        )
    dtypes = {name: str(tensor.dtype) for name, tensor in graph.tensor.items()}
    expected = {name: Expected(shape, dtype=dtypes[name]) for name, shape in mask.shapes.items()}
    weights = _tensors(get(plan.weights), expected)
    return TrainingTask(
        plan,
        mask,
        weights,
        get(plan.graph),
        None if plan.inference is None else get(plan.inference),
        {} if plan.extras is None else _tensors(get(plan.extras), None),
        client.traffic.down - before,
    )


def _tensors(data: bytes, expected: dict[str, Expected] | None) -> Weights:
    body = decode(data, kind=BodyKind.WEIGHTS, expected=expected, intact=True)  # the cache has checked its digest
    return {name: _array(name, payload) for name, payload in body.tensors.items()}


def _array(name: str, payload: Payload) -> Array:
    if isinstance(payload, Sparse):
        return payload.to_dense()
    if not isinstance(payload, Dense):
        raise RefusalError(
            Reason.UNSUPPORTED, f"tensor {name!r} is encoded as {payload.codec}", fix="Send it dense or sparse."
        )
    return payload.array

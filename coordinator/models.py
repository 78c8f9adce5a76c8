"""The models that come out of a federation: the global one and each device's own, as weights or ready to infer."""

from typing import Literal

import onnx

from coordinator.context import Context
from coordinator.federations import existing
from coordinator.problems import ProblemError
from coordinator.storage.records import Federation
from edgefl.artifacts.bake import bake
from edgefl.artifacts.bundle import INFER
from edgefl.artifacts.submodel import bundle_weights
from edgefl.masks import Mask, Weights, full_mask, gather
from edgefl.wire import encode_weights

__all__ = ["Form", "device_model", "global_model"]

Form = Literal["weights", "onnx"]


def global_model(context: Context, name: str, form: Form) -> bytes:
    """Return the newest global model; before the first round, the one that was exported."""
    federation = existing(context, name)
    graph = context.library.bundle(federation).graph
    return _written(context, federation, full_mask(graph), form)


def device_model(context: Context, name: str, device_id: str, form: Form) -> bytes:
    """Return a device's part of the newest global model: the mask that it was given last."""
    federation = existing(context, name)
    device = context.store.device(device_id)
    if device is None or device.federation != name:
        raise ProblemError(
            404, f"{name!r} has no device {device_id!r}", fix=f"List them with: edgefl fed devices {name}"
        )
    if device.mask_body is None:
        raise ProblemError(
            409, f"device {device_id!r} was not given a part of the model yet", fix="Wait for its first round."
        )
    graph = context.library.bundle(federation).graph
    return _written(context, federation, context.library.mask(graph, device.mask_body), form)


def _written(context: Context, federation: Federation, mask: Mask, form: Form) -> bytes:
    part = gather(mask, _newest(context, federation))
    if form == "weights":
        return encode_weights(part, {"model": mask.graph.digest, "mask": mask.digest})
    graph = onnx.load_from_string(context.library.bundle(federation).files[INFER])
    data: bytes = bake(graph, part).SerializeToString(deterministic=True)
    return data


def _newest(context: Context, federation: Federation) -> Weights:
    done = [one.next_model for one in context.store.rounds(federation.id) if one.next_model is not None]
    if done:
        return context.library.arrays(done[-1])
    return bundle_weights(context.library.bundle(federation))

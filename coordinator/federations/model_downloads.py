"""The models that come out of a federation: the global one, each device's own, and submodels of any size.

Each can be downloaded as weights, as a model ready for inference, or as the mask that selects it.
"""

from typing import Literal

import onnx

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.federations.lifecycle import existing, existing_device
from coordinator.rounds.context import Context
from coordinator.storage.records import Federation
from edgefl.artifacts.bake import bake
from edgefl.artifacts.bundle import INFER
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.seeds import extract_seed
from edgefl.masks import Mask, full_mask, gather
from edgefl.strategies import Model
from edgefl.wire import encode_mask, encode_weights

__all__ = ["Form", "device_model", "global_model"]

Form = Literal["weights", "onnx", "mask"]


def global_model(context: Context, name: str, form: Form, fraction: float | None = None) -> bytes:
    """Return the newest global model; before the first round, the one that was exported.

    With a fraction, return the best submodel with at most this share of the parameters, as the strategy finds it.
    """
    federation = existing(context, name)
    model = _newest(context, federation)
    if fraction is None:
        return _written(context, federation, model, full_mask(model.graph), form)
    seed = extract_seed(context.repository.settings(federation).seed)
    mask = context.repository.strategy(federation).extract(model, fraction, seed)
    return _written(context, federation, model, mask, form)


def device_model(context: Context, name: str, device_id: str, form: Form) -> bytes:
    """Return a device's submodel of the newest global model, by its latest mask."""
    federation = existing(context, name)
    device = existing_device(context, name, device_id)
    if device.mask_body is None:
        raise CoordinatorError(
            ErrorReason.CONFLICT,
            f"device {device_id!r} has no submodel yet",
            fix="Wait for the first round in which it trains.",
        )
    model = _newest(context, federation)
    return _written(context, federation, model, context.repository.mask(model.graph, device.mask_body), form)


def _written(context: Context, federation: Federation, model: Model, mask: Mask, form: Form) -> bytes:
    if form == "mask":
        return encode_mask(mask)
    submodel = gather(mask, model.weights)
    if form == "weights":
        return encode_weights(submodel, {"model": mask.graph.digest, "mask": mask.digest})
    graph = onnx.load_from_string(context.repository.bundle(federation).files[INFER])
    data: bytes = bake(graph, submodel).SerializeToString(deterministic=True)
    return data


def _newest(context: Context, federation: Federation) -> Model:
    bundle, repository = context.repository.bundle(federation), context.repository
    done = [one for one in context.store.rounds.of(federation.id) if one.next_model is not None]
    if not done or done[-1].next_model is None:
        return repository.strategy(federation).begin(bundle.graph, bundle_weights(bundle))
    arrays = done[-1].next_state_arrays
    state = {} if arrays is None else repository.arrays(arrays)
    return Model(bundle.graph, repository.arrays(done[-1].next_model), state)

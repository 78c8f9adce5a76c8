"""The models that come out of a federation: the global one, each device's own, and submodels of any size.

Each can be downloaded as weights, as a model ready for inference, or as the mask that selects it.
"""

from typing import Literal

import onnx

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.federations.lifecycle import existing, existing_device
from coordinator.rounds.context import Context
from coordinator.rounds.round_models import RoundModels, result_of
from coordinator.storage.records import Federation, Round
from edgefl.artifacts.bundle import INFER
from edgefl.artifacts.side_by_side import bake_networks
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import EdgeFLError
from edgefl.federation.evaluation import networks_in, predicting_weights
from edgefl.federation.seeds import extract_seed
from edgefl.masks import Mask, full_mask, gather
from edgefl.strategies import Model
from edgefl.strategies.held_part import judged_part
from edgefl.wire import encode_mask, encode_weights

__all__ = ["Form", "Part", "device_model", "global_model"]

Form = Literal["weights", "onnx", "mask"]
Part = Literal["whole", "held"]
"""All of the global model, or the part that devices hold (`edgefl.strategies.held_part`)."""


def global_model(
    context: Context,
    name: str,
    form: Form,
    fraction: float | None = None,
    number: int | None = None,
    part: Part = "whole",
) -> bytes:
    """Return the newest global model, or the one that a round ended with; before the first round, the one that was
    exported.

    With a fraction, return the best submodel with at most this share of the parameters, as the strategy finds it;
    `part` does not matter then.
    """
    federation = existing(context, name)
    model = _newest(context, federation) if number is None else _of_round(context, federation, number)
    strategy = context.repository.strategy(federation)
    if fraction is None:
        mask = judged_part(strategy, model) if part == "held" else full_mask(model.graph)
        return _written(context, federation, model, mask, form)
    seed = extract_seed(context.repository.settings(federation).seed)
    mask = strategy.extract(model, fraction, seed)
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
    strategy = context.repository.strategy(federation)
    if form == "mask":
        return encode_mask(mask)
    if form == "weights":
        weights = predicting_weights(strategy, model, mask)
        return encode_weights(gather(mask, weights), {"model": mask.graph.digest, "mask": mask.digest})
    networks = networks_in(strategy, model, mask)
    graph = onnx.load_from_string(context.repository.bundle(federation).files[INFER])
    data: bytes = bake_networks(graph, networks).SerializeToString(deterministic=True)
    return data


def _newest(context: Context, federation: Federation) -> Model:
    bundle = context.repository.bundle(federation)
    latest = context.store.rounds.latest(federation.id)
    if latest is not None and latest.next_model is None:  # it is not done, and starts from the newest model
        return RoundModels(context, federation).stored(latest.model, latest.state_arrays)
    if latest is None:
        return context.repository.strategy(federation).begin(bundle.graph, bundle_weights(bundle))
    return RoundModels(context, federation).stored(*result_of(latest))


def _of_round(context: Context, federation: Federation, number: int) -> Model:
    done = _done(context, federation, number)
    try:
        return RoundModels(context, federation).stored(*result_of(done))
    except EdgeFLError:
        _done(context, federation, number)  # it may have been dropped a moment ago
        raise


def _done(context: Context, federation: Federation, number: int) -> Round:
    """Return a round whose model is kept. Raise `CoordinatorError` otherwise."""
    found = context.store.rounds.get(federation.id, number)
    if found is None or found.next_model is None:
        raise CoordinatorError(
            ErrorReason.NOT_FOUND,
            f"round {number + 1} of {federation.id!r} is not done",
            fix=f"See which ones are: edgefl fed rounds {federation.id}",
        )
    if not found.model_kept:
        keep = context.repository.settings(federation).rounds.keep_models
        raise CoordinatorError(
            ErrorReason.NOT_FOUND,
            f"the model of round {number + 1} of {federation.id!r} was dropped: the federation keeps the newest "
            f"{keep}, the first and the best",
            fix=f"See which ones are: edgefl fed rounds {federation.id}. To keep more, raise rounds.keep_models.",
        )
    return found

"""A submodel ready to send: the weights of a mask, the training graph cut for it, and an inference model.

A mask needs no more than this after the export: some numpy indexing and protobuf editing, no torch. The coordinator
builds these for devices, `edgefl export` for a user.
"""

from dataclasses import dataclass

import onnx

from edgefl.artifacts.bake import bake
from edgefl.artifacts.bundle import INFER, TRAIN, WEIGHTS, Bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.masks import Array, Mask, Weights, gather
from edgefl.wire import BodyKind, decode, encode_weights

__all__ = ["SubmodelFiles", "bundle_weights", "make_submodel"]


@dataclass(frozen=True, slots=True)
class SubmodelFiles:
    """What one device gets."""

    mask: Mask
    weights: bytes
    """A body of kind `weights`: the kept channels of every tensor."""
    training_graph: bytes
    """The ONNX training graph without the gradients of frozen layers."""
    inference_model: bytes
    """An ONNX model with the weights inside."""


def make_submodel(bundle: Bundle, mask: Mask, weights: Weights | None = None) -> SubmodelFiles:
    """Build a mask's submodel from a bundle; `weights` are the model's newest, by default the bundle's own."""
    mask.check_model(bundle.graph)
    part = gather(mask, bundle_weights(bundle) if weights is None else weights)
    about = {"model": bundle.graph.digest, "mask": mask.digest}
    return SubmodelFiles(
        mask,
        encode_weights(part, about),
        cut_training_graph(bundle.files[TRAIN], mask),
        bake(onnx.load_from_string(bundle.files[INFER]), part).SerializeToString(deterministic=True),
    )


def bundle_weights(bundle: Bundle) -> dict[str, Array]:
    """Return the weights that were exported with the model."""
    return decode(bundle.files[WEIGHTS], kind=BodyKind.WEIGHTS).arrays

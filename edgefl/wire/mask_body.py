"""A mask as a body of kind `mask`, for the network, files and caches.

about     "model": digest of the model graph; "mask": digest of the mask; "trained": names of the trained layers,
          one per line
tensors   "kept/<group>"    bits, one per channel, for every group that is cut
          "held/<tensor>"   bits, one per weight of the submodel, for every tensor that is not held completely
"""

import math

import numpy as np

from edgefl.errors import MaskError, WireFormatError
from edgefl.masks import BoolArray, Mask
from edgefl.model_graph import ModelGraph
from edgefl.wire.body import MAX_BODY_BYTES, Body, BodyKind, Payload, decode, encode
from edgefl.wire.codecs.bits import Bits

__all__ = ["HELD", "KEPT", "decode_mask", "encode_mask", "mask_of", "mask_tensors", "trained_layers"]

KEPT = "kept/"
HELD = "held/"


def encode_mask(mask: Mask) -> bytes:
    """Return the bytes of a mask."""
    about = {"model": mask.graph.digest, "mask": mask.digest, "trained": "\n".join(sorted(mask.trained))}
    return encode(Body(BodyKind.MASK, mask_tensors(mask), about=about))


def mask_tensors(mask: Mask) -> dict[str, Payload]:
    """Return the bits of a mask, by name in a body."""
    kept: dict[str, Payload] = {KEPT + name: Bits.of(flags) for name, flags in mask.kept_bitmaps().items()}
    return kept | {HELD + name: Bits.of(flags) for name, flags in mask.held.items()}


def decode_mask(data: bytes, graph: ModelGraph, *, limit: int = MAX_BODY_BYTES) -> Mask:
    """Read a mask of the given model from untrusted bytes."""
    body = decode(data, kind=BodyKind.MASK, limit=limit)
    if body.about.get("model") != graph.digest:
        raise WireFormatError(
            f"the mask is for the model {body.about.get('model')!r}, not for {graph.name!r} ({graph.digest})",
            fix="Request a mask of this model.",
        )
    return mask_of(body, graph, body.about.get("mask"))


def mask_of(body: Body, graph: ModelGraph, digest: str | None) -> Mask:
    """Read the mask with this digest from a body with its bits and trained layers."""
    kept, held = _flags(body, graph)
    try:
        mask = Mask.of(
            graph,
            trained=trained_layers(body),
            kept={name: np.flatnonzero(where) for name, where in kept.items()},
            held=held,
        )
    except MaskError as error:
        raise WireFormatError(f"the mask is not valid: {error.problem}", fix=error.fix) from None
    if digest != mask.digest:
        raise WireFormatError("the mask does not match its digest", fix="Ask the sender for it again.")
    return mask


def _flags(body: Body, graph: ModelGraph) -> tuple[dict[str, BoolArray], dict[str, BoolArray]]:
    """Return the kept channels and held weights, unpacked only after checking that they belong to the model."""
    kept: dict[str, BoolArray] = {}
    held: dict[str, BoolArray] = {}
    for name, bits in body.tensors.items():
        group, tensor = graph.group.get(name.removeprefix(KEPT)), graph.tensor.get(name.removeprefix(HELD))
        if isinstance(bits, Bits) and name.startswith(KEPT) and group and bits.shape == (group.width,):
            kept[group.name] = bits.to_bool()
        elif isinstance(bits, Bits) and name.startswith(HELD) and tensor and math.prod(bits.shape) <= tensor.size:
            held[tensor.name] = bits.to_bool()
        else:
            raise WireFormatError(
                f"the mask contains {name!r} of shape {bits.shape}, which does not belong to model {graph.name!r}",
                fix="Request a mask of this model.",
            )
    return kept, held


def trained_layers(body: Body) -> list[str]:
    """Return the names of the trained layers in a mask body."""
    return [name for name in body.about.get("trained", "").split("\n") if name]

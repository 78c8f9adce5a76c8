"""A mask as a body of kind `mask`: for the network, for a file, for a cache.

about     "model": digest of the model graph; "mask": digest of the mask; "trained": names of the trained layers,
          one a line
tensors   "kept/<group>"    bits, one a channel, for every group that is cut
          "held/<tensor>"   bits, one a weight of the submodel, for every tensor that is not held whole
"""

import numpy as np

from edgefl.errors import MaskError, WireFormatError
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.wire.bits import Bits
from edgefl.wire.body import Body, Kind, decode, encode

__all__ = ["HELD", "KEPT", "decode_mask", "encode_mask", "trained_layers"]

KEPT = "kept/"
HELD = "held/"


def encode_mask(mask: Mask) -> bytes:
    """Return the bytes of a mask."""
    kept = {KEPT + name: Bits.of(flags) for name, flags in mask.kept_bitmaps().items()}
    held = {HELD + name: Bits.of(flags) for name, flags in mask.held.items()}
    about = {"model": mask.graph.digest, "mask": mask.digest, "trained": "\n".join(sorted(mask.trained))}
    return encode(Body(Kind.MASK, kept | held, about=about))


def decode_mask(data: bytes, graph: ModelGraph) -> Mask:
    """Read a mask of the given model from bytes that nobody vouches for."""
    body = decode(data, kind=Kind.MASK)
    if body.about.get("model") != graph.digest:
        raise WireFormatError(
            f"the mask is for the model {body.about.get('model')}, not for {graph.name!r} ({graph.digest})",
            fix="Ask for a mask of this model.",
        )
    flags = {name: bits.to_bool() for name, bits in body.tensors.items() if isinstance(bits, Bits)}
    kept = {n.removeprefix(KEPT): where for n, where in flags.items() if n.startswith(KEPT)}
    held = {n.removeprefix(HELD): where for n, where in flags.items() if n.startswith(HELD)}
    if len(kept) + len(held) != len(body.tensors):
        raise WireFormatError("the mask holds a tensor that is no mask", fix="Send kept and held bits alone.")
    for name, where in kept.items():
        if name not in graph.group or where.shape != (graph.group[name].width,):
            raise WireFormatError(
                f"the mask marks {where.shape} channels of group {name!r}", fix="Ask for a mask of this model."
            )
    try:
        mask = Mask.of(
            graph,
            trained=trained_layers(body),
            kept={name: np.flatnonzero(where) for name, where in kept.items()},
            held=held,
        )
    except MaskError as error:
        raise WireFormatError(f"the mask breaks a rule: {error.problem}", fix=error.fix) from None
    if body.about.get("mask") != mask.digest:
        raise WireFormatError("the mask does not match its digest", fix="Ask the sender for it again.")
    return mask


def trained_layers(body: Body) -> list[str]:
    """Return the names of the layers that a mask body trains."""
    return [name for name in body.about.get("trained", "").split("\n") if name]

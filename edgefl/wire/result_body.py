"""A device's result as one body of kind `update`: its report, its tensors and, if it changed, its mask.

about     "result": the `LocalResult` as JSON; "model" and "mask": digests of the model graph and of the planned mask;
          "next_mask", if the rule changed it: digest of the mask after the round
tensors   whatever the local rule sends, by the names of the model's tensors; none if the result stays on the device
          "kept/<group>", "held/<tensor>": bits of the mask after the round, if it changed

It is made once, kept on the device's disk until it is acknowledged, and sent as often as necessary. The coordinator
stores it unchanged.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edgefl.errors import SchemaError, WireFormatError
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import LocalResult, dumps, loads
from edgefl.wire.body import MAX_BODY_BYTES, Body, BodyKind, Payload, decode, encode
from edgefl.wire.mask_body import HELD, KEPT, mask_of, mask_tensors

__all__ = ["ResultBody", "decode_result", "encode_result"]


@dataclass(frozen=True, slots=True, eq=False)
class ResultBody:
    """A device's upload after a round."""

    result: LocalResult
    mask: str
    """Digest of the planned mask."""
    tensors: Mapping[str, Payload]
    next_mask: Mask | None = None
    """The device's mask from now on, if the rule changed it."""
    seed: int | None = None


def encode_result(report: ResultBody, graph: ModelGraph) -> bytes:
    """Return the bytes of a result."""
    about = {"result": dumps(report.result), "model": graph.digest, "mask": report.mask}
    tensors = dict(report.tensors)
    if report.next_mask is not None:
        report.next_mask.check_model(graph)
        about["next_mask"] = report.next_mask.digest
        about["trained"] = "\n".join(sorted(report.next_mask.trained))
        tensors |= mask_tensors(report.next_mask)
    return encode(Body(BodyKind.UPDATE, tensors, seed=report.seed, about=about))


def decode_result(
    data: bytes | memoryview, graph: ModelGraph, *, limit: int = MAX_BODY_BYTES, known: LocalResult | None = None
) -> ResultBody:
    """Read a result from untrusted bytes. The tensors depend on the local rule and are checked by the caller.

    `known` is the result of a body that was read before: nothing is checked again, see `decode`.
    """
    body = decode(data, kind=BodyKind.UPDATE, limit=limit, known=known is not None)
    if body.about.get("model") != graph.digest:
        raise WireFormatError(
            f"the result is for the model {body.about.get('model')!r}, not for {graph.name!r} ({graph.digest})",
            fix="Send a result for this federation.",
        )
    result = _result(body.about.get("result", "")) if known is None else known
    tensors = {name: payload for name, payload in body.tensors.items() if not name.startswith((KEPT, HELD))}
    bits = {name: payload for name, payload in body.tensors.items() if name not in tensors}
    if bits and "next_mask" not in body.about:
        raise WireFormatError("the result contains a mask without its digest", fix="Give the digest as next_mask.")
    next_mask = None
    if "next_mask" in body.about:
        next_mask = mask_of(Body(BodyKind.MASK, bits, about=body.about), graph, body.about["next_mask"])
    return ResultBody(result, body.about.get("mask", ""), tensors, next_mask, body.seed)


def _result(text: str) -> LocalResult:
    try:
        return loads(LocalResult, text.encode())
    except SchemaError as error:
        raise WireFormatError(f"the report in the result is not valid: {error.problem}", fix=error.fix) from None

"""A body: named tensors in any mixture of codecs, what they are, and a seed. `encode` and `decode` are inverses.

Everything that moves between coordinator and devices is one of these, and so is a mask or a set of weights on
disk. The text within the envelope is a JSON object in ASCII with sorted keys and no spaces:

    wire     version of this format, the number 1
    kind     "weights", "update" or "mask"
    about    texts by name: whatever sender and receiver agreed on (task, model and mask digests, ...)
    seed     an unsigned 64-bit number in decimal, as a text (JavaScript's numbers end at 2^53); may be absent
    codecs   for every tensor that is not dense its entry, a list that begins with the form (see the codecs)

Every part of the envelope that no entry claims is a dense tensor. Tensor names are 1 to 256 printable characters
without "#", which marks the parts that belong to a codec.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from edgefl.errors import WireFormatError
from edgefl.wire.bits import Bits
from edgefl.wire.counts import Counts
from edgefl.wire.dense import Dense
from edgefl.wire.envelope import MAX_HEADER_BYTES, Parts, parse_json, seal, unseal
from edgefl.wire.positions import BITMAP, DELTAS
from edgefl.wire.slices import Slice, axis_part
from edgefl.wire.sparse import Sparse

__all__ = ["MAX_BODY_BYTES", "WIRE_VERSION", "Body", "Kind", "Payload", "decode", "encode"]

WIRE_VERSION = 1
MAX_BODY_BYTES = 2**30
"""What `decode` takes unless told otherwise: a gigabyte, twice the largest model in the papers."""
MAX_NAME = 256

Payload = Dense | Slice | Sparse | Bits | Counts

_READERS: dict[str, type[Slice] | type[Sparse] | type[Bits] | type[Counts]] = {
    "slice": Slice,
    BITMAP: Sparse,
    DELTAS: Sparse,
    "bits": Bits,
    "counts": Counts,
}
_KEYS = {"wire", "kind", "about", "seed", "codecs"}


class Kind(StrEnum):
    """What a body is."""

    WEIGHTS = "weights"
    UPDATE = "update"
    MASK = "mask"


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """What travels: tensors by name, and what they are."""

    kind: Kind
    tensors: Mapping[str, Payload]
    seed: int | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", MappingProxyType(dict(self.tensors)))
        object.__setattr__(self, "about", MappingProxyType(dict(self.about)))


def encode(body: Body) -> bytes:
    """Return the bytes of a body. Equal bodies give equal bytes."""
    parts: Parts = {}
    codecs: dict[str, list[Any]] = {}
    for name in sorted(body.tensors):
        _check_name(name)
        entry = body.tensors[name].pack(name, parts)
        if entry is not None:
            codecs[name] = entry
    text: dict[str, Any] = {"wire": WIRE_VERSION, "kind": str(body.kind)}
    if body.about:
        text["about"] = dict(body.about)
    if body.seed is not None:
        text["seed"] = _seed_text(body.seed)
    if codecs:
        text["codecs"] = codecs
    sealed = seal(json.dumps(text, sort_keys=True, separators=(",", ":")), parts)
    if int.from_bytes(sealed[:8], "little") > MAX_HEADER_BYTES:
        raise WireFormatError(
            f"{len(body.tensors)} tensors need a header above {MAX_HEADER_BYTES} bytes",
            fix="Send fewer tensors in one body, or shorten their names and what is said about them.",
        )
    return sealed


def decode(
    data: bytes,
    *,
    kind: Kind | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    limit: int = MAX_BODY_BYTES,
) -> Body:
    """Read a body from bytes that nobody vouches for; anything wrong with them is a `WireFormatError`.

    `kind` and `shapes` say what is expected: another kind, a missing, an additional or a differently shaped tensor
    is refused. Without `shapes`, a small body may claim a huge sparse tensor, which costs nothing until it is
    expanded: give `shapes` before you call `to_dense` on a stranger's tensor.
    """
    if len(data) > limit:
        raise WireFormatError(
            f"the body has {len(data)} bytes, and {limit} are allowed",
            fix="Send a smaller update, or raise the limit of the receiver.",
        )
    text, parts = unseal(bytes(data))
    about = _checked_text(parse_json(text, "description of the body"))
    tensors = _tensors(about.get("codecs", {}), parts)
    body = Body(Kind(about["kind"]), tensors, _seed(about.get("seed")), about.get("about", {}))
    if kind is not None and body.kind is not kind:
        raise WireFormatError(f"the body is of kind {body.kind.value!r}", fix=f"Send the kind {kind.value!r}.")
    if shapes is not None:
        _check_shapes(body, shapes)
    return body


def _checked_text(text: Any) -> dict[str, Any]:
    if not isinstance(text, dict) or type(text.get("wire")) is not int:
        raise WireFormatError("the body names no version of the wire format", fix="Send an EdgeFL body.")
    if text["wire"] != WIRE_VERSION:
        raise WireFormatError(
            f"the body is of wire version {text['wire']}",
            fix=f"This EdgeFL reads version {WIRE_VERSION}; use the same version on both sides.",
        )
    unknown = set(text) - _KEYS
    if unknown:
        raise WireFormatError(f"the body has the unknown field {min(unknown)[:80]!r}", fix="Upgrade the receiver.")
    if text.get("kind") not in list(Kind):
        raise WireFormatError(
            f"the body is of the unknown kind {str(text.get('kind'))[:80]!r}", fix=f"Known are {', '.join(Kind)}."
        )
    about = text.get("about", {})
    if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
        raise WireFormatError("what the body says about itself is not texts by name", fix="Send texts.")
    if not isinstance(text.get("codecs", {}), dict):
        raise WireFormatError("the codecs of the body are not entries by name", fix="Send an EdgeFL body.")
    return text


def _tensors(codecs: dict[str, Any], parts: Parts) -> dict[str, Payload]:
    tensors: dict[str, Payload] = {}
    axes: set[str] = set()
    for name, entry in codecs.items():
        _check_name(name)
        form = entry[0] if isinstance(entry, list) and entry else None
        if not isinstance(form, str) or form not in _READERS:
            raise WireFormatError(
                f"tensor {name!r} is in the unknown codec {str(form)[:80]!r}",
                fix=f"Known are dense, {', '.join(_READERS)}; use the same version on both sides.",
            )
        tensors[name] = _READERS[form].unpack(name, entry, parts)
        if form == "slice":
            axes.update(axis_part(number) for number in entry[2] if number is not None)
    for name, array in parts.items():
        if name not in axes:
            _check_name(name)
            tensors[name] = Dense.unpack(name, array)
    return tensors


def _check_name(name: str) -> None:
    if not 0 < len(name) <= MAX_NAME or "#" in name or not name.isprintable() or name == "__metadata__":
        raise WireFormatError(
            f"{name[:MAX_NAME]!r} cannot name a tensor",
            fix=f"Names are 1 to {MAX_NAME} printable characters without '#'.",
        )


def _check_shapes(body: Body, shapes: Mapping[str, tuple[int, ...]]) -> None:
    different = shapes.keys() ^ body.tensors.keys()
    if different:
        name = min(different)
        raise WireFormatError(
            f"tensor {name!r} is {'missing from' if name in shapes else 'not expected in'} the body",
            fix=f"Send exactly the {len(shapes)} tensors that the plan names.",
        )
    for name, payload in body.tensors.items():
        if payload.shape != tuple(shapes[name]):
            raise WireFormatError(
                f"tensor {name!r} has shape {payload.shape}, and the plan says {tuple(shapes[name])}",
                fix="Send the tensors in the shapes of the plan's mask.",
            )


def _seed_text(seed: int) -> str:
    if not 0 <= seed < 2**64:
        raise WireFormatError(f"the seed is {seed}", fix="A seed is from 0 to 2^64 - 1.")
    return str(seed)


def _seed(text: Any) -> int | None:
    if text is None:
        return None
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 20:
        raise WireFormatError(f"the seed is {str(text)[:80]!r}", fix="A seed is an unsigned number in a text.")
    seed = int(text)
    if _seed_text(seed) != text:
        raise WireFormatError(f"the seed is written as {text!r}", fix="Write it without leading zeros.")
    return seed

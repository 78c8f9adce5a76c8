"""Bodies: named tensors in any mixture of codecs, with metadata and a seed. `encode` and `decode` are inverses.

Everything sent between coordinator and devices is a body, and so is a mask or a set of weights on disk. The text in the
envelope is a JSON object in ASCII with sorted keys and no spaces:

    wire     version of this format, the number 1
    kind     "weights", "update" or "mask"
    about    texts by name that sender and receiver agree on (task, model and mask digests, ...)
    seed     an unsigned 64-bit number as a decimal string (JavaScript's numbers end at 2^53); optional
    codecs   for every tensor that is not dense its entry, a list that begins with its form (see the codecs)

Every part of the envelope that no entry claims is a dense tensor. Tensor names are 1 to 256 printable characters
without "#", which marks the parts that belong to a codec. There are at most 64 texts in `about`, of at most 256 Ki
characters each.

`encode` writes one form of a body; `decode` also reads others that mean the same, such as other spaces in the JSON.
"""

import json
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from edgefl.errors import WireFormatError
from edgefl.values import FrozenMapping
from edgefl.wire.body_parts import Array, BodyParts, axis_part
from edgefl.wire.codecs.bits import Bits
from edgefl.wire.codecs.counts import Counts
from edgefl.wire.codecs.dense import Dense
from edgefl.wire.codecs.slices import Slice
from edgefl.wire.codecs.sparse import Sparse
from edgefl.wire.codecs.sparse_indices import BITMAP, DELTAS
from edgefl.wire.envelope import MAX_HEADER_BYTES, MAX_PARTS, header_bytes, parse_json, seal, unseal, unseal_known

__all__ = [
    "MAX_BODY_BYTES",
    "WIRE_VERSION",
    "Body",
    "Expected",
    "BodyKind",
    "Payload",
    "check_tensors",
    "decode",
    "encode",
    "encode_weights",
]

WIRE_VERSION = 1
MAX_BODY_BYTES = 2**30
"""Default limit of `decode`: a gigabyte, twice the largest model in the papers."""
MAX_NAME = 256
_NAMES_SHOWN = 8
MAX_TEXTS = 64
MAX_TEXT = 2**18

Payload = Dense | Slice | Sparse | Bits | Counts

_READERS: dict[str, type[Slice] | type[Sparse] | type[Bits] | type[Counts]] = {
    "slice": Slice,
    BITMAP: Sparse,
    DELTAS: Sparse,
    "bits": Bits,
    "counts": Counts,
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_KEYS = {"wire", "kind", "about", "seed", "codecs"}


class BodyKind(StrEnum):
    """Kind of a body."""

    WEIGHTS = "weights"
    UPDATE = "update"
    MASK = "mask"


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Named tensors and their metadata."""

    kind: BodyKind
    tensors: Mapping[str, Payload]
    seed: int | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _kind(self.kind))
        object.__setattr__(self, "seed", None if self.seed is None else _seed(self.seed))
        object.__setattr__(self, "about", FrozenMapping(_about(self.about)))
        for name in self.tensors:
            _check_name(name)
        object.__setattr__(self, "tensors", FrozenMapping(self.tensors))

    @property
    def arrays(self) -> dict[str, Array]:
        """The dense tensors by name, which is all of them in a body of weights."""
        return {name: payload.array for name, payload in self.tensors.items() if isinstance(payload, Dense)}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a plan requires of a tensor; None allows anything."""

    shape: tuple[int, ...]
    """The tensor's shape; for a slice, the shape of the whole tensor."""
    codec: str | None = None
    dtype: str | None = None
    """The dtype of its values, such as "float32"."""


def encode(body: Body) -> bytes:
    """Return the bytes of a body. Equal bodies give equal bytes."""
    parts = BodyParts()
    codecs: dict[str, list[Any]] = {}
    for name in sorted(body.tensors):
        entry = body.tensors[name].pack(name, parts)
        if entry is not None:
            codecs[name] = entry
    text: dict[str, Any] = {"wire": WIRE_VERSION, "kind": str(body.kind)}
    if body.about:
        text["about"] = dict(body.about)
    if body.seed is not None:
        text["seed"] = str(body.seed)
    if codecs:
        text["codecs"] = codecs
    sealed = seal(json.dumps(text, sort_keys=True, separators=(",", ":")), parts)
    if header_bytes(sealed) - 8 > MAX_HEADER_BYTES or len(parts) > MAX_PARTS:
        raise WireFormatError(
            f"{len(body.tensors)} tensors need {len(parts)} parts and a header of {header_bytes(sealed)} bytes",
            fix="Send fewer tensors per body, or shorten their names and the texts in `about`.",
        )
    return sealed


def encode_weights(arrays: Mapping[str, Array], about: Mapping[str, str]) -> bytes:
    """Return the bytes of a body of kind `weights` whose tensors are all dense."""
    return encode(Body(BodyKind.WEIGHTS, {name: Dense(array) for name, array in arrays.items()}, about=about))


def decode(
    data: bytes | memoryview,
    *,
    kind: BodyKind | None = None,
    expected: Mapping[str, Expected] | None = None,
    limit: int = MAX_BODY_BYTES,
    intact: bool = False,
    known: bool = False,
) -> Body:
    """Read a body from untrusted bytes; raise `WireFormatError` if anything is wrong with them.

    `kind` and `expected` are the plan's requirements: another kind, and a missing, additional or different tensor are
    rejected. Without `expected`, a small body may claim a huge sparse tensor, which costs nothing until it is expanded:
    pass `expected` before you call `to_dense` on an untrusted tensor. Decoding takes memory for at most twice the body
    and about two kilobytes per tensor.

    `intact` means that a digest over all bytes has shown them to be unchanged since they were encoded: the digest
    inside is not computed again. Everything else is checked.

    `known` means that this body was decoded before and cannot have changed since: its digest and numbers are not
    checked again, and its arrays are views of `data`, so reading it costs next to nothing.
    """
    if len(data) > limit:
        raise WireFormatError(
            f"the body has {len(data)} bytes, but only {limit} are allowed",
            fix="Send a smaller update, or raise the receiver's limit.",
        )
    text, parts = unseal_known(memoryview(data)) if known else unseal(bytes(data), intact=intact)
    said = _checked_text(parse_json(text, "description of the body"))
    found = _kind(said.get("kind"))
    if kind is not None and found is not kind:
        raise WireFormatError(f"the body is of kind {found.value!r}", fix=f"Send a body of kind {kind.value!r}.")
    codecs = said.get("codecs", {})
    if expected is not None:
        # Before anything is unpacked: a hostile body must cost little.
        _check_names({*codecs, *(name for name in parts if "#" not in name)}, expected)
    tensors = _tensors(codecs, parts, known=known)
    if expected is not None:
        check_tensors(tensors, expected)
    return Body(found, tensors, _read_seed(said.get("seed")), said.get("about", {}))


def check_tensors(tensors: Mapping[str, Payload], expected: Mapping[str, Expected]) -> None:
    """Raise if tensors differ from the plan: a missing, an additional or a different one.

    `decode` calls it with `expected`. Call it yourself if the expectation depends on the body.
    """
    _check_names(set(tensors), expected)
    for name, wanted in expected.items():
        _check_expected(name, tensors[name], wanted)


def _checked_text(text: Any) -> dict[str, Any]:
    if not isinstance(text, dict) or type(text.get("wire")) is not int:
        raise WireFormatError("the body has no wire format version", fix="Send an EdgeFL body.")
    if text["wire"] != WIRE_VERSION:
        raise WireFormatError(
            f"the body has wire version {text['wire']}",
            fix=f"This EdgeFL reads version {WIRE_VERSION}; use the same EdgeFL on both sides.",
        )
    unknown = set(text) - _KEYS
    if unknown:
        raise WireFormatError(f"the body has the unknown field {min(unknown)[:80]!r}", fix="Upgrade the receiver.")
    if not isinstance(text.get("codecs", {}), dict):
        raise WireFormatError("the field 'codecs' of the body is not an object", fix="Send an EdgeFL body.")
    return text


def _tensors(codecs: dict[str, Any], parts: BodyParts, *, known: bool) -> dict[str, Payload]:
    tensors: dict[str, Payload] = {}
    axes: set[str] = set()
    for name, entry in codecs.items():
        _check_name(name)
        form = entry[0] if isinstance(entry, list) and entry else None
        if not isinstance(form, str) or form not in _READERS:
            raise WireFormatError(
                f"tensor {name!r} has the unknown codec {str(form)[:80]!r}",
                fix=f"Known: dense, {', '.join(_READERS)}. Use the same EdgeFL on both sides.",
            )
        tensors[name] = _READERS[form].unpack(name, entry, parts)
        if form == "slice":
            axes.update(axis_part(number) for number in entry[2] if number is not None)
    for name, array in parts.items():
        if name not in axes:
            _check_name(name)
            tensors[name] = Dense(array) if known else Dense.unpack(name, array)
    return tensors


def _check_name(name: str) -> None:
    if not 0 < len(name) <= MAX_NAME or "#" in name or not name.isprintable() or name == "__metadata__":
        raise WireFormatError(
            f"{name[:MAX_NAME]!r} is not a valid tensor name",
            fix=f"Names are 1 to {MAX_NAME} printable characters without '#'.",
        )


def _check_names(found: set[str], expected: Mapping[str, Expected]) -> None:
    missing, surplus = sorted(expected.keys() - found), sorted(found - expected.keys())
    if not missing and not surplus:
        return
    said = [f"{_listed(missing)} missing from the body"] if missing else []
    said += [f"{_listed(surplus)} not expected in the body"] if surplus else []
    raise WireFormatError(
        ", and ".join(said),
        fix=f"Send exactly the {len(expected)} tensors that the plan's `tensors` document gives a codec.",
    )


def _listed(names: list[str]) -> str:
    """Return some names for a message: the first few, and how many more there are."""
    shown = ", ".join(repr(name[:MAX_NAME]) for name in names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"tensor {shown} is" if len(names) == 1 else f"tensors {shown}{f' and {more} more' if more > 0 else ''} are"


def _check_expected(name: str, payload: Payload, wanted: Expected) -> None:
    if payload.shape != tuple(wanted.shape):
        raise _unexpected(name, "shape", payload.shape, tuple(wanted.shape))
    if wanted.codec is not None and payload.codec != wanted.codec:
        raise _unexpected(name, "codec", payload.codec, wanted.codec)
    if wanted.dtype is not None:
        values = payload.array if isinstance(payload, Dense) else getattr(payload, "values", None)
        if values is None or values.dtype != wanted.dtype:
            raise _unexpected(name, "dtype", None if values is None else values.dtype, wanted.dtype)


def _unexpected(name: str, what: str, found: object, planned: object) -> WireFormatError:
    return WireFormatError(
        f"tensor {name!r} has {what} {found}, and the plan says {planned}", fix="Send the tensors as planned."
    )


def _kind(kind: Any) -> BodyKind:
    if kind not in list(BodyKind):
        raise WireFormatError(f"the body has the unknown kind {str(kind)[:80]!r}", fix=f"Known: {', '.join(BodyKind)}.")
    return BodyKind(kind)


def _about(about: Any) -> dict[str, str]:
    """Check the field `about`: a few texts that can be printed and encoded."""
    if not isinstance(about, Mapping) or len(about) > MAX_TEXTS:
        raise WireFormatError(
            "the field 'about' of the body is not an object of a few texts", fix=f"Send at most {MAX_TEXTS}."
        )
    for text in (*about, *about.values()):
        if not isinstance(text, str) or len(text) > MAX_TEXT or not _is_unicode(text):
            raise WireFormatError(
                f"the field 'about' of the body contains {str(text)[:80]!r}",
                fix=f"Send Unicode texts of at most {MAX_TEXT} characters.",
            )
    return dict(about)


def _is_unicode(text: str) -> bool:
    """Return whether a text has no unpaired surrogate, which cannot be printed or encoded."""
    return text.isascii() or _SURROGATE.search(text) is None


def _seed(seed: Any) -> int:
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number < 2**64:
        raise WireFormatError(f"the seed is {str(seed)[:80]!r}", fix="A seed is a whole number from 0 to 2^64 - 1.")
    return number


def _read_seed(text: Any) -> int | None:
    if text is None:
        return None
    if not isinstance(text, str) or re.fullmatch("0|[1-9][0-9]{0,19}", text) is None:
        raise WireFormatError(
            f"the seed is {str(text)[:80]!r}", fix="Write it as a string of decimal digits without leading zeros."
        )
    return _seed(int(text))

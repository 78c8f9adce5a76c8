"""Random bodies for the tests of the wire format, and what it means for two to be the same."""

from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgefl.wire import Bits, Body, BodyKind, Counts, Dense, Payload, Slice, Sparse

SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)
NAMES = st.text(st.characters(exclude_characters="#", exclude_categories=["C", "Z"]), min_size=1, max_size=20).filter(
    lambda name: name != "__metadata__"
)
WIDTHS: dict[int, Literal[16, 32, 64]] = {2: 16, 4: 32, 8: 64}
DTYPES = st.sampled_from([np.float32, np.float16, np.float64, np.int64, np.int32, np.uint8])


@st.composite
def values(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    dtype = np.dtype(draw(DTYPES))
    if dtype.kind == "f":
        finite = st.floats(width=WIDTHS[dtype.itemsize], allow_nan=False, allow_infinity=False)
        return draw(arrays.arrays(dtype, shape, elements=finite))
    return draw(arrays.arrays(dtype, shape))


@st.composite
def dense(draw: st.DrawFn) -> Dense:
    return Dense(draw(values(draw(SHAPES))))


@st.composite
def bits(draw: st.DrawFn) -> Bits:
    return Bits.of(draw(arrays.arrays(np.bool_, draw(SHAPES))))


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    limit = draw(st.integers(1, 65535))
    numbers = draw(arrays.arrays(np.int64, draw(SHAPES), elements=st.integers(0, limit)))
    return Counts.of(numbers, limit)


@st.composite
def sparse(draw: st.DrawFn) -> Sparse:
    """Any positions; sizes up to 2^31 - 1 reach every length of the delta form."""
    if draw(st.booleans()):
        shape = draw(SHAPES)
        held = draw(arrays.arrays(np.bool_, shape))
        return Sparse.where(draw(values(shape)), held)
    size = draw(st.sampled_from([1000, 10**6, 2**31 - 1]))
    indices = np.array(sorted(draw(st.sets(st.integers(0, size - 1), max_size=20))), np.int64)
    # A bitmap of a huge tensor would be huge: one index at least keeps the deltas the smaller form.
    return Sparse.at((size,), indices, draw(values(indices.shape)))


@st.composite
def slices(draw: st.DrawFn) -> Slice:
    shape = draw(SHAPES)
    flags = [draw(st.none() | arrays.arrays(np.bool_, (size,))) for size in shape]
    kept = tuple(size if flag is None else int(flag.sum()) for flag, size in zip(flags, shape, strict=True))
    axes = tuple(None if flag is None else np.packbits(flag, bitorder="little") for flag in flags)
    return Slice(shape, axes, draw(values(kept)))


PAYLOADS = {"dense": dense(), "bits": bits(), "counts": counts(), "sparse": sparse(), "slice": slices()}


@st.composite
def bodies(draw: st.DrawFn, payloads: "st.SearchStrategy[Any] | None" = None) -> Body:
    payload = st.one_of(*PAYLOADS.values()) if payloads is None else payloads
    return Body(
        draw(st.sampled_from(BodyKind)),
        draw(st.dictionaries(NAMES, payload, max_size=5)),
        draw(st.none() | st.integers(0, 2**64 - 1)),
        draw(st.dictionaries(st.text(max_size=9), st.text(st.characters(exclude_categories=["Cs"])), max_size=3)),
    )


def content(payload: Payload) -> Any:
    """Everything a payload says, as plain values: dtypes and bits, not only numbers (-0.0 is not 0.0)."""
    match payload:
        case Dense():
            return "dense", payload.shape, _plain(payload.array)
        case Bits():
            return "bits", payload.shape, payload.to_bool().tolist()
        case Counts():
            return "counts", payload.shape, payload.limit, payload.to_array().tolist()
        case Sparse():
            return "sparse", payload.shape, payload.indices().tolist(), _plain(payload.values)
        case Slice():
            return "slice", payload.shape, [k.tolist() for k in payload.kept()], _plain(payload.values)


def everything(body: Body) -> Any:
    """Everything a body says, as plain values that can be compared."""
    tensors = {name: content(payload) for name, payload in body.tensors.items()}
    return body.kind, body.seed, dict(body.about), tensors


def _plain(array: Any) -> Any:
    return array.dtype.str, array.shape, array.tobytes()

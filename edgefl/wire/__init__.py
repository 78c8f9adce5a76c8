"""The binary wire format: a safetensors envelope, five codecs, and no pickle.

body.py          bodies: `encode` and `decode`
envelope.py      the safetensors file and its digest
body_parts.py    the named parts of an envelope
codecs/          how one tensor becomes parts, and back
mask_body.py     a mask as a body
result_body.py   a device's result as a body
body_size.py     how many bytes each tensor of a body takes
byte_shuffle.py  lossless compression for the network
"""

from edgefl.wire.body import (
    MAX_BODY_BYTES,
    WIRE_VERSION,
    Body,
    BodyKind,
    Expected,
    Payload,
    check_tensors,
    decode,
    encode,
    encode_weights,
)
from edgefl.wire.body_size import WireSize, measure
from edgefl.wire.codecs.bits import Bits
from edgefl.wire.codecs.counts import Counts
from edgefl.wire.codecs.dense import Dense
from edgefl.wire.codecs.slices import Slice
from edgefl.wire.codecs.sparse import Sparse
from edgefl.wire.mask_body import decode_mask, encode_mask
from edgefl.wire.result_body import ResultBody, decode_result, encode_result

__all__ = [
    "Body",
    "BodyKind",
    "Expected",
    "Payload",
    "encode",
    "encode_weights",
    "decode",
    "check_tensors",
    "Dense",
    "Slice",
    "Sparse",
    "Bits",
    "Counts",
    "encode_mask",
    "decode_mask",
    "ResultBody",
    "encode_result",
    "decode_result",
    "WireSize",
    "measure",
    "MAX_BODY_BYTES",
    "WIRE_VERSION",
]

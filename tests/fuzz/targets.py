"""The parsers of untrusted bytes, as functions that must accept any bytes.

A target returns whether the parser accepted the input, and raises only if the parser is wrong: with anything but an
`EdgeFLError`, or with an answer that a second opinion contradicts.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import onnx

from edgefl.artifacts.bundle import pack_bundle, unpack_bundle
from edgefl.artifacts.graph_check import check_graph
from edgefl.errors import EdgeFLError
from edgefl.values import dumps, read
from edgefl.wire import decode, encode
from edgefl.wire.envelope import seal, unseal

CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 16 * 1024

Target = Callable[[bytes], bool]


def wire(data: bytes) -> bool:
    """Decode a body as it is, and with a digest that fits, as an attacker would compute it."""
    accepted = _decodes(data)
    try:
        text, parts = unseal(data, intact=True)
        sealed = seal(text, parts)
    except EdgeFLError:
        return accepted
    return _decodes(sealed)


def _decodes(data: bytes) -> bool:
    try:
        body = decode(data, limit=2**20)
    except EdgeFLError:
        return False
    again = encode(body)
    assert encode(decode(again, limit=2**21)) == again
    return True


def json_values(data: bytes) -> bool:
    """Read a document of any kind."""
    try:
        value = read(data)
    except EdgeFLError:
        return False
    assert dumps(read(dumps(value))) == dumps(value)
    return True


def bundle(data: bytes) -> bool:
    """Read a bundle from a zip file."""
    try:
        found = unpack_bundle(data)
    except EdgeFLError:
        return False
    assert unpack_bundle(pack_bundle(found)).manifest == found.manifest
    return True


def graph(data: bytes) -> bool:
    """Check an ONNX graph. What passes has no external data for onnx's own parser either."""
    try:
        check_graph(data)
    except EdgeFLError:
        return False
    try:
        model = onnx.load_from_string(data)
    except Exception:  # onnx refuses more than the check does
        return True
    assert not model.functions
    assert not model.training_info
    for tensor in _tensors(model.graph):
        assert not tensor.external_data
        assert not tensor.data_location
    return True


def _tensors(found: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from found.initializer
    for sparse in found.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in found.node:
        assert node.op_type != "Loop"
        assert node.domain in ("", "ai.onnx")
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors, attribute.sparse_tensor.values)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


TARGETS: Mapping[str, Target] = {"wire": wire, "json_values": json_values, "bundle": bundle, "graph": graph}

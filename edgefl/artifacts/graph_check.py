"""Refuses ONNX graphs that could do more than compute. Call it before onnxruntime or the onnx package sees the bytes.

A graph comes from somebody else: to a device from its coordinator, to a coordinator from whoever uploads a bundle.
onnxruntime runs it as data, but a few features of the format reach beyond it: tensors whose values are in another file
or at an address in memory, operators of other libraries, settings of the session, loops without an end, and declared
sizes far beyond those of the file. `edgefl export` uses none of them, so a graph that does is refused.

A device may have no onnx package, so this reads the protobuf encoding itself. It fails closed: a field that it does not
know is refused, so it does not matter how another parser would read it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from edgefl.errors import SchemaError

__all__ = ["check_graph"]

_DOMAINS = frozenset({b"", b"ai.onnx"})
_ENDLESS = frozenset({b"Loop"})
_ORT_FORMAT = b"ORTM"
"""Marks onnxruntime's other format, at its fifth byte. onnxruntime looks for it first."""
_MOST_NODES = 200_000
_MOST_NESTED = 4

# Every field of a message that may occur. Integers and floats may also be packed into bytes. What is "once" may not be
# repeated: protobuf merges repeated messages, and the merged one would not be what was checked.
_INTEGER, _FLOAT, _BYTES, _ONCE = "integer", "float", "bytes", "once"
_MODEL = {
    **dict.fromkeys((1, 5), _INTEGER),  # ir_version, model_version
    **dict.fromkeys((2, 3, 4, 6), _BYTES),  # producer_name, producer_version, domain, doc_string
    **dict.fromkeys((8, 14), _BYTES),  # opset_import, metadata_props
    7: _ONCE,  # graph
}
_OTHER_MODEL_FIELDS = frozenset({20, 25, 26})  # training_info, functions, configuration
_GRAPH = {
    **dict.fromkeys((2, 10), _BYTES),  # name, doc_string
    # node, initializer, input, output, value_info, quantization_annotation, metadata_props
    **dict.fromkeys((1, 5, 11, 12, 13, 14, 16), _BYTES),
}
_NODE = {
    **dict.fromkeys((1, 2, 3, 4, 6, 7), _BYTES),  # input, output, name, op_type, doc_string, domain
    **dict.fromkeys((5, 9), _BYTES),  # attribute, metadata_props
}
_ATTRIBUTE = {
    **dict.fromkeys((3, 8, 20), _INTEGER),  # i, ints, type
    **dict.fromkeys((2, 7), _FLOAT),  # f, floats
    **dict.fromkeys((1, 13), _BYTES),  # name, doc_string
    **dict.fromkeys((4, 9, 10, 11), _BYTES),  # s, strings, tensors, graphs
    **dict.fromkeys((5, 6), _ONCE),  # t, g
}
_TENSOR = {
    # dims, data_type, int32_data, int64_data, uint64_data, data_location
    **dict.fromkeys((1, 2, 5, 7, 11, 14), _INTEGER),
    **dict.fromkeys((4, 10), _FLOAT),  # float_data, double_data
    **dict.fromkeys((8, 12), _BYTES),  # name, doc_string
    **dict.fromkeys((6, 16), _BYTES),  # string_data, metadata_props
    9: _ONCE,  # raw_data
}
_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}
"""Bytes of the wire types of fixed size."""
_WIRE = {_INTEGER: {_VARINT, _LENGTH}, _FLOAT: {*_FIXED, _LENGTH}, _BYTES: {_LENGTH}, _ONCE: {_LENGTH}}


def check_graph(data: bytes, name: str = "the graph") -> None:
    """Raise a `SchemaError` unless the bytes are an ONNX model that can only compute."""
    check = _Check(name)
    if data[4:8] == _ORT_FORMAT:
        raise check.refusal("is in onnxruntime's own format", "which EdgeFL never writes")
    check.model(data)


@dataclass(slots=True)
class _Check:
    """One pass over a graph."""

    name: str
    nodes: int = 0

    def model(self, data: bytes) -> None:
        graphs = 0
        for field, start, end, _ in self.fields(data, 0, len(data), _MODEL, "model"):
            if field == 7:
                graphs += 1
                self.graph(data, start, end, 0)
            elif field == 14 and b"ort_config" in data[start:end]:
                raise self.refusal("carries settings for onnxruntime", "which are the device's to choose")
        if not graphs:
            raise self.refusal("is not an ONNX model", "because it has no graph")

    def graph(self, data: bytes, start: int, end: int, depth: int) -> None:
        if depth > _MOST_NESTED:
            raise self.refusal(f"nests graphs more than {_MOST_NESTED} deep", "which no exported model does")
        for field, begin, stop, _ in self.fields(data, start, end, _GRAPH, "graph"):
            if field == 1:
                self.node(data, begin, stop, depth)
            elif field == 5:
                self.tensor(data, begin, stop)

    def node(self, data: bytes, start: int, end: int, depth: int) -> None:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise self.refusal(f"has more than {_MOST_NODES:,} nodes", "which no exported model has")
        for field, begin, stop, _ in self.fields(data, start, end, _NODE, "node"):
            if field == 5:
                self.attribute(data, begin, stop, depth)
            elif field == 4 and data[begin:stop] in _ENDLESS:
                raise self.refusal(f"has a node of type {_shown(data[begin:stop])}", "which may never end")
            elif field == 7 and data[begin:stop] not in _DOMAINS:
                raise self.refusal(
                    f"has a node of the domain {_shown(data[begin:stop])}", "and only standard operators are accepted"
                )

    def attribute(self, data: bytes, start: int, end: int, depth: int) -> None:
        for field, begin, stop, _ in self.fields(data, start, end, _ATTRIBUTE, "attribute"):
            if field in (5, 10):
                self.tensor(data, begin, stop)
            elif field in (6, 11):
                self.graph(data, begin, stop, depth + 1)

    def tensor(self, data: bytes, start: int, end: int) -> None:
        elements = 1
        for field, begin, stop, number in self.fields(data, start, end, _TENSOR, "tensor"):
            if field == 14 and (number or stop > begin):
                raise self.external()
            if field == 1:
                for size in self.packed(data, begin, stop) if number is None else (number,):
                    elements *= size
                    if max(size, elements) > 2**62:
                        raise self.oversized()
        # No type takes less than half a byte for an element.
        if elements > 2 * (end - start):
            raise self.oversized()

    def fields(
        self, data: bytes, start: int, end: int, known: dict[int, str], message: str
    ) -> Iterator[tuple[int, int, int, int | None]]:
        """Yield each field's number and either the range of its bytes or, as the last entry, its value."""
        at, seen = start, 0
        while at < end:
            tag, at = self.varint(data, at, end)
            field, wire = tag >> 3, tag & 7
            kind = known.get(field)
            if kind is None or wire not in _WIRE[kind]:
                raise self.external() if known is _TENSOR and field == 13 else self.unknown(field, message)
            value: int | None = None
            if wire == _LENGTH:
                size, at = self.varint(data, at, end)
                if kind == _ONCE and seen & 1 << field:
                    raise self.refusal(f"has the field {field} of a {message} twice", "which is ambiguous")
                seen |= 1 << field
            elif wire == _VARINT:
                size = 0
                value, at = self.varint(data, at, end)
            else:
                size = _FIXED[wire]
            if size > end - at:
                raise self.damaged()
            yield field, at, at + size, value
            at += size

    def varint(self, data: bytes, at: int, end: int) -> tuple[int, int]:
        """Return a number and the place after it."""
        if at < end and data[at] < 128:
            return data[at], at + 1
        number = 0
        for shift in range(0, 70, 7):
            if at >= end:
                break
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number, at
        raise self.damaged()

    def packed(self, data: bytes, at: int, end: int) -> Iterator[int]:
        while at < end:
            number, at = self.varint(data, at, end)
            yield number

    def refusal(self, problem: str, why: str) -> SchemaError:
        return SchemaError(
            f"{self.name} {problem}, {why}", fix="Use a graph that `edgefl export` wrote, from somebody whom you trust."
        )

    def external(self) -> SchemaError:
        return self.refusal(
            "has a tensor with external data", "and a graph must not read files or memory of the machine"
        )

    def oversized(self) -> SchemaError:
        return self.refusal("has a tensor that declares more elements than its bytes hold", "which no exporter writes")

    def damaged(self) -> SchemaError:
        return SchemaError(f"{self.name} is not a readable ONNX model", fix="Download or export it again.")

    def unknown(self, field: int, message: str) -> SchemaError:
        if message == "model" and field not in _OTHER_MODEL_FIELDS:
            return self.damaged()
        return self.refusal(f"has a {message} with the field {field}", "which `edgefl export` never writes")


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("ascii", "backslashreplace"))

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from device_runtime.profiler.reference_models import reference_bundles
from edgefl.artifacts.graph_check import check_graph
from edgefl.artifacts.onnx_session import open_onnx_session
from edgefl.errors import EdgeFLError, ExportError, SchemaError
from tests.artifacts.hostile_graphs import HOSTILE, external_tensor, model_of, plain_model, working_folder_with_secret
from tests.fuzz.targets import graph as check_with_second_opinion


def varint(number: int, *, length: int = 1) -> bytes:
    """A number as protobuf encodes it, padded to a length."""
    pieces = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 7 * length), 7)] or [0]
    return bytes([*(piece | 128 for piece in pieces[:-1]), pieces[-1]])


def field(number: int, content: bytes, *, length: int = 1) -> bytes:
    return varint(number << 3 | 2, length=length) + varint(len(content)) + content


def graphs_of_exporter() -> Iterator[bytes]:
    for bundle in reference_bundles():
        yield from (data for name, data in bundle.files.items() if name.endswith(".onnx"))


def test_graphs_of_the_exporter_pass() -> None:
    graphs = list(graphs_of_exporter())
    assert len(graphs) >= 3
    for graph in graphs:
        check_graph(graph)


@pytest.mark.parametrize("how", HOSTILE)
def test_a_graph_that_could_do_more_than_compute_is_refused(how: str) -> None:
    with pytest.raises(SchemaError, match=r"the graph (has|carries|nests)"):
        check_graph(HOSTILE[how]().SerializeToString())


def test_external_data_is_named_in_the_refusal() -> None:
    with pytest.raises(SchemaError, match="a tensor with external data, and a graph must not read files"):
        check_graph(HOSTILE["an initializer in a file"]().SerializeToString())


@pytest.mark.parametrize("length", [1, 2, 5, 10])
def test_external_data_cannot_hide_behind_an_unusual_encoding(length: int) -> None:
    plain = plain_model()
    name = field(8, b"w") + field(9, b"")
    for hidden in (
        field(13, b"\x0a\x08location\x12\x05hosts", length=length),
        varint(14 << 3, length=length) + varint(1, length=length),
        varint(14 << 3, length=length) + varint(1 << 63),
        field(14, b"\x01"),
        varint(14 << 3 | 5) + b"\1\0\0\0",
        varint(13 << 3 | 3) + varint(13 << 3 | 4),
    ):
        tensor = name + hidden
        model = plain.SerializeToString() + field(7, field(5, tensor))
        with pytest.raises(SchemaError):
            check_graph(model)
        with pytest.raises(SchemaError):
            check_graph(field(7, plain.graph.SerializeToString() + field(5, tensor)))


def test_a_message_that_protobuf_would_merge_is_refused() -> None:
    data = plain_model().SerializeToString()
    with pytest.raises(SchemaError, match="twice"):
        check_graph(data + field(7, b""))


def test_dimensions_cannot_hide_from_the_check() -> None:
    node = helper.make_node("Identity", ["w"], ["y"])
    tensor = TensorProto(name="w", dims=[2**40], data_type=TensorProto.FLOAT).SerializeToString()
    for more in (b"", varint(1 << 3 | 1) + b"\0" * 8, varint(1 << 3 | 5) + b"\0" * 4):
        graph = field(1, node.SerializeToString()) + field(5, tensor + more)
        with pytest.raises(SchemaError):
            check_graph(field(7, graph))
    with pytest.raises(SchemaError, match="more elements than its bytes hold"):
        check_graph(field(7, field(5, field(1, varint(2**62) * 100_000))))


def test_onnxruntimes_own_format_is_refused_even_inside_a_valid_model() -> None:
    model = plain_model()
    data = field(2, b"xxORTM") + model.SerializeToString()
    assert data[4:8] == b"ORTM"
    onnx.load_from_string(data)
    with pytest.raises(SchemaError, match="onnxruntime's own format"):
        check_graph(data)


@pytest.mark.parametrize("data", [b"", b"\0", b"a graph", b"\xff" * 30, b"\x3a\xff\xff\xff\xff\x0f"])
def test_bytes_that_are_not_a_model_are_refused(data: bytes) -> None:
    with pytest.raises(SchemaError):
        check_graph(data)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_mutated_graph_is_refused_or_has_no_external_data(data: st.DataObject) -> None:
    graph = bytearray(HOSTILE["a file in a nested body"]().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(graph) - 1))
        graph[at] = data.draw(st.integers(0, 255))
    check_with_second_opinion(bytes(graph))


def test_constants_are_not_made_large_while_a_graph_is_loaded() -> None:
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [20_000, 20_000])
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["a"])]
    nodes += [helper.make_node("MatMul", ["a", "a"], ["y"])]  # hours of work, if it were done while loading
    open_onnx_session(model_of(nodes, [shape], inputs=()).SerializeToString(), threads=1)


def test_a_session_has_no_folder_for_external_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second line of defence, with the first one taken away."""
    monkeypatch.setattr("edgefl.artifacts.onnx_session.check_graph", lambda graph: None)
    monkeypatch.chdir(working_folder_with_secret(tmp_path))
    model = model_of(
        [helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], [external_tensor()], inputs=()
    ).SerializeToString()
    with pytest.raises(EdgeFLError, match="cannot load the graph"):
        open_onnx_session(model)


def test_a_graph_that_cannot_be_loaded_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    model = model_of([helper.make_node("Strange", ["x"], ["y"])]).SerializeToString()
    with pytest.raises(ExportError):
        open_onnx_session(model.replace(b"Strange", b"\x1b[2J\xff\xff\xff"))  # not a text, so neither is the error
    assert capfd.readouterr() == ("", "")

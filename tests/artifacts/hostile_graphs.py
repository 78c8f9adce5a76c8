"""Graphs that a hostile coordinator or operator could send: each breaks out of plain computation in its own way.

The tests of the graph check, of the device and of the coordinator use them. `HOSTILE` has a builder for each by name.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
from onnx import TensorProto, helper

SECRET = "id_ed25519"
SECRET_TEXT = b"-----BEGIN OPENSSH PRIVATE KEY-----".ljust(64, b".")


def model_of(
    nodes: list[onnx.NodeProto],
    initializers: list[TensorProto] | None = None,
    *,
    inputs: tuple[str, ...] = ("x",),
    outputs: tuple[str, ...] = ("y",),
) -> onnx.ModelProto:
    """A model of these nodes."""

    def described(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)

    graph = helper.make_graph(nodes, "g", [*map(described, inputs)], [*map(described, outputs)], initializers or [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    return model


def plain_model() -> onnx.ModelProto:
    """A model that is fine."""
    return model_of([helper.make_node("Relu", ["x"], ["y"])])


def external_tensor(location: str = SECRET, *, size: int = 64, name: str = "w") -> TensorProto:
    """A tensor whose bytes are in a file."""
    tensor = TensorProto(name=name, dims=[size], data_type=TensorProto.UINT8, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    return tensor


def _external_initializer() -> onnx.ModelProto:
    return model_of([helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], [external_tensor()], inputs=())


def _address_in_memory() -> onnx.ModelProto:
    tensor = external_tensor("*/_ORT_MEM_ADDR_/*")
    return model_of([helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], [tensor], inputs=())


def _external_constant() -> onnx.ModelProto:
    return model_of(
        [
            helper.make_node("Constant", [], ["w"], value=external_tensor()),
            helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT),
        ],
        inputs=(),
    )


def _external_in_list() -> onnx.ModelProto:
    node = helper.make_node("Relu", ["x"], ["y"])
    node.attribute.add(name="many", type=onnx.AttributeProto.TENSORS).tensors.append(external_tensor())
    return model_of([node])


def _location_without_entries() -> onnx.ModelProto:
    return model_of(
        [helper.make_node("Identity", ["x"], ["y"])],
        [TensorProto(name="w", dims=[0], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)],
    )


def _entries_without_location() -> onnx.ModelProto:
    tensor = external_tensor()
    tensor.ClearField("data_location")
    return model_of([helper.make_node("Identity", ["x"], ["y"])], [tensor])


def _external_in_body() -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Cast", ["w"], ["out"], to=TensorProto.FLOAT)],
        "body",
        [],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [external_tensor()],
    )
    inner = helper.make_graph(
        [helper.make_node("If", ["condition"], ["out"], then_branch=body, else_branch=body)],
        "inner",
        [],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
    )
    condition = helper.make_tensor("condition", TensorProto.BOOL, [], [True])
    return model_of([helper.make_node("If", ["condition"], ["y"], then_branch=inner, else_branch=inner)], [condition])


def _external_in_function() -> onnx.ModelProto:
    model = plain_model()
    constant = helper.make_node("Constant", [], ["b"], value=external_tensor())
    model.functions.append(helper.make_function("own", "f", ["a"], ["b"], [constant], []))
    return model


def _external_in_training_info() -> onnx.ModelProto:
    model = plain_model()
    model.training_info.add().algorithm.initializer.append(external_tensor())
    return model


def _external_in_sparse() -> onnx.ModelProto:
    model = plain_model()
    model.graph.sparse_initializer.add(dims=[10]).values.CopyFrom(external_tensor())
    return model


def _huge_sparse() -> onnx.ModelProto:
    sparse = onnx.SparseTensorProto(dims=[2**20, 2**20])
    sparse.values.CopyFrom(helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0]))
    sparse.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, [1], [0]))
    return model_of([helper.make_node("Constant", [], ["y"], sparse_value=sparse)], inputs=())


def _huge_tensor() -> onnx.ModelProto:
    tensor = TensorProto(name="w", dims=[2**20, 2**20], data_type=TensorProto.FLOAT, raw_data=b"\0" * 4)
    return model_of([helper.make_node("Identity", ["w"], ["y"])], [tensor], inputs=())


def _endless_loop() -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["still"]), helper.make_node("Relu", ["a"], ["b"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("a", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, None),
        ],
    )
    on = helper.make_tensor("on", TensorProto.BOOL, [], [True])
    return model_of([helper.make_node("Loop", ["", "on", "x"], ["y"], body=body)], [on])


def _other_library() -> onnx.ModelProto:
    model = model_of([helper.make_node("ReadFile", ["x"], ["y"], domain="ai.onnx.contrib")])
    model.opset_import.append(helper.make_opsetid("ai.onnx.contrib", 1))
    return model


def _session_settings() -> onnx.ModelProto:
    model = plain_model()
    model.metadata_props.add(key="ort_config", value='{"session_options": {"intra_op_num_threads": 1000}}')
    return model


def _deeply_nested() -> onnx.ModelProto:
    graph = plain_model().graph
    for _ in range(20):
        outer = onnx.GraphProto(name="g")
        node = outer.node.add(op_type="If", input=["c"], output=["y"])
        node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g.CopyFrom(graph)
        graph = outer
    model = plain_model()
    model.graph.CopyFrom(graph)
    return model


HOSTILE: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "an initializer in a file": _external_initializer,
    "an initializer at an address in memory": _address_in_memory,
    "a constant in a file": _external_constant,
    "a list of tensors with one in a file": _external_in_list,
    "an empty tensor in a file": _location_without_entries,
    "a file that is not declared external": _entries_without_location,
    "a file in a nested body": _external_in_body,
    "a file in a function": _external_in_function,
    "a file in a training graph of ONNX": _external_in_training_info,
    "a file in a sparse tensor": _external_in_sparse,
    "a sparse tensor of a tebibyte": _huge_sparse,
    "a tensor of a tebibyte": _huge_tensor,
    "a loop without an end": _endless_loop,
    "an operator of another library": _other_library,
    "settings of the session": _session_settings,
    "bodies nested twenty deep": _deeply_nested,
}


def spoiled(graph: bytes, how: str) -> bytes:
    """A working graph that besides has what a hostile one has, so that it would run if nobody looked."""
    model = onnx.load_from_string(graph)
    hostile = HOSTILE[how]()
    model.functions.extend(hostile.functions)
    model.training_info.extend(hostile.training_info)
    model.metadata_props.extend(hostile.metadata_props)
    for field in ("initializer", "sparse_initializer"):
        for tensor in getattr(hostile.graph, field):
            if field == "initializer":
                tensor.name = f"hostile/{tensor.name}"
            getattr(model.graph, field).append(tensor)
    for node in hostile.graph.node:
        for names in (node.input, node.output):
            names[:] = [f"hostile/{name}" if name else "" for name in names]
        model.graph.node.append(node)
    return bytes(model.SerializeToString())


def working_folder_with_secret(folder: Path) -> Path:
    """A folder such as an agent may run in, with a file that is nobody else's business."""
    (folder / SECRET).write_bytes(SECRET_TEXT)
    return folder

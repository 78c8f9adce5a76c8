"""Cuts an inference graph down to the features: what the model's last layer reads.

    x, weights -> features        float32, [batch, features]

The coordinator cuts it for plans whose rule only runs the model forward (`feature_sums`, `head_gradients`). Importing
this module does not need the onnx package.
"""

from typing import TYPE_CHECKING

from edgefl.artifacts.cut import inputs_of, needed_nodes
from edgefl.errors import MaskError
from edgefl.model_graph import LinearHead, ModelGraph, linear_head

if TYPE_CHECKING:
    import onnx

__all__ = ["FEATURES", "feature_graph"]

FEATURES = "features"
"""The name of the output."""


def feature_graph(inference: bytes, graph: ModelGraph) -> bytes:
    """Return the serialised part of an inference graph that computes what the last layer reads."""
    import onnx
    from onnx import TensorProto, helper

    model, head = onnx.load_from_string(inference), linear_head(graph)
    read = None if head is None else _read_by(model.graph, head)
    if read is None:
        raise MaskError(
            f"the output of model {graph.name!r} is not that of one linear layer",
            fix="Use exact_head = 'none' with this model.",
        )
    node = helper.make_node("Identity", [read], [FEATURES])
    nodes = [*needed_nodes(model.graph.node, [read]), node]
    used = {name for one in nodes for name in inputs_of(one)}
    kept = [one for one in model.graph.input if one.name in used]
    constants = [one for one in model.graph.initializer if one.name in used]
    output = helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, ["batch", None])
    for field, values in (
        (model.graph.node, nodes),
        (model.graph.input, kept),
        (model.graph.initializer, constants),
        (model.graph.output, [output]),
    ):
        del field[:]
        field.extend(values)
    del model.graph.value_info[:]
    return bytes(model.SerializeToString(deterministic=True))


def _read_by(graph: "onnx.GraphProto", head: LinearHead) -> str | None:
    """Return what the layer reads that writes the graph's output; None if that is not the linear head alone."""
    made_by = {output: node for node in graph.node for output in node.output}
    wanted = {head.weight} if head.bias is None else {head.weight, head.bias}
    found: set[str] = set()
    name = graph.output[0].name
    while (node := made_by.get(name)) is not None:
        found |= wanted.intersection(node.input)
        if node.op_type in ("Gemm", "MatMul"):
            is_head = _source(node.input[1], made_by) == head.weight and found | {head.weight} == wanted
            return node.input[0] if is_head and _is_plain(node) else None
        if node.op_type == "Add":
            others = [one for one in node.input if one not in wanted]
            if len(others) != 1:
                return None
            name = others[0]
        elif node.op_type == "Identity":
            name = node.input[0]
        else:
            return None
    return None


def _source(name: str, made_by: "dict[str, onnx.NodeProto]") -> str:
    """Return the tensor that a matrix is, transposed or not."""
    node = made_by.get(name)
    return node.input[0] if node is not None and node.op_type in ("Transpose", "Identity") else name


def _is_plain(node: "onnx.NodeProto") -> bool:
    """Return whether a product is not scaled, and its left factor not transposed."""
    factors = {one.name: one.f for one in node.attribute if one.name in ("alpha", "beta")}
    transposed = any(one.name == "transA" and one.i for one in node.attribute)
    return all(value == 1.0 for value in factors.values()) and not transposed

"""Cuts an inference graph down to the features: what the model's last layer reads.

    x, weights -> features        float32, [batch, features]

The coordinator cuts it for plans whose rule only runs the model forward (`feature_sums`, `head_gradients`). Importing
this module does not need the onnx package.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgefl.artifacts.cut import inputs_of, needed_nodes
from edgefl.errors import MaskError
from edgefl.masks import Mask, axis_positions
from edgefl.model_graph import LinearHead, ModelGraph, linear_head

if TYPE_CHECKING:
    import onnx

__all__ = ["FEATURES", "feature_graph"]

FEATURES = "features"
"""The name of the output."""


def feature_graph(
    inference: bytes, graph: ModelGraph, part: Mask | None = None, networks: Sequence[Mask] = ()
) -> bytes:
    """Return the serialised part of an inference graph that computes what the last layer reads.

    With several `networks` in a `part` of the model, the weights that are fed are those of the part; each network's are
    cut out of them, and its features have the places that they have in the part's head.
    """
    import onnx
    from onnx import TensorProto, helper

    model, head = onnx.load_from_string(inference), linear_head(graph)
    read = None if head is None else _read_by(model.graph, head)
    if head is None or read is None:
        raise MaskError(
            f"the output of model {graph.name!r} is not that of one linear layer",
            fix="Use exact_head = 'none' with this model.",
        )
    nodes = [*needed_nodes(model.graph.node, [read]), helper.make_node("Identity", [read], [FEATURES])]
    used = {name for one in nodes for name in inputs_of(one)}
    kept = [one for one in model.graph.input if one.name in used]
    constants = [one for one in model.graph.initializer if one.name in used]
    output = helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, ["batch", None])
    if part is not None and networks:
        nodes, constants = _beside(nodes, constants, [one.name for one in kept], part, networks, head.weight)
        kept = [_of_part(one, part) for one in kept]
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


def _beside(
    nodes: "list[onnx.NodeProto]",
    constants: "list[onnx.TensorProto]",
    inputs: Sequence[str],
    part: Mask,
    networks: Sequence[Mask],
    head: str,
) -> "tuple[list[onnx.NodeProto], list[onnx.TensorProto]]":
    """Return a copy of the nodes for every network, with its weights cut out of the part's, and all features joined."""
    from onnx import helper, numpy_helper

    from edgefl.artifacts.side_by_side import renamed

    made, known, outputs, columns = [], list(constants), [], []
    for number, network in enumerate(networks):
        place, cut = f"network{number}/", dict[str, str]()
        for name in inputs:
            if name == "x":
                continue
            at = name
            for axis, rows in enumerate(axis_positions(part, network, name)):
                if rows is not None:
                    known.append(numpy_helper.from_array(rows.astype(np.int64), f"{place}{name}/rows{axis}"))
                    made.append(helper.make_node("Gather", [at, known[-1].name], [f"{place}{name}/{axis}"], axis=axis))
                    at = made[-1].output[0]
            cut[name] = at
        same = {one.name for one in constants} | {"x"}
        made += [renamed(node, place, {**{name: name for name in same}, **cut}) for node in nodes]
        outputs.append(place + FEATURES)
        rows = axis_positions(part, network, head)[1]
        columns.append(np.arange(part.shapes[head][1]) if rows is None else rows)
    order = np.argsort(np.concatenate(columns), kind="stable")
    joined = FEATURES if np.array_equal(order, np.arange(len(order))) else "joined"
    made.append(helper.make_node("Concat", outputs, [joined], axis=1))
    if joined != FEATURES:
        known.append(numpy_helper.from_array(order, "order"))
        made.append(helper.make_node("Gather", [joined, "order"], [FEATURES], axis=1))
    return made, known


def _of_part(value: "onnx.ValueInfoProto", part: Mask) -> "onnx.ValueInfoProto":
    """Return the declaration of an input at the widths of a part, as numbers: networks are cut out at fixed places."""
    from onnx import helper

    if value.name not in part.shapes:
        return value
    return helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, part.shapes[value.name])


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

"""Computes in advance what is the same in every run of an inference graph: constants, sizes, batch norms (`absorb.py`).

Runtimes do some of this whenever they load a file, each in its own way; quantisation needs it done before. The file
stays plain ONNX.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper, shape_inference

from edgefl.artifacts.absorb import Constants, absorb
from edgefl.artifacts.cut import inputs_of, needed_nodes

__all__ = ["fold"]

_LARGEST_RESULT = 2**16
"""Entries. A larger constant is left for the runtime to compute: it would bloat the file."""


def fold(model: onnx.ModelProto, weights: Mapping[str, npt.NDArray[Any]]) -> onnx.ModelProto:
    """Return the model with these weights inside, simplified."""
    graph = model.graph
    constants: Constants = {init.name: numpy_helper.to_array(init) for init in graph.initializer} | dict(weights)
    outputs = {output.name for output in graph.output}
    nodes = _without_constants(model, constants, outputs)
    nodes = absorb(nodes, constants, outputs)
    nodes = _without_identities(nodes, outputs)
    nodes = needed_nodes(nodes, outputs)
    used = {name for node in nodes for name in inputs_of(node)}
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    del result.graph.initializer[:]
    result.graph.node.extend(nodes)
    for name in sorted(used & constants.keys()):
        result.graph.initializer.append(numpy_helper.from_array(constants[name], name))
    return result


def _without_constants(model: onnx.ModelProto, constants: Constants, outputs: set[str]) -> list[onnx.NodeProto]:
    """Drop the nodes whose results are known, and add these to the constants. An output must keep its node."""
    sizes = _sizes(model, constants)
    left = []
    for node in model.graph.node:
        known = None if outputs & set(node.output) else _shape_result(node, sizes)
        if (
            known is None
            and _is_plain(node)
            and not outputs & set(node.output)
            and all(not name or name in constants for name in node.input)
        ):
            known = _computed(node, constants)
        if known is None:
            left.append(node)
        else:
            constants.update(known)
    return left


def _sizes(model: onnx.ModelProto, constants: Constants) -> dict[str, list[int | None]]:
    """Return the size of every axis of every value, None where it depends on the batch."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    known = {init.name for init in model.graph.initializer}
    for name, array in constants.items():
        if name not in known:  # the shapes of the weights are enough: copying their values is a waste
            dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            bare.graph.input.append(helper.make_tensor_value_info(name, dtype, array.shape))
    inferred = shape_inference.infer_shapes(bare, data_prop=True).graph
    values = [*inferred.value_info, *inferred.input, *inferred.output]
    return {
        value.name: [
            size.dim_value if size.HasField("dim_value") else None for size in value.type.tensor_type.shape.dim
        ]
        for value in values
        if value.type.tensor_type.HasField("shape")
    }


def _shape_result(node: onnx.NodeProto, sizes: Mapping[str, list[int | None]]) -> Constants | None:
    if node.op_type != "Shape" or node.input[0] not in sizes:
        return None
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    asked = sizes[node.input[0]][bounds.get("start", 0) : bounds.get("end")]
    if None in asked:
        return None
    return {node.output[0]: np.array(asked, np.int64)}


def _is_plain(node: onnx.NodeProto) -> bool:
    """Return whether a node always computes the same, and contains no graph."""
    has_graph = any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute)
    is_random = node.op_type.startswith("Random") or node.op_type in ("Bernoulli", "Multinomial")
    return not has_graph and not is_random and node.domain == ""


def _computed(node: onnx.NodeProto, constants: Constants) -> Constants | None:
    from onnx.reference import ReferenceEvaluator

    inputs = [name for name in dict.fromkeys(node.input) if name]
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(constants[name].dtype), constants[name].shape
        )
        for name in inputs
    ]
    outputs = [name for name in node.output if name]
    graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=name) for name in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    results = ReferenceEvaluator(model).run(None, {name: constants[name] for name in inputs})
    arrays = [np.asarray(result) for result in results]
    before = sum(constants[name].size for name in inputs)
    if any(array.size > max(_LARGEST_RESULT, before) for array in arrays):
        return None
    return dict(zip(outputs, arrays, strict=True))


def _without_identities(nodes: list[onnx.NodeProto], outputs: set[str]) -> list[onnx.NodeProto]:
    """Drop the nodes that only rename; the graph's outputs keep their names."""
    # Names that the body of a loop reads must stay: bodies are not rewritten.
    makers = {name for node in nodes for name in node.output}
    makers -= {name for node in nodes for name in inputs_of(node) - set(node.input)}
    renamed: dict[str, str] = {}
    for node in nodes:
        if node.op_type == "Identity" and node.output[0] in outputs and node.input[0] in makers - outputs:
            renamed[node.input[0]] = node.output[0]
    left = []
    for node in nodes:
        if node.op_type == "Identity" and renamed.get(node.input[0]) == node.output[0]:
            continue
        changed = onnx.NodeProto()
        changed.CopyFrom(node)
        changed.input[:] = [renamed.get(name, name) for name in node.input]
        changed.output[:] = [renamed.get(name, name) for name in node.output]
        left.append(changed)
    return left

"""Bake a submodel's weights into an inference graph: what was an input becomes a constant.

An inference graph takes its weights as inputs, like a training graph, so one file serves every mask. A finished
personal model is easier to use, and faster, with its weights inside: runtimes fold and pack what is constant. The
result runs anywhere ONNX does and knows nothing of masks.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from edgefl.errors import MaskError

__all__ = ["bake"]


def bake(model: onnx.ModelProto, weights: Mapping[str, npt.NDArray[Any]]) -> onnx.ModelProto:
    """Return the graph with every input but `x` replaced by the weight of that name."""
    inputs = [node for node in model.graph.input if node.name == "x"]
    wanted = [node for node in model.graph.input if node.name != "x"]
    missing = [node.name for node in wanted if node.name not in weights]
    if missing:
        raise MaskError(f"the weights lack tensor {min(missing)!r}", fix="Give every tensor that the graph reads.")
    baked = onnx.ModelProto()
    baked.CopyFrom(model)
    del baked.graph.input[:]
    baked.graph.input.extend(inputs)
    for node in wanted:
        _check_rank(node, weights[node.name])
        baked.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(weights[node.name]), node.name))
    return baked


def _check_rank(node: onnx.ValueInfoProto, weight: npt.NDArray[Any]) -> None:
    declared = node.type.tensor_type.shape.dim
    fixed = [(size.dim_value, have) for size, have in zip(declared, weight.shape, strict=False) if size.dim_value]
    if len(declared) != weight.ndim or any(size != have for size, have in fixed):
        shape = [size.dim_param or size.dim_value for size in declared]
        raise MaskError(
            f"tensor {node.name!r} has shape {weight.shape}, and the graph reads {shape}",
            fix="Give the weights of this model, or of a mask of it.",
        )

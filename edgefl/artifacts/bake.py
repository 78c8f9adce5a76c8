"""Bakes a submodel's weights into an inference graph: inputs become constants.

An inference graph takes its weights as inputs, like a training graph, so one file serves every mask. A finished
personal model is easier to use, and faster, with its weights inside: batch norm is folded into the layer before it,
whatever depends on the widths alone is computed now (`fold.py`), and a depthwise convolution, which a free width does
not allow, is written as the convolution it is. The result runs on any ONNX runtime and knows nothing of masks.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgefl.artifacts.fold import fold
from edgefl.errors import MaskError

__all__ = ["DEPTHWISE", "bake"]

DEPTHWISE = "edgefl.depthwise"
"""Key of the note on a node that stands for a depthwise convolution: JSON of its attributes and `inputs`, the names of
its image and its weight."""


def bake(model: onnx.ModelProto, weights: Mapping[str, npt.NDArray[Any]]) -> onnx.ModelProto:
    """Return the graph with every input but `x` replaced by the weight of that name."""
    inputs = [node for node in model.graph.input if node.name == "x"]
    wanted = [node for node in model.graph.input if node.name != "x"]
    missing = [node.name for node in wanted if node.name not in weights]
    if missing:
        raise MaskError(f"the weights lack tensor {min(missing)!r}", fix="Give every tensor that the graph reads.")
    for node in wanted:
        _check_rank(node, weights[node.name])
    baked = onnx.ModelProto()
    baked.CopyFrom(model)
    nodes = [_depthwise(node, weights) for node in model.graph.node]
    for field, kept in ((baked.graph.input, inputs), (baked.graph.node, nodes)):
        del field[:]
        field.extend(kept)
    return fold(baked, {node.name: np.ascontiguousarray(weights[node.name]) for node in wanted})


def _depthwise(node: onnx.NodeProto, weights: Mapping[str, npt.NDArray[Any]]) -> onnx.NodeProto:
    """Return the convolution that a node stands for, or the node itself."""
    note = next((prop.value for prop in node.metadata_props if prop.key == DEPTHWISE), None)
    attributes = {} if note is None else json.loads(note)
    image, weight = attributes.pop("inputs", (None, None))
    if weight not in weights:
        return node
    return helper.make_node("Conv", [image, weight], list(node.output), group=len(weights[weight]), **attributes)


def _check_rank(node: onnx.ValueInfoProto, weight: npt.NDArray[Any]) -> None:
    declared = node.type.tensor_type.shape.dim
    fixed = [(size.dim_value, have) for size, have in zip(declared, weight.shape, strict=False) if size.dim_value]
    if len(declared) != weight.ndim or any(size != have for size, have in fixed):
        shape = [size.dim_param or size.dim_value for size in declared]
        raise MaskError(
            f"tensor {node.name!r} has shape {weight.shape}, but the graph reads {shape}",
            fix="Give the weights of this model, or of a mask of it.",
        )

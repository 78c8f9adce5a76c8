"""Merges the batch norm, or the addition of a bias, that follows a convolution or linear layer into that layer.

In inference a batch norm multiplies and shifts each channel by fixed numbers, which the preceding weights can do as
well. It works on the nodes of a graph whose weights are known; `fold.py` calls it.
"""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgefl.artifacts.cut import inputs_of

__all__ = ["Constants", "absorb"]

Constants = dict[str, npt.NDArray[Any]]
"""Known arrays, by name."""


def absorb(nodes: list[onnx.NodeProto], constants: Constants, outputs: set[str]) -> list[onnx.NodeProto]:
    """Merge the batch norms and additions of constants that follow convolutions and linear layers into these.

    Values that are outputs of the graph, or that the body of a loop reads, stay unchanged and keep their names.
    """
    reads = Counter(name for node in nodes for name in node.input)
    kept = outputs.union(*(inputs_of(node) - set(node.input) for node in nodes))
    maker: dict[str, onnx.NodeProto] = {}
    renamed: dict[str, str] = {}
    left = []
    for original in nodes:
        node = onnx.NodeProto()
        node.CopyFrom(original)
        node.input[:] = [renamed.get(name, name) for name in original.input]
        for place, name in enumerate(node.input):
            layer = maker.get(name)
            if layer is None or reads[original.input[place]] != 1 or kept & {name, *original.input, *node.output}:
                continue
            change = _change(node, place, layer, constants)
            if change is not None and _absorb(layer, *change, constants):
                renamed[node.output[0]] = layer.output[0]
                break
        else:
            left.append(node)
            if node.op_type in ("Conv", "Gemm") and _is_linear(node, constants):
                maker[node.output[0]] = node
    return left


def _is_linear(node: onnx.NodeProto, constants: Constants) -> bool:
    plain = {"alpha": 1.0, "beta": 1.0}
    odd = any(attribute.f != plain.get(attribute.name, attribute.f) for attribute in node.attribute)
    return not odd and all(name in constants for name in node.input[1:])


def _change(node: onnx.NodeProto, place: int, layer: onnx.NodeProto, constants: Constants) -> tuple[Any, Any] | None:
    """Return what a node multiplies each channel by and then adds, or None if it does something else."""
    others = [name for at, name in enumerate(node.input) if at != place]
    if not all(name in constants for name in others):
        return None
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if node.op_type == "BatchNormalization" and place == 0 and not attributes.get("training_mode"):
        scale, shift, mean, variance = (constants[name].astype(np.float64) for name in others)
        factor = scale / np.sqrt(variance + attributes.get("epsilon", 1e-5))
        return factor, shift - mean * factor
    is_image = layer.op_type == "Conv" and constants[layer.input[1]].ndim == 4
    if node.op_type == "Add" and is_image and constants[others[0]].shape[1:] == (1, 1):
        return 1.0, constants[others[0]].ravel().astype(np.float64)
    return None


def _absorb(layer: onnx.NodeProto, factor: Any, shift: Any, constants: Constants) -> bool:
    """Multiply a layer's outputs by a factor and add a shift, in its weights. Return whether that was possible."""
    weight = constants[layer.input[1]].astype(np.float64)
    flipped = any(attribute.name == "transB" and attribute.i for attribute in layer.attribute)
    axis = 0 if layer.op_type == "Conv" or flipped else 1
    if weight.shape[axis] != shift.size:
        return False
    factor = np.broadcast_to(factor, shift.shape)
    bias = constants[layer.input[2]].astype(np.float64).ravel() if len(layer.input) > 2 and layer.input[2] else 0.0
    along = factor.reshape([-1 if place == axis else 1 for place in range(weight.ndim)])
    names = [f"edgefl/absorbed/{layer.output[0]}/{what}" for what in ("weight", "bias")]
    constants[names[0]] = (weight * along).astype(np.float32)
    constants[names[1]] = (np.broadcast_to(bias, shift.shape) * factor + shift).astype(np.float32)
    layer.input[:] = [layer.input[0], *names]
    return True

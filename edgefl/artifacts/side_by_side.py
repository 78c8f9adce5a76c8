"""Several networks of one model as one ONNX model: they stand side by side, and the mean of their logits comes out.

Networks that share an inference graph and differ in their weights, such as Split-Mix's, must not be put into one copy
of it: every operation that couples channels, such as a norm over groups of them, would mix them. So each has a copy of
its own with its own weights inside (`bake.py`), and they read the same `x`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
import onnx
from onnx import helper

from edgefl.artifacts.bake import bake
from edgefl.errors import MaskError

__all__ = ["bake_networks", "renamed"]


def bake_networks(model: onnx.ModelProto, networks: Sequence[Mapping[str, npt.NDArray[Any]]]) -> onnx.ModelProto:
    """Return an inference graph with the weights of one or several networks inside."""
    if not networks:
        raise MaskError("there is no network to write", fix="Give the weights of at least one.")
    copies = [bake(model, weights) for weights in networks]
    if len(copies) == 1:
        return copies[0]
    joined = onnx.ModelProto()
    joined.CopyFrom(copies[0])
    (output,) = joined.graph.output
    for field in (joined.graph.node, joined.graph.initializer, joined.graph.value_info):
        del field[:]
    outputs = []
    for number, one in enumerate(copies):
        place = f"network{number}/"
        outputs.append(place + output.name)
        joined.graph.node.extend(renamed(node, place, {"x": "x"}) for node in one.graph.node)
        for constant in one.graph.initializer:
            joined.graph.initializer.add().CopyFrom(constant)
            joined.graph.initializer[-1].name = place + constant.name
    joined.graph.node.append(helper.make_node("Mean", outputs, [output.name]))
    return joined


def renamed(node: onnx.NodeProto, place: str, known: Mapping[str, str]) -> onnx.NodeProto:
    """Return a node, and those of its subgraphs, with other names for everything that has no name in `known`."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for names in (made.input, made.output):
        names[:] = [known.get(name, place + name if name else "") for name in names]
    made.name = place + node.name if node.name else ""
    for attribute in made.attribute:
        if attribute.HasField("g"):
            _rename_graph(attribute.g, place, known)
    return made


def _rename_graph(graph: onnx.GraphProto, place: str, known: Mapping[str, str]) -> None:
    nodes = [renamed(node, place, known) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for values in (graph.input, graph.output, graph.initializer, graph.value_info):
        for value in values:
            value.name = place + value.name

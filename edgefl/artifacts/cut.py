"""Cuts a training graph down to the gradients and new statistics of the layers that a device trains.

Fetching fewer outputs does not make onnxruntime do less work; removing nodes from the graph does. So freezing a layer
means cutting: all nodes that only its gradient needs are removed, and with them its backward cost. The coordinator cuts
the graphs of plans, so no device ever needs to. Importing this module does not need the onnx package.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from edgefl.errors import MaskError
from edgefl.masks import Mask

if TYPE_CHECKING:
    import onnx

__all__ = ["GRADIENT", "NEW_STATISTIC", "cut", "cut_training_graph", "inputs_of", "needed_nodes"]

GRADIENT = "grad:"
"""Prefix of a gradient's name; the tensor's name follows."""
NEW_STATISTIC = "new:"
"""Prefix of a running statistic's value after the step; the tensor's name follows."""


def cut_training_graph(graph: bytes, mask: Mask) -> bytes:
    """Return a serialised training graph without the gradients and new statistics of the layers that the mask freezes.

    A graph without any of these is returned as it is.
    """
    import onnx

    model = onnx.load_from_string(graph)
    offered = {name for output in model.graph.output if (name := _tensor_of(output.name)) is not None}
    trained = [name for name in mask.trained_tensors if name in offered]
    if len(trained) == len(offered):
        return graph
    return bytes(cut(model, trained).SerializeToString(deterministic=True))


def cut(model: "onnx.ModelProto", trained: Collection[str]) -> "onnx.ModelProto":
    """Return the training graph with the gradients and new values of the trained tensors alone."""
    offered = {output.name: _tensor_of(output.name) for output in model.graph.output}
    unknown = set(trained) - set(offered.values())
    if unknown:
        raise MaskError(
            f"the graph has no gradient of tensor {min(unknown)!r}", fix="Name tensors that the graph can train."
        )
    outputs = [o for o in model.graph.output if offered[o.name] is None or offered[o.name] in trained]
    nodes = needed_nodes(model.graph.node, [output.name for output in outputs])
    used = {name for node in nodes for name in inputs_of(node)}
    part = type(model)()
    part.CopyFrom(model)
    for field, kept in (
        (part.graph.node, nodes),
        (part.graph.output, outputs),
        (part.graph.input, [i for i in model.graph.input if i.name in used]),
        (part.graph.initializer, [i for i in model.graph.initializer if i.name in used]),
    ):
        del field[:]
        field.extend(kept)
    return part


def _tensor_of(output: str) -> str | None:
    """Return the tensor whose gradient or new value an output is; None for the loss and for what is correct."""
    for prefix in (GRADIENT, NEW_STATISTIC):
        if output.startswith(prefix):
            return output.removeprefix(prefix)
    return None


def needed_nodes(nodes: "Sequence[onnx.NodeProto]", outputs: Iterable[str]) -> "list[onnx.NodeProto]":
    """Return the nodes that the outputs need, in order. The given nodes must be in the order of computation."""
    needed = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed |= inputs_of(node)
    return kept[::-1]


def inputs_of(node: "onnx.NodeProto") -> set[str]:
    """Return the names that a node reads, including those that the bodies of its loops read from outside."""
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= inputs_of(inner)
    return names

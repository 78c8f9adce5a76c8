"""Cut a training graph down to the gradients that are wanted.

Fetching fewer outputs does not make onnxruntime do less; a graph without the nodes does. So a frozen layer is a cut:
whatever only its gradient needs is removed, and its backward cost is gone. The coordinator cuts for phones, a device
that has the onnx package cuts for itself.
"""

from collections.abc import Collection, Iterable, Sequence

import onnx

from edgefl.errors import MaskError

__all__ = ["GRADIENT", "cut", "needed_nodes"]

GRADIENT = "grad:"
"""What the name of a gradient begins with; the tensor's name follows."""


def cut(model: onnx.ModelProto, trained: Collection[str]) -> onnx.ModelProto:
    """Return the training graph with the gradients of the trained tensors alone."""
    offered = {output.name for output in model.graph.output}
    unknown = [name for name in trained if GRADIENT + name not in offered]
    if unknown:
        raise MaskError(
            f"the graph has no gradient of tensor {min(unknown)!r}", fix="Name tensors that the graph can train."
        )
    wanted = {GRADIENT + name for name in trained}
    outputs = [o for o in model.graph.output if not o.name.startswith(GRADIENT) or o.name in wanted]
    nodes = needed_nodes(model.graph.node, [output.name for output in outputs])
    used = {name for node in nodes for name in inputs_of(node)}
    part = onnx.ModelProto()
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


def needed_nodes(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """Return the nodes, in order, that the outputs need. The nodes must be in the order of computation."""
    needed = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed |= inputs_of(node)
    return kept[::-1]


def inputs_of(node: onnx.NodeProto) -> set[str]:
    """Return what a node reads, what the bodies of its loops read from outside included."""
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= inputs_of(inner)
    return names

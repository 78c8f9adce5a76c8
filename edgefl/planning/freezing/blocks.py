"""The blocks of a model that a device trains or freezes as a whole, and their sizes.

As in the authors' code of PerFedMask, norms count with their block, and the head is left out: it stays frozen while the
model is trained, and does not count in the model's dimension.
"""

from dataclasses import dataclass

from edgefl.errors import MaskError
from edgefl.model_graph import ModelGraph, TensorRole

__all__ = ["Block", "freezing_blocks"]


@dataclass(frozen=True, slots=True)
class Block:
    """Layers that are trained or frozen together."""

    name: str
    layers: tuple[str, ...]
    """Names of the trainable layers of the model graph."""
    size: int
    """Their number of parameters."""


def freezing_blocks(graph: ModelGraph) -> tuple[Block, ...]:
    """Return the model's blocks from the input to the output, without the head."""
    found = []
    for name, layers in graph.blocks.items():
        body = tuple(layer for layer in layers if graph.layer[layer].tensors and not _is_head(graph, layer))
        size = sum(_size(graph, layer) for layer in body)
        if size:
            found.append(Block(name, body, size))
    if not found:
        raise MaskError(
            f"model {graph.name!r} has no parameters outside its head", fix="Train all of it: no layer can be frozen."
        )
    return tuple(found)


def _is_head(graph: ModelGraph, layer: str) -> bool:
    return any(graph.tensor[name].role is TensorRole.HEAD for name in graph.layer[layer].tensors)


def _size(graph: ModelGraph, layer: str) -> int:
    tensors = (graph.tensor[name] for name in graph.layer[layer].tensors)
    return sum(tensor.size for tensor in tensors if tensor.role is not TensorRole.STATISTIC)

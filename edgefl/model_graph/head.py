"""The head of a model whose last layer is linear: its tensors, and the features that it reads."""

from dataclasses import dataclass

from edgefl.model_graph.elements import TensorRole, TensorSpec
from edgefl.model_graph.graph import ModelGraph

__all__ = ["LinearHead", "linear_head"]


@dataclass(frozen=True, slots=True)
class LinearHead:
    """The linear layer that writes a model's output: weight @ features + bias."""

    layer: str
    weight: str
    """The tensor of shape [outputs, features]."""
    bias: str | None
    """The tensor of shape [outputs], if the layer adds one."""
    outputs: int


def linear_head(graph: ModelGraph) -> LinearHead | None:
    """Return the head of a model; None if what writes its output is not one layer with one matrix."""
    heads = [tensor for tensor in graph.tensors if tensor.role is TensorRole.HEAD]
    matrices = [tensor for tensor in heads if len(tensor.shape) == 2]
    layers = {graph.layer_of[tensor.name] for tensor in heads}
    if len(matrices) != 1 or len(layers) != 1:
        return None
    (weight,), biases = matrices, [tensor for tensor in heads if tensor is not matrices[0]]
    if graph.class_axis(weight.name) != 0 or not _one_bias(weight, biases):
        return None
    bias = biases[0].name if biases else None
    return LinearHead(next(iter(layers)), weight.name, bias, weight.shape[0])


def _one_bias(weight: TensorSpec, others: list[TensorSpec]) -> bool:
    return not others or (len(others) == 1 and others[0].shape == weight.shape[:1])

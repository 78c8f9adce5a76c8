"""A submodel as a torch module: the model's own code with the kept channels of its weights.

This is the reference that programs and graphs are compared with: nothing but the user's code, run by torch. Most
modules take their widths from their weights. Those of torch that store them as numbers are updated here; a user's own
that do so cannot run narrower. Programs are made from `traced_submodel` instead, which does not need the code.
"""

import copy
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from edgefl.errors import ExportError
from edgefl.masks import Mask, Weights, gather

__all__ = ["kept_tensors", "submodel"]


def submodel(model: nn.Module, mask: Mask, weights: Weights | None = None) -> nn.Module:
    """Return a copy of a model with the mask's widths and the kept channels of the weights.

    Without weights its parameters have shapes but no values, which is enough for tracing. The model is not changed.
    """
    stored, part = kept_tensors(model, mask, weights)
    # deepcopy reuses what is in the memo, so a large model is never copied whole.
    memo = {id(stored[name]): _like(stored[name], tensor) for name, tensor in part.items()}
    small = copy.deepcopy(model, memo)
    for module in small.modules():
        for kind, resize in _RESIZE.items():
            if isinstance(module, kind):
                resize(module)
    return small


def kept_tensors(
    model: nn.Module, mask: Mask, weights: Weights | None
) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """Return the tensors of a model, and those that a mask keeps of it: of the weights, or without values."""
    stored = dict(model.named_parameters()) | dict(model.named_buffers())
    missing = [name for name in mask.graph.tensor if name not in stored]
    if missing:
        raise ExportError(
            f"{type(model).__name__} has no tensor {missing[0]!r}, which the mask's model {mask.graph.name!r} has",
            fix="Give the model that the mask was made for.",
        )
    if weights is None:
        part = {name: torch.empty(shape, dtype=stored[name].dtype) for name, shape in mask.shapes.items()}
    else:
        part = {name: torch.from_numpy(array) for name, array in gather(mask, weights).items()}
    return stored, part


def _like(old: Tensor, new: Tensor) -> Tensor:
    return nn.Parameter(new, requires_grad=old.requires_grad) if isinstance(old, nn.Parameter) else new


def _convolution(module: nn.Module) -> None:
    assert isinstance(module, nn.modules.conv._ConvNd)
    first, second = module.weight.shape[:2]
    if module.groups == module.in_channels == module.out_channels:  # depthwise: a group for each remaining channel
        module.groups = first
    outside = second * module.groups
    module.in_channels, module.out_channels = (first, outside) if module.transposed else (outside, first)


def _linear(module: nn.Module) -> None:
    assert isinstance(module, nn.Linear)
    module.out_features, module.in_features = module.weight.shape


def _embedding(module: nn.Module) -> None:
    assert isinstance(module, nn.Embedding)
    module.num_embeddings, module.embedding_dim = module.weight.shape


def _feature_norm(module: nn.Module) -> None:
    assert isinstance(module, nn.modules.batchnorm._NormBase)
    tensor = next((t for t in (module.weight, module.running_mean) if isinstance(t, Tensor)), None)
    if tensor is not None:
        module.num_features = tensor.shape[0]


def _group_norm(module: nn.Module) -> None:
    assert isinstance(module, nn.GroupNorm)
    if isinstance(module.weight, Tensor):
        module.num_channels = module.weight.shape[0]


def _layer_norm(module: nn.Module) -> None:
    assert isinstance(module, nn.LayerNorm)
    if isinstance(module.weight, Tensor):
        module.normalized_shape = tuple(module.weight.shape)


def _recurrent(module: nn.Module) -> None:
    assert isinstance(module, nn.RNNBase)
    into, within = module.get_parameter("weight_ih_l0"), module.get_parameter("weight_hh_l0")
    module.input_size, module.hidden_size = into.shape[1], within.shape[1]
    module._init_flat_weights()


_RESIZE: Mapping[type[nn.Module], Callable[[nn.Module], None]] = {
    nn.modules.conv._ConvNd: _convolution,
    nn.Linear: _linear,
    nn.Embedding: _embedding,
    nn.modules.batchnorm._NormBase: _feature_norm,
    nn.GroupNorm: _group_norm,
    nn.LayerNorm: _layer_norm,
    nn.RNNBase: _recurrent,
}
"""Modules that store their widths as numbers, and how to read the numbers off their weights."""

"""Folds batch norm into the convolution or linear layer before it, for inference.

In inference a batch norm with running statistics multiplies and shifts each channel by fixed numbers, which the
preceding weights can do as well. ExecuTorch's own passes for it fail on some models and are wrong for others, so it is
done beforehand, and the batch norms that remain are written in a form that those passes leave alone.

A pair is folded if the norm reads the layer's output, nothing else reads it, and the layer's weights are used once.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

from export.executorch.resizing import Call, run
from export.executorch.traced_submodel import TracedSubmodel

__all__ = ["fold_batch_norms"]

aten = torch.ops.aten

_CONVOLUTIONS = {
    *(aten.conv1d.default, aten.conv1d.padding, aten.conv2d.default, aten.conv2d.padding),
    *(aten.conv3d.default, aten.conv3d.padding),
}
_TRANSPOSED = {aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input}
_LAYERS = _CONVOLUTIONS | _TRANSPOSED | {aten.linear.default}


def fold_batch_norms(model: TracedSubmodel) -> list[str]:
    """Fold what can be folded, in place, and return the modules of the batch norms that remain."""
    left = []
    for node in model.operations:
        if node.target is not aten.batch_norm.default:
            continue
        layer: Any = node.args[0]
        if node.args[3] is None or node.args[4] is None:
            model.override(node, _by_batch)
        elif _can_fold(model, layer):
            _fold(model, layer, node)
            continue
        else:
            model.override(node, _by_statistics)
        left.append(model.module_of(node))
    return left


def _can_fold(model: TracedSubmodel, layer: Any) -> bool:
    if not isinstance(layer, fx.Node) or layer.target not in _LAYERS or len(layer.users) != 1:
        return False
    tensors: list[Any] = [arg for arg in layer.args[1:3] if arg is not None]
    return all(model.name_of(arg) is not None and model.uses_of(arg) == 1 for arg in tensors)


def _fold(model: TracedSubmodel, layer: fx.Node, norm: fx.Node) -> None:
    def tensor(node: Any) -> Any:
        name = None if node is None else model.name_of(node)
        return None if name is None else model.tensor(name)

    old, before = tensor(layer.args[1]), tensor(layer.args[2]) if len(layer.args) > 2 else None
    scale, shift, mean, variance = (tensor(arg) for arg in norm.args[1:5])
    eps: Any = norm.args[7]
    if layer.target is aten.linear.default:
        weight, bias = fuse_linear_bn_weights(old, before, mean, variance, eps, scale, shift)
    else:
        weight, bias = fuse_conv_bn_weights(
            old, before, mean, variance, eps, scale, shift, transpose=layer.target in _TRANSPOSED
        )
    name = model.name_of(layer.args[1])
    assert name is not None  # it can be folded
    model.replace_tensor(name, weight.detach())
    bias_name = f"{name}_folded_bias"
    model.replace_tensor(bias_name, bias.detach())
    model.override(layer, partial(_with_bias, model, bias_name))
    model.override(norm, lambda c: c.x)


def _with_bias(model: TracedSubmodel, name: str, c: Call) -> Any:
    return run(c.replaced(bias=model.tensor(name)))


def _by_batch(c: Call) -> Tensor:
    """Standardise by the statistics of the batch."""
    given = c.given
    found: Tensor = aten._native_batch_norm_legit.no_stats(
        c.x, given["weight"], given["bias"], True, given["momentum"], given["eps"]
    )[0]
    return found


def _by_statistics(c: Call) -> Tensor:
    """Standardise by running statistics: one product and one sum for each entry."""
    scale = torch.rsqrt(c.given["running_var"] + c.given["eps"])
    scale = scale if c.given["weight"] is None else scale * c.given["weight"]
    shift = -c.given["running_mean"] * scale
    shift = shift if c.given["bias"] is None else shift + c.given["bias"]
    shape = (1, -1, *(1,) * (c.x.dim() - 2))
    found: Tensor = c.x * scale.reshape(shape) + shift.reshape(shape)
    return found

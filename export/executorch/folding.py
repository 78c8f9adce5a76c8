"""Folds batch norm into the convolution or linear layer before it, for inference.

In inference a batch norm with running statistics multiplies and shifts each channel by fixed numbers, which the
preceding weights can do as well. ExecuTorch's own pass for it fails on some models, so it is done on torch modules
beforehand.

The order of modules in a model's constructor does not show the order of calls, but the exported graph does: a pair is
folded if the norm reads the layer's output, nothing else reads it, and both run once.
"""

from collections import Counter

import torch
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fold_batch_norms"]

aten = torch.ops.aten

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_CONVOLUTIONS = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
)


def fold_batch_norms(model: nn.Module, example: Tensor) -> nn.Module:
    """Fold what can be folded, in place, and return the model in inference mode."""
    model.eval()
    graph = torch.export.export(model, (example,)).graph
    calls = Counter(path for node in graph.nodes if (path := _module(node)) is not None and _is_layer(node))
    for node in graph.nodes:
        if node.target is not aten.batch_norm.default:
            continue
        layer, norm = node.args[0], _module(node)
        before = _module(layer) if isinstance(layer, fx.Node) and len(layer.users) == 1 else None
        if before is not None and norm is not None and calls[before] == calls[norm] == 1:
            _fold(model, before, norm)
    return model


def _is_layer(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is not aten.dropout.default


def _module(node: fx.Node) -> str | None:
    """Return the path of the innermost module that an operation belongs to."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    return str(stack[-1][0]) if stack else None


def _fold(model: nn.Module, before: str, norm: str) -> None:
    layer, batch_norm = model.get_submodule(before), model.get_submodule(norm)
    if not isinstance(batch_norm, _NORMS) or batch_norm.running_mean is None or batch_norm.running_var is None:
        return
    folded: nn.Module
    if isinstance(layer, _CONVOLUTIONS):
        folded = fuse_conv_bn_eval(layer, batch_norm, transpose=layer.transposed)
    elif isinstance(layer, nn.Linear):
        folded = fuse_linear_bn_eval(layer, batch_norm)
    else:
        return
    model.set_submodule(before, folded)
    model.set_submodule(norm, nn.Identity())

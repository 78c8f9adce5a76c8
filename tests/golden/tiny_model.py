"""The model of most golden files: small, but with every layout of channels, every role, and awkward names.

conv    weight (4, 2, 3, 3), a norm with running statistics and a counter
ﬀ      a gate, two stacked halves (8, 4): sorted before 🐝 by UTF-8 and after it by UTF-16
🐝       a linear layer on flattened maps (5, 16)
head    weight (3, 5) and bias (3); its bias is called __proto__
"""

import numpy as np
import numpy.typing as npt

from edgefl.masks import Mask
from edgefl.model_graph import ChannelGroup, Layer, ModelGraph, Span, TensorRole, TensorSpec
from edgefl.model_graph.elements import Dtype
from edgefl.noise import derive, symmetric, unit

__all__ = ["MASKS", "tiny_model", "tiny_weights"]

_SEED = 2021


def tiny_model() -> ModelGraph:
    """Return the model."""
    weight, norm, statistic = TensorRole.WEIGHT, TensorRole.NORM, TensorRole.STATISTIC
    tensors = (
        TensorSpec("conv.weight", (4, 2, 3, 3), weight, uses=4),
        TensorSpec("conv.scale", (4,), norm),
        TensorSpec("conv.shift", (4,), norm),
        TensorSpec("conv.mean", (4,), statistic),
        TensorSpec("conv.count", (), statistic, dtype=Dtype.INT64),
        TensorSpec("ﬀ.weight", (8, 4), weight, uses=1),
        TensorSpec("🐝.weight", (5, 16), weight, uses=1),
        TensorSpec("head.weight", (3, 5), TensorRole.HEAD, uses=1),
        TensorSpec("__proto__", (3,), TensorRole.HEAD),
    )
    layers = (
        Layer("conv", "conv", "conv", tuple(tensor.name for tensor in tensors[:5])),
        Layer("ﬀ", "linear", "ﬀ", ("ﬀ.weight",), inputs=("conv",)),
        Layer("🐝", "linear", "🐝", ("🐝.weight",), inputs=("ﬀ",)),
        Layer("head", "linear", "head", ("head.weight", "__proto__"), inputs=("🐝",)),
    )
    groups = (
        ChannelGroup(
            "conv",
            4,
            (
                Span("conv.weight", 0),
                Span("conv.scale", 0),
                Span("conv.shift", 0),
                Span("conv.mean", 0),
                Span("ﬀ.weight", 0, stacks=2, stride=4),
                Span("ﬀ.weight", 1),
                Span("🐝.weight", 1, repeat=4),
            ),
        ),
        ChannelGroup("hidden", 5, (Span("🐝.weight", 0), Span("head.weight", 1))),
    )
    return ModelGraph("tiny", tensors, layers, groups, input_elements=32)


def tiny_weights(mask: Mask) -> dict[str, npt.NDArray[np.generic]]:
    """Return the weights of a submodel, from the noise: its own values, not slices of the whole model's."""
    return {tensor.name: _values(mask, tensor.name, tensor.role, tensor.dtype) for tensor in mask.graph.tensors}


def _values(mask: Mask, name: str, role: TensorRole, dtype: Dtype) -> npt.NDArray[np.generic]:
    shape, seed = mask.shapes[name], derive(_SEED, "weights", name)
    if dtype is Dtype.INT64:
        return np.full(shape, 7, np.int64)
    size = int(np.prod(shape))
    drawn = unit(seed, 0, size) if role is TensorRole.STATISTIC else symmetric(seed, 0, size, 0.5)
    values = drawn.reshape(shape)
    return values * mask.held[name] if name in mask.held else values


def _held(mask: Mask, *names: str) -> Mask:
    """Return the mask with two thirds of some tensors held."""
    flags = {name: (np.arange(int(np.prod(mask.shapes[name]))) % 3 != 1).reshape(mask.shapes[name]) for name in names}
    return Mask(mask.graph, mask.trained, mask.kept, flags)


def _masks() -> dict[str, Mask]:
    graph = tiny_model()
    whole = Mask.of(graph)
    narrow = Mask.of(graph, kept={"conv": [0, 2, 3], "hidden": [1, 2]})
    return {
        "whole": whole,
        "narrow": narrow,
        "one channel each": Mask.of(graph, kept={"conv": [3], "hidden": [0]}),
        "frozen": Mask.of(graph, trained=["🐝", "ﬀ"]),
        "nothing trained": Mask.of(graph, trained=[]),
        "held": _held(whole, "conv.weight", "🐝.weight"),
        "narrow, held": _held(narrow, "conv.weight", "🐝.weight", "__proto__"),
        "narrow, frozen, held": _held(
            Mask.of(graph, trained=["head", "🐝", "conv"], kept=narrow.kept), "ﬀ.weight", "__proto__"
        ),
        "held completely": Mask.of(graph, held={"conv.weight": np.ones((4, 2, 3, 3), np.bool_)}),
    }


MASKS = _masks()
"""Masks of the model, by name."""

"""Operations of a traced model that name sizes or widths, rewritten for a submodel's.

`torch.export` writes a model down with the numbers of its whole width: `reshape(x, [8, 65, 3, 4, 16])`. The tracer of
`export.trace_model` knows which of them are channels, so their sizes in a submodel follow, whatever the model's own
code computes them from. The table also has operations that ExecuTorch needs in another form. All others run as is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional

from export.axes import segment
from export.executorch.adaptive_pooling import adaptive_average, adaptive_maximum
from export.executorch.attention import attention
from export.executorch.dropout import dropped
from export.executorch.recurrent import KINDS, recurrent
from export.executorch.sizes import Sizes
from export.trace import Value

__all__ = ["RESIZED", "Call", "call", "run"]

aten = torch.ops.aten


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One operation of a traced model with its arguments in a submodel."""

    operation: Any
    given: Mapping[str, Any]
    """Its arguments by name, those that are left out with their defaults."""
    axes: Mapping[str, Any]
    """The values that its arguments were in the trace, by name."""
    out: Any
    """The value, or the values, that it returned in the trace."""
    sizes: Sizes
    dropout: int | None = None
    """Its number among the model's dropouts, if it is one that drops."""
    seed: Tensor | None = None

    @property
    def x(self) -> Tensor:
        """Its first argument."""
        found: Tensor = next(iter(self.given.values()))
        return found

    @property
    def traced(self) -> Value:
        """Its first argument in the trace."""
        found: Value = next(iter(self.axes.values()))
        return found

    def replaced(self, **changed: Any) -> "Call":
        """Return the same call with some arguments replaced."""
        return replace(self, given={**self.given, **changed})

    def with_arguments(self, **changed: Any) -> Any:
        """Run the operation as it is, with some arguments replaced."""
        given = {**self.given, **changed}
        arguments = self.operation._schema.arguments
        positional = [given[a.name] for a in arguments if not a.kwarg_only]
        return self.operation(*positional, **{a.name: given[a.name] for a in arguments if a.kwarg_only})

    def edge(self, dim: int, index: int) -> int:
        """Return where an index of the first argument's axis in the trace is in the submodel."""
        return self.sizes.axis(segment(self.traced.axes[dim], 0, index))


def call(node: fx.Node, args: Sequence[Any], kwargs: Mapping[str, Any], axes: Sequence[Any], **more: Any) -> Call:
    """Bind the arguments of an operation to their names."""
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    given = {a.name: a.default_value for a in schema}
    given |= dict(zip(given, args, strict=False)) | dict(kwargs)
    return Call(node.target, given, dict(zip(given, axes, strict=False)), **more)


def run(c: Call) -> Any:
    """Run an operation at the submodel's widths."""
    return RESIZED[c.operation](c) if c.operation in RESIZED else c.with_arguments()


def _reshaped(c: Call) -> Tensor:
    return c.x.reshape(c.sizes.shape(c.out))


def _expanded(c: Call) -> Tensor:
    return c.x.expand(c.sizes.shape(c.out))


def _repeated(c: Call) -> Tensor:
    shape = c.sizes.shape(c.out)
    before = (1,) * (len(shape) - c.x.dim()) + tuple(c.x.shape)
    return c.x.repeat([new // old for new, old in zip(shape, before, strict=True)])


def _sliced(c: Call) -> Any:
    dim, step = c.given["dim"] % c.x.dim(), c.given["step"]
    begin, end, _ = slice(c.given["start"], c.given["end"], step).indices(c.traced.shape[dim])
    if step != 1 or (begin, end) == (0, c.traced.shape[dim]):
        return c.with_arguments()
    first = c.edge(dim, begin)
    return c.x.narrow(dim, first, c.sizes.axis(c.out.axes[dim]))


def _narrowed(c: Call) -> Tensor:
    dim = c.given["dim"] % c.x.dim()
    return c.x.narrow(dim, c.edge(dim, c.given["start"] % c.traced.shape[dim]), c.sizes.axis(c.out.axes[dim]))


def _selected(c: Call) -> Tensor:
    dim = c.given["dim"] % c.x.dim()
    return c.x.select(dim, c.edge(dim, c.given["index"] % c.traced.shape[dim]))


def _split(c: Call) -> Any:
    dim = c.given["dim"] % c.x.dim()
    return torch.split_with_sizes(c.x, [c.sizes.axis(part.axes[dim]) for part in c.out], dim)


def _layer_norm(c: Call) -> Any:
    return c.with_arguments(normalized_shape=c.x.shape[-len(c.given["normalized_shape"]) :])


def _convolution(c: Call) -> Any:
    return c.with_arguments(groups=c.x.shape[1] // c.given["weight"].shape[1])


def _dropout(c: Call) -> Tensor:
    if c.dropout is None or c.seed is None:
        return c.x
    whole = "feature" not in str(c.operation)
    return dropped(c.x, c.given["p"], c.seed, c.dropout, whole=whole)


def _recurrent(c: Call) -> Any:
    return recurrent(str(c.operation).split(".")[1], *c.given.values())


def _attention(c: Call) -> Tensor:
    return attention(**c.given, seed=c.seed, number=c.dropout)


def _adaptive_average(c: Call) -> Any:
    sizes = list(c.given["output_size"])
    inside = c.x.shape[-len(sizes) :]
    is_even = all(size % count == 0 for size, count in zip(inside, sizes, strict=True))
    return c.with_arguments() if is_even else adaptive_average(c.x, sizes)


def _adaptive_maximum(c: Call) -> tuple[Tensor, None]:
    return adaptive_maximum(c.x, list(c.given["output_size"])), None


def _max_pool_of_sequences(c: Call) -> Tensor:
    kernel, stride, padding, dilation, ceil_mode = list(c.given.values())[1:]
    sizes = [1, *kernel], [1, *(stride or kernel)], [0, *padding], [1, *dilation]
    return functional.max_pool2d(c.x.unsqueeze(-2), *sizes, ceil_mode).squeeze(-2)


def _nothing(_: Call) -> None:
    """Skip a check that torch made on the traced example."""


_RESHAPES = (
    *(aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.view_as.default),
    *(aten.reshape_as.default, aten.flatten.using_ints, aten.unflatten.int),
)
_SPLITS = (aten.split.Tensor, aten.split.sizes, aten.split_with_sizes.default, aten.chunk.default)
_CONVOLUTIONS = (aten.conv1d.default, aten.conv1d.padding, aten.conv2d.default, aten.conv2d.padding)
_DROPOUTS = (
    *(aten.dropout.default, aten.dropout_.default),
    *(aten.feature_dropout.default, aten.feature_dropout_.default),
)

RESIZED: Mapping[Any, Callable[[Call], Any]] = {
    **dict.fromkeys(_RESHAPES, _reshaped),
    aten.expand.default: _expanded,
    aten.repeat.default: _repeated,
    aten.slice.Tensor: _sliced,
    aten.narrow.default: _narrowed,
    aten.select.int: _selected,
    **dict.fromkeys(_SPLITS, _split),
    aten.layer_norm.default: _layer_norm,
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(_DROPOUTS, _dropout),
    aten.max_pool1d.default: _max_pool_of_sequences,
    aten.adaptive_avg_pool1d.default: _adaptive_average,
    aten.adaptive_avg_pool2d.default: _adaptive_average,
    aten.adaptive_max_pool1d.default: _adaptive_maximum,
    aten.adaptive_max_pool2d.default: _adaptive_maximum,
    aten.scaled_dot_product_attention.default: _attention,
    **{getattr(aten, kind).input: _recurrent for kind in KINDS},
    aten._assert_tensor_metadata.default: _nothing,
}
"""Operation -> how a submodel runs it."""

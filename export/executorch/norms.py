"""Batch norm and group norm in training mode, on matrices with one row per sample and channel.

Both standardise: they subtract a mean m, multiply by r = 1 / sqrt(variance + eps), then scale by w and add b. With
c = x - m over n entries that share their statistics, the gradient of the input is

    w r (g - mean(g)) - c r^2 * mean(w r g c)

(Ioffe & Szegedy, "Batch Normalization", ICML 2015, section 3). Every full-sized operation is a sum along rows or a
product with a column; the rest is small. Layer norm and instance norm reach these, or torch's own decomposition.

Samples that fill up a batch must not count. So a batch norm's means are weighted by the step's `sample_weights`: 1/r
for each of the r real samples, 0 for the others. The weights replace the ones in sums over samples and cost nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from edgefl.errors import ExportError

__all__ = ["batch_norm", "batch_norm_backward", "group_norm", "group_norm_backward", "weighted_samples"]

_SAMPLE_WEIGHTS: ContextVar[Tensor] = ContextVar("sample weights")


@contextmanager
def weighted_samples(weights: Tensor) -> Iterator[None]:
    """Weight the samples of every batch norm that is lowered meanwhile."""
    token = _SAMPLE_WEIGHTS.set(weights)
    try:
        yield
    finally:
        _SAMPLE_WEIGHTS.reset(token)


def _weights_of(x: Tensor, *, has_statistics: bool) -> Tensor:
    """Return the weight of each of the samples along the first axis of x, a row that adds up to 1."""
    given = _SAMPLE_WEIGHTS.get(None)
    count = x.shape[0]
    if given is None or (count == 1 and not has_statistics):  # an instance norm: no statistics are shared by samples
        return x.new_full((1, count), 1 / count)
    if len(given) != count:
        raise ExportError(
            f"a batch norm sees {count} samples in a batch of {len(given)}",
            fix="Keep samples along the first axis of what batch norm gets, or use a layer norm or group norm.",
        )
    return given.reshape(1, -1)


def _rows(x: Tensor) -> Tensor:
    """View N x C x ... as a matrix with a row for each sample and channel."""
    return x.reshape(x.shape[0] * x.shape[1], -1)


def _of_channels(values: Tensor, count: int) -> Tensor:
    """Repeat one value per channel to a column with one value for each sample and channel."""
    return values.reshape(1, -1).expand(count, -1).reshape(-1, 1)


def _over_channels(column: Tensor, channels: int) -> Tensor:
    """Sum a column with one value for each sample and channel to one value per channel."""
    return column.reshape(-1, channels).sum(0)


def _averaged(column: Tensor, weights: Tensor) -> Tensor:
    """Average a column with one value for each sample and channel to one value per channel."""
    return torch.mm(weights, column.reshape(weights.shape[1], -1)).reshape(-1)


def _spread(weights: Tensor, values: Tensor) -> Tensor:
    """Multiply samples' weights by one value per channel, to a column with a value for each sample and channel."""
    return torch.mm(weights.reshape(-1, 1), values.reshape(1, -1)).reshape(-1, 1)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Lower `aten.native_batch_norm`; running statistics are updated in place, as in torch."""
    count = x.shape[0]
    rows = _rows(x)
    if training:
        area = rows.shape[1]
        samples = _weights_of(x, has_statistics=running_mean is not None)
        weights = samples / area
        average = _averaged(rows.sum(1, keepdim=True), weights)
        centred = rows - _of_channels(average, count)
        variance = _averaged((centred * centred).sum(1, keepdim=True), weights)
        if running_mean is not None and running_var is not None:
            running_mean.copy_(running_mean * (1 - momentum) + average * momentum)
            running_var.copy_(running_var * (1 - momentum) + variance * (_unbiased(samples, area) * momentum))
    else:
        assert running_mean is not None  # torch refuses such a call
        assert running_var is not None
        average, variance = running_mean, running_var
        centred = rows - _of_channels(average, count)
    deviation = torch.rsqrt(variance + eps)
    out = centred * _of_channels(deviation if weight is None else deviation * weight, count)
    if bias is not None:
        out = out + _of_channels(bias, count)
    empty = average.new_zeros((0,))
    return out.reshape(x.shape), average if training else empty, deviation if training else empty


def _unbiased(samples: Tensor, area: int) -> Tensor:
    """Return n / (n - 1) for the n = area / sum(weights^2) entries of a channel that count; at most 2."""
    share = torch.mm(samples, samples.reshape(-1, 1)).reshape(1) / area
    return torch.reciprocal(torch.clamp(1 - share, min=0.5))


def batch_norm_backward(
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    saved_mean: Tensor | None,
    saved_deviation: Tensor | None,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Lower `aten.native_batch_norm_backward`: gradients of the input, the weight and the bias, as wanted."""
    count, channels = x.shape[:2]
    if training:
        assert saved_mean is not None  # the forward pass saved them
        assert saved_deviation is not None
        average, deviation = saved_mean, saved_deviation
    else:
        assert running_mean is not None
        assert running_var is not None
        average, deviation = running_mean, torch.rsqrt(running_var + eps)
    g_rows = _rows(g)
    centred = _rows(x) - _of_channels(average, count)
    g_sum = _over_channels(g_rows.sum(1, keepdim=True), channels)
    aligned = _over_channels((g_rows * centred).sum(1, keepdim=True), channels) * deviation
    of_x = None
    if wanted[0]:
        scale = deviation if weight is None else deviation * weight
        of_x = g_rows * _of_channels(scale, count)
        if training:
            weights = _weights_of(x, has_statistics=running_mean is not None) / (x.numel() // (count * channels))
            slope = scale * deviation * aligned
            of_x = of_x - centred * _spread(weights, slope) - _spread(weights, scale * g_sum)
        of_x = of_x.reshape(x.shape)
    return of_x, aligned if wanted[1] else None, g_sum if wanted[2] else None


def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    count: int,
    channels: int,
    _area: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Lower `aten.native_group_norm`."""
    matrix = x.reshape(count * groups, -1)
    average = matrix.mean(1, keepdim=True)
    centred = matrix - average
    deviation = torch.rsqrt((centred * centred).mean(1, keepdim=True) + eps)
    out = centred * deviation if weight is None else _rows(centred.reshape(x.shape)) * _scale(deviation, weight, count)
    out = out if bias is None else out.reshape(count * channels, -1) + _of_channels(bias, count)
    return out.reshape(x.shape), average.reshape(count, groups), deviation.reshape(count, groups)


def group_norm_backward(
    g: Tensor,
    x: Tensor,
    average: Tensor,
    deviation: Tensor,
    weight: Tensor | None,
    count: int,
    channels: int,
    _area: int,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Lower `aten.native_group_norm_backward`: gradients of the input, the weight and the bias, where wanted."""
    size = x.numel() // (count * groups)
    g_rows = _rows(g)
    centred = x.reshape(count * groups, -1) - average.reshape(-1, 1)
    flat = centred.reshape(g_rows.shape)
    g_sum, aligned = g_rows.sum(1, keepdim=True), (g_rows * flat).sum(1, keepdim=True)
    each = deviation.reshape(count * groups, 1).expand(-1, channels // groups).reshape(-1, 1)
    of_x = None
    if wanted[0]:
        scale = each if weight is None else _scale(deviation, weight, count)
        level = (scale * g_sum).reshape(count * groups, -1).sum(1, keepdim=True) / size
        slope = (scale * aligned).reshape(count * groups, -1).sum(1, keepdim=True) / size
        slope = slope * deviation.reshape(-1, 1) * deviation.reshape(-1, 1)
        direct = (g_rows * scale).reshape(count * groups, -1)
        of_x = (direct - centred * slope - level).reshape(x.shape)
    of_weight = _over_channels(aligned * each, channels) if wanted[1] else None
    return of_x, of_weight, _over_channels(g_sum, channels) if wanted[2] else None


def _scale(deviation: Tensor, weight: Tensor, count: int) -> Tensor:
    """Return the product of a group's deviation and a channel's weight, a column with a row a sample and channel."""
    groups = deviation.numel() // count
    spread = deviation.reshape(count * groups, 1).expand(-1, weight.numel() // groups)
    return (spread.reshape(count, -1) * weight).reshape(-1, 1)

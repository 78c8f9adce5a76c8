"""Adaptive pools whose windows differ in size, as products with constant matrices and plain pools.

Window i of m windows of n entries goes from floor(i n / m) to ceil((i + 1) n / m), as in torch. An average is a product
with a matrix of weights along each axis. For a maximum, a product with zeros and ones copies the entries of each window
side by side, all in windows of one size: shorter ones repeat their last entry, which changes no maximum.
"""

import torch
from torch import Tensor
from torch.nn import functional

from export.ops.pool_window import adaptive_windows, selected_entries

__all__ = ["adaptive_average", "adaptive_maximum"]


def adaptive_average(x: Tensor, sizes: list[int]) -> Tensor:
    """Average over windows along the last axes."""
    for place, size in enumerate(sizes, x.dim() - len(sizes)):
        windows = adaptive_windows(x.shape[place], size)
        weights = torch.zeros(x.shape[place], size)
        for column, window in enumerate(windows):
            weights[window.start : window.stop, column] = 1 / len(window)
        x = _along(x, weights, place)
    return x


def adaptive_maximum(x: Tensor, sizes: list[int]) -> Tensor:
    """Take the largest entry of windows along the last axes."""
    kernel = []
    for place, size in enumerate(sizes, x.dim() - len(sizes)):
        entries = selected_entries(x.shape[place], size)
        kernel.append(len(entries) // size)
        if entries != list(range(x.shape[place])):
            x = _along(x, torch.eye(x.shape[place])[:, entries], place)
    if len(sizes) == 1:
        return functional.max_pool2d(x.unsqueeze(-2), [1, *kernel], [1, *kernel]).squeeze(-2)
    return functional.max_pool2d(x, kernel, kernel)


def _along(x: Tensor, weights: Tensor, place: int) -> Tensor:
    return (x.transpose(place, -1) @ weights).transpose(place, -1)

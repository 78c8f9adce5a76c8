"""Keeps a batch away from the kinks of a network, where single precision cannot tell which gradient is right.

The gradient of a ReLU jumps where its input is zero, that of a max pool where two entries of a window are equal. A deep
network has a million such points per batch, and some are always closer than rounding: there PyTorch in single precision
differs from PyTorch in double precision by a hundredth or more, and neither is wrong.

`move_off_kinks` changes the model rather than the batch. In the order of the forward pass it shifts the bias before
each kink, channel by channel, by the smallest amount that leaves no input of the batch near it: the kink then lies in a
gap between inputs, with inputs on both sides as before. A max pool has no bias to shift, so `smooth_batch` draws
another batch if the entries of a window are too close. Both look only at PyTorch in double precision, never at the
engine under test.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from export.shared_dropout_noise import SharedDropoutNoise

__all__ = ["SmoothBatch", "BiasShifts", "smooth_batch", "shift_biases", "move_off_kinks"]

CLEAR = 5e-4
"""The distance that inputs keep from a kink, relative to the root mean square of their channel. Rounding is below 1e-5,
but fifty steps amplify it."""
CLOSE = 5e-6
"""Two entries of a pool's window that differ by less than this, relative to all of them, are too close."""
REACH = 0.25
"""The largest shift of a bias, relative to the root mean square of what it shifts; a few thousandths are usual."""
CANDIDATES = 256
TRIES = 8

BiasShifts = Mapping[str, Tensor]
"""What was added to biases, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class SmoothBatch:
    """A batch, what was added to the model's biases for it, and its distance from the nearest kink."""

    x: Tensor
    shifts: BiasShifts
    margin: float


def smooth_batch(model: nn.Module, draw: Callable[[], Tensor], *, seed: int = 0) -> SmoothBatch:
    """Draw a batch and move a double-precision model off its kinks.

    Return the first of a few batches that is far enough from every kink, or else the one that is farthest.
    """
    best: SmoothBatch | None = None
    for _ in range(TRIES):
        x = draw()
        shifts, margin = move_off_kinks(model, x.double() if x.is_floating_point() else x, seed=seed)
        shift_biases(model, shifts, back=True)
        if best is None or margin > best.margin:
            best = SmoothBatch(x, shifts, margin)
        if margin >= CLOSE:
            break
    assert best is not None  # there was at least one try
    shift_biases(model, best.shifts)
    return best


def move_off_kinks(model: nn.Module, x: Tensor, *, seed: int = 0) -> tuple[BiasShifts, float]:
    """Shift a model's biases off the kinks of a batch; return the shifts and the smallest distance that remains.

    The distance is relative to the root mean square of what goes into the kink. Running statistics are restored. Kinks
    without a bias before them are measured, not moved. The seed is that of dropout.
    """
    vectors = {name: parameter.detach().clone() for name, parameter in model.named_parameters() if parameter.ndim == 1}
    buffers = [buffer.clone() for buffer in model.buffers()]
    with torch.no_grad(), _KinkAvoider() as settling:
        with SharedDropoutNoise(seed):
            model(x)
        for buffer, before in zip(model.buffers(), buffers, strict=True):
            buffer.copy_(before)
    parameters = dict(model.named_parameters())
    moves = {name: parameters[name].detach() - before for name, before in vectors.items()}
    return {name: move for name, move in moves.items() if bool(move.any())}, settling.margin


def shift_biases(model: nn.Module, shifts: BiasShifts, *, back: bool = False) -> None:
    """Add shifts to the biases of a model of any precision, or subtract them."""
    with torch.no_grad():
        for name, move in shifts.items():
            model.get_parameter(name).add_(move, alpha=-1 if back else 1)


def _zero(arguments: Sequence[Any]) -> tuple[float, ...]:
    return (0.0,)


def _threes(arguments: Sequence[Any]) -> tuple[float, ...]:
    return (-3.0, 3.0)


def _bounds(arguments: Sequence[Any]) -> tuple[float, ...]:
    return (*(float(bound) for bound in arguments[1:3]), *(-1.0, 1.0)[len(arguments[1:3]) :])


_KINKS: Mapping[str, Callable[[Sequence[Any]], tuple[float, ...]]] = {
    **{f"aten::{name}": _zero for name in ("relu", "leaky_relu", "elu", "_prelu_kernel")},
    **{f"aten::{name}": _threes for name in ("hardswish", "hardsigmoid")},
    "aten::hardtanh": _bounds,
}
"""The points where the derivative of an elementwise operation jumps."""

_BIASED = {
    "aten::convolution": (2, 1),
    "aten::native_batch_norm": (2, 1),
    "aten::_native_batch_norm_legit": (2, 1),
    "aten::native_group_norm": (2, 1),
    "aten::native_layer_norm": (3, -1),
    "aten::addmm": (0, -1),
}
"""The argument that is added to every entry of the output's channels, and the axis of these channels."""


class _KinkAvoider(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows a forward pass and shifts the bias that reaches a kink most directly."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.margin = float("inf")
        self._bias = WeakIdKeyDictionary()  # the last bias added to a tensor, and its channel axis

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func._schema.name.removesuffix("_")
        if name in _KINKS:
            self._meet(args[0], _KINKS[name](args))
        out = func(*args, **(kwargs or {}))
        if name in _BIASED:
            place, axis = _BIASED[name]
            if isinstance(args[place], Tensor) and args[place].ndim == 1:
                self._bias[out if isinstance(out, Tensor) else out[0]] = (args[place], axis)
        elif name == "aten::add":
            for term in args[:2]:
                if isinstance(term, Tensor) and term.shape == out.shape and term in self._bias:
                    self._bias[out] = self._bias[term]
        elif name == "aten::view" and args[0] in self._bias:  # how a linear layer restores the axes of its input
            bias, axis = self._bias[args[0]]
            if axis == -1 and out.shape[-1] == len(bias):
                self._bias[out] = (bias, axis)
        elif name == "aten::max_pool2d_with_indices":
            self._measure_windows(*args)
        return out

    def _meet(self, values: Tensor, points: Sequence[float]) -> None:
        bias, axis = self._bias[values] if values in self._bias else (None, min(1, values.ndim - 1))
        rows = values.movedim(axis, 0).flatten(1)
        size = rows.square().mean(1).sqrt()
        size = size.clamp(min=float(0.1 * size.square().mean().sqrt()) + 1e-30)  # a channel of zeros has no scale
        if bias is not None and bias.requires_grad:
            move = _least_move(rows, size, points).float().to(values.dtype)
            bias.add_(move)
            values.add_(move.reshape([-1 if place == axis % values.ndim else 1 for place in range(values.ndim)]))
        for point in points:
            nearest = (values.movedim(axis, 0).flatten(1) - point).abs().amin(1) / size
            self.margin = min(self.margin, float(nearest.min()))

    def _measure_windows(self, values: Tensor, kernel: Sequence[int], *rest: Any) -> None:
        stride, padding, dilation = (rest[place] if len(rest) > place else None for place in range(3))
        if dilation is not None and set(dilation) != {1}:
            return
        rows, columns = padding or (0, 0)
        padded = nn.functional.pad(values, (columns, columns, rows, rows), value=-1e30)
        windows = padded.unfold(2, kernel[0], (stride or kernel)[0]).unfold(3, kernel[1], (stride or kernel)[1])
        best = windows.flatten(4).topk(2, -1).values
        gaps = best[..., 0] - best[..., 1]
        gaps = gaps[gaps > 0]  # exact ties are zeros of a ReLU, which pass no gradient
        if gaps.numel():
            self.margin = min(self.margin, float(gaps.min() / values.square().mean().sqrt()))


def _least_move(rows: Tensor, size: Tensor, points: Sequence[float]) -> Tensor:
    """Return for every row the smallest shift that keeps its entries clear of all points, or the best one there is."""
    ordered = rows.contiguous().sort(1).values
    steps = torch.linspace(0, 1, CANDIDATES + 1, dtype=rows.dtype) ** 2 * REACH
    moves = torch.stack([steps, -steps], 1).flatten()[1:] * size[:, None]
    distance = torch.full_like(moves, float("inf"))
    for point in points:
        above = torch.searchsorted(ordered, point - moves)
        for place in (above.clamp(max=rows.shape[1] - 1), (above - 1).clamp(min=0)):
            distance = torch.minimum(distance, (ordered.gather(1, place) + moves - point).abs())
    clear = distance >= CLEAR * size[:, None]
    chosen = torch.where(clear.any(1), clear.to(torch.int8).argmax(1), distance.argmax(1))
    return moves.gather(1, chosen[:, None]).squeeze(1)

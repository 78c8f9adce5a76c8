"""The geometry of a convolution in two dimensions, and the building blocks of its gradients."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.errors import ExportError
from export.axes import Axis
from export.trace import Trace, Value

__all__ = [
    "ConvWindow",
    "channels_first",
    "pair",
    "padded",
    "shifted_taps",
    "tap_slice",
    "transposed_window",
    "window_of",
]


@dataclass(frozen=True, slots=True)
class ConvWindow:
    """The geometry of a convolution on its traced example."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    inside: tuple[int, int]

    @property
    def outside(self) -> tuple[int, int]:
        """Height and width of the output."""
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        sizes = zip(self.inside, self.padding, spans, self.stride, strict=True)
        first, second = ((size + 2 * pad - span) // step + 1 for size, pad, span, step in sizes)
        return first, second

    @property
    def output_padding(self) -> list[int]:
        """What a transposed convolution must add at the end to restore the input's size."""
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        sizes = zip(self.inside, self.padding, spans, self.stride, strict=True)
        return [(size + 2 * pad - span) % step for size, pad, span, step in sizes]

    @property
    def is_pointwise(self) -> bool:
        """Whether every output position reads exactly its own input position."""
        return self.kernel == self.stride == (1, 1) and self.padding == (0, 0)

    def attributes(self, **more: Any) -> dict[str, Any]:
        """Return the attributes of an ONNX convolution."""
        return {
            "kernel_shape": list(self.kernel),
            "strides": list(self.stride),
            "pads": [*self.padding, *self.padding],
            "dilations": list(self.dilation),
            **more,
        }

    def taps(self) -> Iterator[tuple[int, int]]:
        """Yield the positions of the kernel, row by row."""
        return itertools.product(range(self.kernel[0]), range(self.kernel[1]))


def window_of(
    x: Value, weight: Value, stride: Sequence[int], padding: Sequence[int] | str, dilation: Sequence[int]
) -> ConvWindow:
    """Return the window of a convolution's arguments."""
    if len(x.shape) != 4:
        raise ExportError(
            f"the input of a convolution has shape {x.shape} and is not a batch of images", fix="Give batches."
        )
    height, width = weight.shape[2:]
    if isinstance(padding, str):
        padding = _named_padding(padding, (height, width), pair(dilation))
    return ConvWindow((height, width), pair(stride), pair(padding), pair(dilation), (x.shape[2], x.shape[3]))


def _named_padding(name: str, kernel: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    if name == "valid":
        return 0, 0
    both = [step * (taps - 1) for step, taps in zip(dilation, kernel, strict=True)]
    if any(total % 2 for total in both):
        raise ExportError(
            f"padding 'same' is uneven for a kernel of {kernel}", fix="Use an odd kernel, or pad in a separate layer."
        )
    return both[0] // 2, both[1] // 2


def transposed_window(
    x: Value,
    weight: Value,
    stride: tuple[int, int],
    padding: tuple[int, int],
    extra: tuple[int, int],
    dilation: tuple[int, int],
) -> ConvWindow:
    """Return the window of the convolution that a transposed one undoes."""
    height, width = (
        (n - 1) * s - 2 * p + d * (k - 1) + 1 + e
        for n, s, p, d, k, e in zip(x.shape[2:], stride, padding, dilation, weight.shape[2:], extra, strict=True)
    )
    return ConvWindow((weight.shape[2], weight.shape[3]), stride, padding, dilation, (height, width))


def pair(numbers: Sequence[int]) -> tuple[int, int]:
    """Return two numbers; one may stand for both."""
    first, second = (*numbers, *numbers)[:2]
    return first, second


def padded(t: Trace, x: Value, window: ConvWindow) -> str:
    """Return images with the padding of a convolution around them."""
    if window.padding == (0, 0):
        return x.name
    top, left = window.padding
    return t.emit.one("Pad", x.name, t.emit.integers(0, 0, top, left, 0, 0, top, left))


def tap_slice(t: Trace, padded: str, window: ConvWindow, tap: tuple[int, int]) -> str:
    """Return what one tap of the kernel reads, at every output position."""
    begin = [place * step for place, step in zip(tap, window.dilation, strict=True)]
    steps = window.stride
    ends = [b + s * (n - 1) + 1 for b, s, n in zip(begin, steps, window.outside, strict=True)]
    integers = t.emit.integers
    return t.emit.one("Slice", padded, integers(*begin), integers(*ends), integers(2, 3), integers(*steps))


def shifted_taps(t: Trace, x: Value, window: ConvWindow) -> list[str]:
    """Return what every tap reads, channels first: [channels, samples, height, width]."""
    turned = t.emit.one("Transpose", padded(t, x, window), perm=[1, 0, 2, 3])
    return [tap_slice(t, turned, window, tap) for tap in window.taps()]


def channels_first(t: Trace, name: str, axes: tuple[Axis, ...]) -> str:
    """Return a batch of images as a matrix of channels by everything else."""
    turned = t.emit.one("Transpose", name, perm=[1, 0, 2, 3])
    many: Axis = (*axes[0], *axes[2], *axes[3])
    return t.reshape(turned, (axes[1], axes[0], axes[2], axes[3]), (axes[1], many))

"""The positions of a pool's windows, by PyTorch's rules for padding and ceil_mode."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.errors import ExportError
from export.trace import Value

__all__ = ["PoolWindow", "adaptive_windows", "check_rank", "selected_entries", "windows_of"]


@dataclass(frozen=True, slots=True)
class PoolWindow:
    """The windows along one axis."""

    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    ceil_mode: bool

    @property
    def span(self) -> int:
        """From the first to the last entry of a window."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def count(self) -> int:
        """The number of windows. With ceil_mode the last may reach past the end, but must begin before it."""
        room = self.size + 2 * self.padding - self.span
        if not self.ceil_mode:
            return room // self.stride + 1
        count = -(-room // self.stride) + 1
        return count - 1 if (count - 1) * self.stride >= self.size + self.padding else count

    @property
    def end_padding(self) -> int:
        """The padding at the end that makes all windows fit: ONNX then needs no ceil_mode, nor its rules."""
        return max(0, (self.count - 1) * self.stride + self.span - self.size - self.padding)

    @property
    def are_side_by_side(self) -> bool:
        """Whether they begin at the first entry, touch, and leave at most a remainder at the end."""
        return self.stride == self.kernel and self.padding == self.end_padding == 0 and self.dilation == 1

    @property
    def are_apart(self) -> bool:
        """Whether no entry is in two windows."""
        return self.count == 1 or self.stride >= self.span


def windows_of(
    x: Value,
    dimensions: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[PoolWindow]:
    """Return the windows along every axis after the channels. One number stands for all axes."""
    check_rank(x, dimensions)

    def each(numbers: Sequence[int]) -> list[int]:
        return [*numbers] * (dimensions if len(numbers) == 1 else 1)

    lines = zip(x.shape[2:], each(kernel), each(stride or kernel), each(padding), each(dilation), strict=True)
    return [PoolWindow(*line, ceil_mode) for line in lines]


def adaptive_windows(size: int, count: int) -> list[range]:
    """Return the windows of an adaptive pool along one axis."""
    return [range(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def selected_entries(size: int, count: int) -> list[int]:
    """Return the entries of an adaptive pool's windows, one window after another, all made as long as the longest.

    Shorter ones repeat their last entry, which changes no maximum, nor which entry is the first to have it.
    """
    windows = adaptive_windows(size, count)
    longest = max(len(window) for window in windows)
    return [entry for window in windows for entry in [*window] + [window[-1]] * (longest - len(window))]


def check_rank(x: Value, dimensions: int) -> None:
    """Raise if a tensor is not a batch of channels with as many further axes as are pooled."""
    if len(x.axes) != dimensions + 2:
        raise ExportError(
            f"pooling over {dimensions} axes of a tensor of shape {x.shape}",
            fix="Give it a batch: samples first, then channels.",
        )

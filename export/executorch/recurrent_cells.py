"""The mathematics of recurrent cells on tensors: one step forward, and one step back.

See `export.ops.recurrent_cells` for the notation and the papers. Gates stay side by side in one matrix where they can,
because each operation of a step is compiled as often as there are steps.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from export.executorch.arithmetic import step as positive

__all__ = ["CELLS", "UnrolledCell"]

Tensors = Sequence[Tensor]


class UnrolledCell(Protocol):
    """A kind of recurrent cell."""

    states: int
    """The number of tensors that a step passes to the next; the first is its output."""
    bias_in_loop: bool
    """Whether the bias of the hidden state's share must be added inside the loop."""

    def step(
        self, states: Tensors, x: Tensor, turned: Tensor, bias: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return the states after a step and what the way back needs of it; `turned` is the transposed weight."""
        ...

    def slopes(self, saved: Tensors, before: Tensors, after: Tensors) -> list[Tensor]:
        """Return, for all steps at once, what gradients are multiplied by on the way back."""
        ...

    def step_back(self, grads: Tensors, slopes: Tensors, weight: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the gradient of the hidden state's share of the gates, and those of the states before."""
        ...

    def share_gradient(self, rows: Tensor, seen: Tensors, slopes: Tensors) -> Tensor:
        """Return, for all steps at once, the gradient of the input's share of the gates."""
        ...


class UnrolledLstm:
    """Gates i, f, g, o."""

    states = 2
    bias_in_loop = False

    def step(
        self, states: Tensors, x: Tensor, turned: Tensor, bias: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Run a step."""
        h, c = states
        size = h.shape[1]
        gates = torch.mm(h, turned) + x
        opened = torch.sigmoid(gates)
        i, f, o = (opened[:, place * size : (place + 1) * size] for place in (0, 1, 3))
        g = torch.tanh(gates[:, 2 * size : 3 * size])
        c = f * c + i * g
        shown = torch.tanh(c)
        return (o * shown, c), (opened, g, shown)

    def slopes(self, saved: Tensors, before: Tensors, after: Tensors) -> list[Tensor]:
        """Return how c reacts to h; how i, f, g react to c and o to h; how c reacts to the c after it."""
        opened, g, shown = saved
        size = g.shape[1]
        i, f, o = (opened[:, place * size : (place + 1) * size] for place in (0, 1, 3))
        gates = [g * (i - i * i), before[1] * (f - f * f), i - i * g * g, shown * (o - o * o)]
        return [o - o * shown * shown, torch.cat(gates, 1), f]

    def step_back(self, grads: Tensors, slopes: Tensors, weight: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Run a step back."""
        h, c = grads
        by_h, by_state, forgotten = slopes
        c = c + h * by_h
        gates = torch.cat([c, c, c, h], 1) * by_state
        return gates, [torch.mm(gates, weight), c * forgotten]

    def share_gradient(self, rows: Tensor, seen: Tensors, slopes: Tensors) -> Tensor:
        """Return the gradient of h's share, which is the same, since both are added."""
        return rows


class UnrolledGru:
    """Gates r, z, n."""

    states = 1
    bias_in_loop = True

    def step(
        self, states: Tensors, x: Tensor, turned: Tensor, bias: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Run a step."""
        (h,) = states
        size = h.shape[1]
        share = torch.mm(h, turned)
        share = share if bias is None else share + bias
        q_n = share[:, 2 * size :]
        opened = torch.sigmoid(x[:, : 2 * size] + share[:, : 2 * size])
        r, z = opened[:, :size], opened[:, size:]
        n = torch.tanh(x[:, 2 * size :] + r * q_n)
        return (n + z * (h - n),), (r, z, n, q_n)

    def slopes(self, saved: Tensors, before: Tensors, after: Tensors) -> list[Tensor]:
        """Return how q reacts to h', how the previous state does, and how x_n does."""
        r, z, n, q_n = saved
        by_n = (1 - z) * (1 - n * n)
        gates = [by_n * q_n * (r - r * r), (before[0] - n) * (z - z * z), by_n * r]
        return [torch.cat(gates, 1), z, by_n]

    def step_back(self, grads: Tensors, slopes: Tensors, weight: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Run a step back."""
        (h,) = grads
        by_state, kept, _ = slopes
        gates = torch.cat([h, h, h], 1) * by_state
        return gates, [torch.mm(gates, weight) + h * kept]

    def share_gradient(self, rows: Tensor, seen: Tensors, slopes: Tensors) -> Tensor:
        """Return the gradient: as for h's share for r and z; n sees the input directly and h through r."""
        size = seen[0].shape[1]
        return torch.cat([rows[:, : 2 * size], torch.cat(list(seen)) * slopes[2]], 1)


class UnrolledElman:
    """h' = f(x + q), where f is tanh or ReLU."""

    states = 1
    bias_in_loop = False

    def __init__(self, *, relu: bool) -> None:
        self._relu = relu

    def step(
        self, states: Tensors, x: Tensor, turned: Tensor, bias: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Run a step."""
        gate = torch.mm(states[0], turned) + x
        return (torch.relu(gate) if self._relu else torch.tanh(gate),), ()

    def slopes(self, saved: Tensors, before: Tensors, after: Tensors) -> list[Tensor]:
        """Return how the only gate reacts to h'."""
        (out,) = after
        return [positive(out) if self._relu else 1 - out * out]

    def step_back(self, grads: Tensors, slopes: Tensors, weight: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Run a step back."""
        gate = grads[0] * slopes[0]
        return gate, [torch.mm(gate, weight)]

    def share_gradient(self, rows: Tensor, seen: Tensors, slopes: Tensors) -> Tensor:
        """Return the gradient of h's share, which is the same."""
        return rows


CELLS: dict[str, UnrolledCell] = {
    "lstm": UnrolledLstm(),
    "gru": UnrolledGru(),
    "rnn_tanh": UnrolledElman(relu=False),
    "rnn_relu": UnrolledElman(relu=True),
}

"""LSTM, GRU and plain recurrent layers, unrolled step by step with as few operations as possible.

ExecuTorch programs have no loops, so the operations of a step are repeated for every step, and each costs time to
compile. What can be done for all steps at once is: the input's share of the gates before the steps, the slopes of the
gates before the steps back, the gradients of the weights after them. The equations are those of
`export.ops.recurrent_cells`. Sequences are matrices here, with the rows of one step after those of another.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from edgefl.errors import ExportError
from export.executorch.arithmetic import transposed
from export.executorch.recurrent_cells import CELLS, UnrolledCell

__all__ = ["KINDS", "MOST_STEPS", "recurrent"]

KINDS = tuple(CELLS)
MOST_STEPS = 400
"""Steps of all layers and directions of a module together. Each adds about 25 operations to a program."""


def recurrent(
    kind: str,
    x: Tensor,
    states: Tensor | Sequence[Tensor],
    parameters: Sequence[Tensor],
    has_biases: bool,
    layers: int,
    _dropout: float,
    _train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Return all outputs, then the last states of every layer and direction. The tracer has refused dropout."""
    cell = CELLS[kind]
    steps = x.shape[1 if batch_first else 0]
    _refuse_long(kind, steps, layers * (1 + bidirectional))
    each = 4 if has_biases else 2
    begin = [states] if isinstance(states, Tensor) else list(states)
    out = x.transpose(0, 1) if batch_first else x
    count = out.shape[1]
    rows = out.reshape(steps * count, -1)
    ends: list[list[Tensor]] = []
    for _ in range(layers):
        outputs = []
        for direction in range(1 + bidirectional):
            at = len(ends)
            weights = parameters[at * each : (at + 1) * each]
            sequence, *last = _one_direction(cell, rows, [state[at] for state in begin], weights, steps, direction == 1)
            outputs.append(sequence)
            ends.append(last)
        rows = torch.cat(outputs, 1) if bidirectional else outputs[0]
    out = rows.reshape(steps, count, -1)
    out = out.transpose(0, 1) if batch_first else out
    return out, *(torch.stack([last[place] for last in ends]) for place in range(cell.states))


def _refuse_long(kind: str, steps: int, directions: int) -> None:
    if steps * directions > MOST_STEPS:
        layers = f" in {directions} layers and directions" if directions > 1 else ""
        raise ExportError(
            f"{kind} runs over {steps} steps{layers}; a program has no loops, and would take many minutes to compile",
            fix=f"Give it at most {MOST_STEPS // directions} steps, or train this model with onnxruntime.",
        )


def _one_direction(
    cell: UnrolledCell, rows: Tensor, begin: Sequence[Tensor], weights: Sequence[Tensor], steps: int, reverse: bool
) -> Any:
    by_input, by_hidden, *biases = weights
    share = torch.mm(rows, by_input.t())
    inner = None
    if biases:
        input_bias, hidden_bias = biases
        share = share + (input_bias if cell.bias_in_loop else input_bias + hidden_bias)
        inner = hidden_bias if cell.bias_in_loop else None
    return _Steps.apply(cell, steps, reverse, share, by_hidden, inner, *begin)  # type: ignore[no-untyped-call]


class _Steps(torch.autograd.Function):
    """All steps of one layer in one direction."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: UnrolledCell,
        steps: int,
        reverse: bool,
        share: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *begin: Tensor,
    ) -> tuple[Tensor, ...]:
        """Run the steps in order, or from the last to the first."""
        order = range(steps)[::-1] if reverse else range(steps)
        count = len(share) // steps
        turned, states = transposed(weight), tuple(begin)
        before: dict[int, tuple[Tensor, ...]] = {}
        after: dict[int, tuple[Tensor, ...]] = {}
        saved: dict[int, tuple[Tensor, ...]] = {}
        for at in order:
            before[at] = states
            states, saved[at] = cell.step(states, share[at * count : (at + 1) * count], turned, bias)
            after[at] = states
        ctx.loop = cell, order, count, weight, bias is not None
        ctx.kept = [_rows(before), _rows(after), _rows(saved)] if any(ctx.needs_input_grad) else None
        return torch.cat([after[at][0] for at in range(steps)]), *states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Run the steps back."""
        cell, order, count, weight, biased = ctx.loop
        outer, *grads = gradients
        before, after, saved = ctx.kept
        slopes = cell.slopes(saved, before, after)
        gates: dict[int, Tensor] = {}
        seen: dict[int, Tensor] = {}
        for at in reversed(order):
            part = slice(at * count, (at + 1) * count)
            seen[at] = grads[0] + outer[part]
            gates[at], grads = cell.step_back([seen[at], *grads[1:]], [slope[part] for slope in slopes], weight)
        rows = torch.cat([gates[at] for at in range(len(order))])
        of_share = cell.share_gradient(rows, [seen[at] for at in range(len(order))], slopes)
        return (
            *(None, None, None, of_share, torch.mm(rows.t(), before[0])),
            rows.sum(0) if biased else None,
            *grads,
        )


def _rows(by_step: dict[int, tuple[Tensor, ...]]) -> list[Tensor]:
    """Concatenate what each step had, in the order of the sequence."""
    width = len(by_step[0])
    return [torch.cat([by_step[at][place] for at in range(len(by_step))]) for place in range(width)]

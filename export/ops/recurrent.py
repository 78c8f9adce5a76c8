"""LSTM, GRU and plain recurrent layers, as loops whose size does not grow with the sequence.

One ONNX Scan runs forward and one back, for every layer and direction; `recurrent_cells.py` defines their steps. All
layers and directions of one module share their hidden channels, because torch stacks their states.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.errors import ExportError
from export.axes import Axis, ConstantFactor, unify
from export.constants import accepts_broadcast, expanded
from export.emitter import Emitter
from export.ops.concat_and_slice import cat, select, stack
from export.ops.recurrent_cells import CELLS, Cell
from export.ops.shapes import permute, squeeze, unsqueeze
from export.trace import Trace, Value

__all__ = ["OPERATIONS"]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The parameters of one layer in one direction."""

    by_input: Value
    by_hidden: Value
    input_bias: Value | None
    hidden_bias: Value | None

    @property
    def hidden(self) -> Axis:
        """The hidden channels."""
        return self.by_hidden.axes[1]


def recurrent(
    kind: str,
    t: Trace,
    x: Value,
    states: Value | Sequence[Value],
    parameters: Sequence[Value],
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """All outputs, then the last states of every layer and direction."""
    cell = CELLS[kind]
    _refuse(kind, x, parameters, has_biases, layers * (1 + bidirectional), dropout if train and layers > 1 else 0.0)
    width = 4 if has_biases else 2
    weights = [
        Weights(*parameters[at : at + 2], *(parameters[at + 2 : at + 4] if has_biases else (None, None)))
        for at in range(0, len(parameters), width)
    ]
    out = permute(t, x, [1, 0, 2]) if batch_first else x
    begin = [states] if isinstance(states, Value) else list(states)
    for weight in weights:
        _agree(cell, weight, weights[0].hidden)
    for state in begin:
        unify(state.axes[1], out.axes[1])
        unify(state.axes[2], weights[0].hidden)
    begin = [expanded(t, state) for state in begin]
    ends: list[list[Value]] = []
    for _ in range(layers):
        outputs = []
        for direction in range(1 + bidirectional):
            place = len(ends)
            first = [select(t, state, 0, place) for state in begin]
            sequence, last = _one_direction(t, kind, cell, out, first, weights[place], reverse=direction == 1)
            outputs.append(sequence)
            ends.append(last)
        out = cat(t, outputs, 2) if bidirectional else outputs[0]
    out = permute(t, out, [1, 0, 2]) if batch_first else out
    return out, *(stack(t, [last[i] for last in ends], 0) for i in range(cell.states))


def _refuse(kind: str, x: Value, parameters: Sequence[Value], has_biases: bool, number: int, dropout: float) -> None:
    if len(x.axes) != 3:
        raise ExportError(
            f"a recurrent layer reads a tensor of {len(x.axes)} axes", fix="Give it a batch of sequences: three axes."
        )
    if dropout:
        raise ExportError(
            f"dropout of {dropout} between the layers of one {kind} cannot be exported",
            fix="Use one module per layer, with nn.Dropout between them, or set dropout=0.",
        )
    if len(parameters) != number * (4 if has_biases else 2):
        raise ExportError(f"{kind} with proj_size cannot be exported", fix="Use a linear layer after it instead.")


def _agree(cell: Cell, weights: Weights, hidden: Axis) -> None:
    unify(hidden, weights.hidden)
    gates: Axis = (ConstantFactor(cell.gates), *hidden)
    for value in (weights.by_input, weights.by_hidden, weights.input_bias, weights.hidden_bias):
        if value is not None:
            unify(value.axes[0], gates)


def _one_direction(
    t: Trace, kind: str, cell: Cell, x: Value, begin: Sequence[Value], weights: Weights, *, reverse: bool
) -> tuple[Value, list[Value]]:
    """Return the outputs of all steps, and the last states."""
    unify(weights.by_input.axes[1], x.axes[2])
    steps, batch, hidden = x.axes[0], x.axes[1], weights.hidden
    gates: Axis = (ConstantFactor(cell.gates), *hidden)
    rows = t.reshape(x.name, x.axes, ((*steps, *batch), x.axes[2]))
    bias = _outer_bias(t, cell, weights)
    share = t.emit.one("Gemm", rows, weights.by_input.name, *([bias] if bias else []), transB=1)
    share = t.reshape(share, ((*steps, *batch), gates), (steps, batch, gates))
    inner_bias = weights.hidden_bias.name if weights.hidden_bias and cell.bias_in_loop else ""

    def step(e: Emitter, states: Sequence[str], entry: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        new, saved = cell.step(e, states, entry[0], weights.by_hidden.name, inner_bias)
        return new, [*new, *saved] if t.training else [new[0]]

    names = t.emit.scan([state.name for state in begin], [share], step, reverse=reverse)
    last, after, saved = names[: cell.states], names[cell.states : 2 * cell.states], names[2 * cell.states :]
    parameters = {
        weights.by_input: x.shape[0],
        weights.by_hidden: x.shape[0],
        **{value: 0 for value in (weights.input_bias, weights.hidden_bias) if value is not None},
    }
    out = t.value(after[0], (steps, batch, hidden), x, *begin, *parameters)
    out = t.layer(kind, parameters, [x, *begin], out)
    ends = [t.value(name, (batch, hidden), out) for name in last]
    loop = _Loop(t, cell, x, rows, begin, weights, after, saved, reverse)
    t.backward([out, *ends], loop.backward)
    return out, ends


def _outer_bias(t: Trace, cell: Cell, weights: Weights) -> str:
    if weights.input_bias is None or weights.hidden_bias is None:
        return ""
    if cell.bias_in_loop:
        return weights.input_bias.name
    return t.emit.one("Add", weights.input_bias.name, weights.hidden_bias.name)


@dataclass(frozen=True, slots=True, eq=False)
class _Loop:
    """What the backward loop needs to know of the forward loop."""

    t: Trace
    cell: Cell
    x: Value
    rows: str
    begin: Sequence[Value]
    weights: Weights
    after: Sequence[str]
    saved: Sequence[str]
    reverse: bool

    def backward(self, gradients: Sequence[str | None]) -> None:
        """Emit the backward loop, and the gradients of input, states and weights."""
        t, cell, weights = self.t, self.cell, self.weights
        steps, batch, hidden = self.x.axes[0], self.x.axes[1], weights.hidden
        outer, *ends = gradients
        outer = outer or t.emit.one("ConstantOfShape", t.shape((steps, batch, hidden)))
        ends = [end or t.emit.one("ConstantOfShape", t.shape((batch, hidden))) for end in ends]
        before = [self._before(i) for i in range(cell.states)]
        slopes = cell.slopes(t.emit, self.saved, before, self.after)

        def step(e: Emitter, states: Sequence[str], entries: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
            output = e.one("Add", states[0], entries[0])
            return cell.step_back(e, [output, *states[1:]], entries[1:], weights.by_hidden.name)

        names = t.emit.scan([str(end) for end in ends], [outer, *slopes], step, reverse=not self.reverse)
        for state, grad in zip(self.begin, names, strict=False):
            t.add_gradient(state, grad)
        kept = names[cell.states :]
        gates: Axis = (ConstantFactor(cell.gates), *hidden)
        by_hidden = self._flat(kept[0], gates)
        by_input = self._flat(cell.input_gradient(t.emit, kept, slopes), gates)
        self._weight_gradients(by_input, by_hidden, self._flat(before[0], hidden))
        if self.x.trains:
            grad = t.emit.one("MatMul", by_input, weights.by_input.name)
            t.add_gradient(self.x, t.reshape(grad, ((*steps, *batch), self.x.axes[2]), self.x.axes))

    def _weight_gradients(self, by_input: str, by_hidden: str, before: str) -> None:
        t, weights = self.t, self.weights
        t.add_gradient(weights.by_input, t.emit.one("Gemm", by_input, self.rows, transA=1))
        t.add_gradient(weights.by_hidden, t.emit.one("Gemm", by_hidden, before, transA=1))
        for bias, grad in ((weights.input_bias, by_input), (weights.hidden_bias, by_hidden)):
            if bias is not None:
                t.add_gradient(bias, t.emit.one("ReduceSum", grad, t.emit.integers(0), keepdims=0))

    def _before(self, state: int) -> str:
        """Return the states before every step: those after the steps, shifted by one."""
        t = self.t
        first = t.emit.one("Unsqueeze", self.begin[state].name, t.emit.integers(0))
        length = self.x.shape[0]
        if length == 1:
            return first
        start, end = (1, length) if self.reverse else (0, length - 1)
        integers = t.emit.integers
        moved = t.emit.one("Slice", self.after[state], integers(start), integers(end), integers(0))
        return t.emit.one("Concat", *((moved, first) if self.reverse else (first, moved)), axis=0)

    def _flat(self, name: str, inner: Axis) -> str:
        steps, batch = self.x.axes[:2]
        return self.t.reshape(name, (steps, batch, inner), ((*steps, *batch), inner))


def recurrent_cell(
    kind: str,
    t: Trace,
    x: Value,
    states: Value | Sequence[Value],
    by_input: Value,
    by_hidden: Value,
    input_bias: Value | None = None,
    hidden_bias: Value | None = None,
) -> Value | tuple[Value, ...]:
    """One step, as in the modules nn.LSTMCell and its relatives."""
    biases = [bias for bias in (input_bias, hidden_bias) if bias is not None]
    given = [states] if isinstance(states, Value) else list(states)
    for state in given:
        unify(state.axes[0], x.axes[0])
        unify(state.axes[1], by_hidden.axes[1])
    lifted = [unsqueeze(t, expanded(t, state), 0) for state in given]
    _, *last = recurrent(
        kind, t, unsqueeze(t, x, 0), lifted, [by_input, by_hidden, *biases], bool(biases), 1, 0.0, False, False, False
    )
    ends = tuple(squeeze(t, state, 0) for state in last)
    return ends if len(ends) > 1 else ends[0]


def _bound(operation: Callable[..., Any], kind: str) -> Callable[..., Any]:
    return accepts_broadcast(functools.partial(operation, kind))


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{f"aten.{kind}.input": _bound(recurrent, kind) for kind in CELLS},
    "aten.lstm_cell.default": _bound(recurrent_cell, "lstm"),
    **{f"aten.{kind}_cell.default": _bound(recurrent_cell, kind) for kind in CELLS if kind != "lstm"},
}

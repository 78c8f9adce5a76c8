"""The mathematics of recurrent cells: one step forward, and one step back.

Work that can be done outside the loop is. The input's share of all gates is computed for all steps in one product
before the loop; the slopes of all gates are computed for all steps at once before the backward loop; the backward loop
returns the gradients of the gates, from which the gradients of the weights follow in one product each.

Notation: h is the output of a step, c the memory of an LSTM; x its share of the gates from the input; `saved` are
sequences that the forward loop kept, `before` the states before each step.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from export.emitter import Emitter

__all__ = ["CELLS", "Cell"]


class Cell(Protocol):
    """A kind of recurrent cell."""

    gates: int
    """The number of gates in its weights, concatenated."""
    states: int
    """The number of tensors that a step passes to the next; the first is its output."""
    bias_in_loop: bool
    """Whether the bias of the hidden state's share must be added inside the loop."""

    def step(
        self, e: Emitter, states: Sequence[str], x: str, weight: str, bias: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Emit a step: new states, and what the backward loop needs of it."""
        ...

    def slopes(self, e: Emitter, saved: Sequence[str], before: Sequence[str], after: Sequence[str]) -> list[str]:
        """Emit, for all steps at once, what gradients are multiplied by in the backward loop."""
        ...

    def step_back(
        self, e: Emitter, grads: Sequence[str], slopes: Sequence[str], weight: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Emit a step back: gradients of the states before it; what is kept, the gradient of h's share first."""
        ...

    def input_gradient(self, e: Emitter, kept: Sequence[str], slopes: Sequence[str]) -> str:
        """Emit, for all steps at once, the gradient of the input's share of the gates."""
        ...


def _mul(e: Emitter, *names: str) -> str:
    product = names[0]
    for name in names[1:]:
        product = e.one("Mul", product, name)
    return product


def _rest(e: Emitter, name: str) -> str:
    """1 - a."""
    return e.one("Sub", e.constant(1.0), name)


def _sigmoid_slope(e: Emitter, out: str) -> str:
    return _mul(e, out, _rest(e, out))


def _tanh_slope(e: Emitter, out: str) -> str:
    return _rest(e, _mul(e, out, out))


class Lstm:
    """Gates i, f, g, o: c' = f c + i g, h' = o tanh(c'). Hochreiter and Schmidhuber, 1997; gates in torch's order."""

    gates = 4
    states = 2
    bias_in_loop = False

    def step(
        self, e: Emitter, states: Sequence[str], x: str, weight: str, bias: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Emit a step."""
        h, c = states
        parts = e.node("Split", [e.one("Gemm", h, weight, x, transB=1)], outputs=4, axis=1, num_outputs=4)
        kinds = ("Sigmoid", "Sigmoid", "Tanh", "Sigmoid")
        i, f, g, o = (e.one(kind, part) for kind, part in zip(kinds, parts, strict=True))
        memory = e.one("Add", _mul(e, f, c), _mul(e, i, g))
        shown = e.one("Tanh", memory)
        return [_mul(e, o, shown), memory], [i, f, g, o, shown]

    def slopes(self, e: Emitter, saved: Sequence[str], before: Sequence[str], after: Sequence[str]) -> list[str]:
        """Emit how c and o react to h, then i, f, g to c; and how c reacts to the c after it."""
        i, f, g, o, shown = saved
        return [
            _mul(e, o, _tanh_slope(e, shown)),
            _mul(e, shown, _sigmoid_slope(e, o)),
            _mul(e, g, _sigmoid_slope(e, i)),
            _mul(e, before[1], _sigmoid_slope(e, f)),
            _mul(e, i, _tanh_slope(e, g)),
            f,
        ]

    def step_back(
        self, e: Emitter, grads: Sequence[str], slopes: Sequence[str], weight: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Emit a step back."""
        h, c = grads
        by_h, o, i, f, g, forgotten = slopes
        c = e.one("Add", c, _mul(e, h, by_h))
        gates = e.one("Concat", _mul(e, c, i), _mul(e, c, f), _mul(e, c, g), _mul(e, h, o), axis=1)
        return [e.one("MatMul", gates, weight), _mul(e, c, forgotten)], [gates]

    def input_gradient(self, e: Emitter, kept: Sequence[str], slopes: Sequence[str]) -> str:
        """Return the gradient of h's share, which is the same, since both are added."""
        return kept[0]


class Gru:
    """Gates r, z, n: n = tanh(x_n + r q_n), h' = (1 - z) n + z h, where q is h's share. Cho et al., 2014."""

    gates = 3
    states = 1
    bias_in_loop = True

    def step(
        self, e: Emitter, states: Sequence[str], x: str, weight: str, bias: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Emit a step."""
        h = states[0]
        share = e.one("Gemm", h, weight, *([bias] if bias else []), transB=1)
        x_r, x_z, x_n = e.node("Split", [x], outputs=3, axis=1, num_outputs=3)
        q_r, q_z, q_n = e.node("Split", [share], outputs=3, axis=1, num_outputs=3)
        r = e.one("Sigmoid", e.one("Add", x_r, q_r))
        z = e.one("Sigmoid", e.one("Add", x_z, q_z))
        n = e.one("Tanh", e.one("Add", x_n, _mul(e, r, q_n)))
        return [e.one("Add", n, _mul(e, z, e.one("Sub", h, n)))], [r, z, n, e.one("Identity", q_n)]

    def slopes(self, e: Emitter, saved: Sequence[str], before: Sequence[str], after: Sequence[str]) -> list[str]:
        """Emit how x_n, r, z, q_n and the previous state react to h'."""
        r, z, n, q_n = saved
        by_n = _mul(e, _rest(e, z), _tanh_slope(e, n))
        by_z = _mul(e, e.one("Sub", before[0], n), _sigmoid_slope(e, z))
        return [by_n, _mul(e, by_n, q_n, _sigmoid_slope(e, r)), by_z, _mul(e, by_n, r), z]

    def step_back(
        self, e: Emitter, grads: Sequence[str], slopes: Sequence[str], weight: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Emit a step back."""
        h = grads[0]
        _, r, z, q_n, kept = slopes
        gates = e.one("Concat", _mul(e, h, r), _mul(e, h, z), _mul(e, h, q_n), axis=1)
        return [e.one("Gemm", gates, weight, _mul(e, h, kept))], [gates, e.one("Identity", h)]

    def input_gradient(self, e: Emitter, kept: Sequence[str], slopes: Sequence[str]) -> str:
        """Emit the gradient: as for h's share for r and z; n sees the input directly and h through r."""
        h = kept[1]
        by_n, r, z, _, _ = slopes
        return e.one("Concat", _mul(e, h, r), _mul(e, h, z), _mul(e, h, by_n), axis=2)


class Elman:
    """h' = f(x + q), where f is tanh or ReLU."""

    gates = 1
    states = 1
    bias_in_loop = False

    def __init__(self, kind: str, slope: Callable[[Emitter, str], str]) -> None:
        self._kind = kind
        self._slope = slope

    def step(
        self, e: Emitter, states: Sequence[str], x: str, weight: str, bias: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Emit a step."""
        return [e.one(self._kind, e.one("Gemm", states[0], weight, x, transB=1))], []

    def slopes(self, e: Emitter, saved: Sequence[str], before: Sequence[str], after: Sequence[str]) -> list[str]:
        """Emit how the only gate reacts to h'."""
        return [self._slope(e, after[0])]

    def step_back(
        self, e: Emitter, grads: Sequence[str], slopes: Sequence[str], weight: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Emit a step back."""
        gate = _mul(e, grads[0], slopes[0])
        return [e.one("MatMul", gate, weight)], [gate]

    def input_gradient(self, e: Emitter, kept: Sequence[str], slopes: Sequence[str]) -> str:
        """Return the gradient of h's share, which is the same."""
        return kept[0]


def _relu_slope(e: Emitter, out: str) -> str:
    return e.one("Cast", e.one("Greater", out, e.constant(0.0)), to=1)


CELLS: dict[str, Cell] = {
    "lstm": Lstm(),
    "gru": Gru(),
    "rnn_tanh": Elman("Tanh", _tanh_slope),
    "rnn_relu": Elman("Relu", _relu_slope),
}

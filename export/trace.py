"""The state of a trace: values, gradients and layers, while a model is traced operation by operation.

An operation (see `export.ops`) gets the trace and its arguments. It states which axes must agree, emits its forward
nodes, and registers a function that will emit its backward nodes. `trace_model.py` drives it; `training_graph.py` and
`describe_graph.py` read the result.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.errors import ExportError
from export.axes import Axis, BatchFactor, ChannelFactor, ConcatFactor, ConstantFactor, axis_size, resolve
from export.emitter import Emitter, Shape

__all__ = ["INPUT", "LayerRecord", "Trace", "Value", "declared_shape", "is_constant", "layer_name"]

INPUT = ""
"""Stands for the model's input among the layers that a value depends on; no layer has this name."""

Backward = Callable[[Sequence[str | None]], None]


@dataclass(eq=False, slots=True)
class Value:
    """A tensor of the graph."""

    name: str
    """Its name in the ONNX graph."""
    axes: tuple[Axis, ...]
    dtype: str = "float32"
    trains: bool = False
    """Whether it needs a gradient: it depends on some parameter."""
    layers: tuple[str, ...] = ()
    """The layers with parameters from whose outputs it was computed."""
    parameter: str | None = None
    """Its name in the model, if it is a parameter or a buffer."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in the traced example."""
        return tuple(axis_size(axis) for axis in self.axes)


@dataclass(eq=False, slots=True)
class LayerRecord:
    """A use of parameters, from which a layer of the model graph is made."""

    kind: str
    uses: dict[str, int]
    """Multiply-adds of each entry of each parameter for one sample."""
    inputs: tuple[str, ...]
    output: Value
    products: list[tuple[int, tuple[Axis, ...]]] = field(default_factory=list)


class Trace:
    """Everything that an operation may use."""

    def __init__(self, *, training: bool) -> None:
        self.training = training
        self.emit = Emitter()
        self.batch_of: str = "x"
        """The input whose first axis is the batch."""
        self.batch_size = 1
        """The number of samples of the traced example; no other size of the model is a multiple of it."""
        self.records: dict[str, LayerRecord] = {}
        self.inputs: dict[str, tuple[str, Shape]] = {}
        """Further inputs of the graph that operations need: name -> (dtype, shape)."""
        self.statistics: dict[str, Value] = {}
        """New values of running statistics, by the name of the buffer."""
        self.rectified: dict[Value, Value] = {}
        """Values before a ReLU, by the value after it: a pool may come first, see `export.ops.pooling`."""
        self._numbers: dict[str, int] = {}
        self._tape: list[tuple[tuple[Value, ...], Backward]] = []
        self._gradients: dict[Value, list[str]] = {}

    # Values

    def value(self, name: str, axes: Sequence[Axis], *sources: Value, dtype: str = "float32") -> Value:
        """Return a value that was computed from others."""
        layers = tuple(dict.fromkeys(layer for source in sources for layer in source.layers))
        return Value(name, tuple(axes), dtype, any(source.trains for source in sources), layers)

    def layer(
        self,
        kind: str,
        parameters: Mapping[Value, int],
        inputs: Sequence[Value],
        output: Value,
        products: Sequence[tuple[int, tuple[Axis, ...]]] = (),
    ) -> Value:
        """Record that an operation used parameters (with the multiply-adds of each entry), and return its output."""
        uses = {value.parameter: count for value, count in parameters.items() if value.parameter is not None}
        if not uses:
            return output
        name = layer_name(next(iter(uses)))
        before = tuple(dict.fromkeys(layer for value in inputs for layer in value.layers))
        if name in self.records:  # a module that is called twice, or whose parameters are used one by one
            record = self.records[name]
            for key, count in uses.items():
                record.uses[key] = record.uses.get(key, 0) + count
            # Only what comes before its first use: layers are in the order of the forward pass.
            earlier = list(itertools.takewhile(lambda other: other != name, self.records))
            record.inputs = tuple(dict.fromkeys([*record.inputs, *(layer for layer in before if layer in earlier)]))
            record.output = output
            record.products.extend(products)
        else:
            self.records[name] = LayerRecord(kind, uses, before, output, list(products))
        output.layers = (name,)
        return output

    def number(self, kind: str) -> int:
        """Number the things of a kind in the order of the forward pass: 0, 1, 2, ..."""
        number = self._numbers.get(kind, 0)
        self._numbers[kind] = number + 1
        return number

    def product(self, inputs: Sequence[Value], times: int, axes: Sequence[Axis]) -> None:
        """Record multiply-adds between activations: `times` for each entry of some axes.

        They belong to no parameter, so they are counted with the last layer before them.
        """
        before = {layer for value in inputs for layer in value.layers}
        for name in reversed(self.records):
            if name in before:
                self.records[name].products.append((times, tuple(axes)))
                return

    # Gradients

    def backward(self, outputs: Value | Sequence[Value], step: Backward) -> None:
        """Register how the gradients of the outputs become gradients of the inputs.

        The step gets one name for each output, None where no gradient arrived. It runs only if one did.
        """
        several = (outputs,) if isinstance(outputs, Value) else tuple(outputs)
        if any(output.trains for output in several):
            self._tape.append((several, step))

    def add_gradient(self, value: Value, gradient: str) -> None:
        """Add to the gradient of a value, if it needs one."""
        if value.trains:
            self._gradients.setdefault(value, []).append(gradient)

    def gradient(self, value: Value) -> str | None:
        """Return the complete gradient of a value, after everything that reads it has run backward."""
        parts = self._gradients.get(value)
        if not parts:
            return None
        if len(parts) > 1:
            self._gradients[value] = [self.emit.one("Sum" if len(parts) > 2 else "Add", *parts)]
        return self._gradients[value][0]

    def run_backward(self) -> None:
        """Emit the backward pass, from the last operation to the first."""
        for outputs, step in reversed(self._tape):
            gradients = [self.gradient(output) for output in outputs]
            if any(gradient is not None for gradient in gradients):
                step(gradients)

    # Shapes

    def size(self, axis: Axis) -> str:
        """Return the name of a list of one whole number: the size of an axis when the graph runs."""
        factors = resolve(axis)
        names = [self._factor_size(factor) for factor in factors] or [self.emit.integers(1)]
        size = names[0]
        for name in names[1:]:
            size = self.emit.one("Mul", size, name)
        return size

    def shape(self, axes: Sequence[Axis]) -> str:
        """Return the name of a shape, computed when the graph runs where necessary."""
        if all(is_constant(axis) for axis in axes):
            return self.emit.integers(*(axis_size(axis) for axis in axes))
        return self.emit.one("Concat", *(self.size(axis) for axis in axes), axis=0)

    def reshape(self, name: str, old: Sequence[Axis], new: Sequence[Axis]) -> str:
        """Reshape from the old axes to the new ones."""
        sizes: list[int | None] = []
        for place, axis in enumerate(new):
            if is_constant(axis):
                sizes.append(axis_size(axis))
            elif place < len(old) and resolve(old[place]) == resolve(axis):
                sizes.append(0)  # ONNX: copy this size from the input
            else:
                sizes.append(None)
        if sizes.count(None) > 1:
            return self.emit.one("Reshape", name, self.shape(new))
        return self.emit.one("Reshape", name, self.emit.integers(*(-1 if size is None else size for size in sizes)))

    def _factor_size(self, factor: ConstantFactor | BatchFactor | ChannelFactor | ConcatFactor) -> str:
        match factor:
            case ConstantFactor():
                return self.emit.integers(factor.size)
            case BatchFactor():
                return self.emit.one("Shape", self.batch_of, start=0, end=1)
            case ConcatFactor():
                sizes = [self.size(part) for part in factor.parts]
                return self.emit.one("Sum", *sizes) if len(sizes) == 1 else self._added(sizes)
            case ChannelFactor():
                if factor.source is None:
                    raise ExportError(
                        f"the width of {factor.size} channels is not known from any parameter",
                        fix="Reshape with -1 along that axis, or use a layer with parameters before it.",
                    )
                tensor, axis, divisor = factor.source
                size = self.emit.one("Shape", tensor, start=axis, end=axis + 1)
                return size if divisor == 1 else self.emit.one("Div", size, self.emit.integers(divisor))

    def _added(self, names: Sequence[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = self.emit.one("Add", total, name)
        return total


def is_constant(axis: Axis) -> bool:
    """Return whether an axis has the same size in every submodel and batch."""
    return all(isinstance(factor, ConstantFactor) for factor in resolve(axis))


def layer_name(parameter: str) -> str:
    """Return the name of the layer that a parameter belongs to: its module, or itself at the top of the model."""
    return parameter.rpartition(".")[0] or parameter


def declared_shape(value: Value) -> list[int | str]:
    """Return a shape as ONNX declares it: constants as numbers, the batch and channels by name."""
    return [_dimension(value, place, axis) for place, axis in enumerate(value.axes)]


def _dimension(value: Value, place: int, axis: Axis) -> int | str:
    if is_constant(axis):
        return value.shape[place]
    factors = resolve(axis)
    if len(factors) == 1 and isinstance(factors[0], ChannelFactor) and factors[0].source is not None:
        # Axes of one group get one name, to show what belongs together.
        tensor, source, divisor = factors[0].source
        return f"{tensor}.{source}" if divisor == 1 else f"{tensor}.{source}/{divisor}"
    if factors and all(isinstance(factor, BatchFactor) for factor in factors):
        return "batch"
    return f"{value.name}.{place}"

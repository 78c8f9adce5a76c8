"""A submodel as a list of operations: those that the ONNX exporter traced, at the widths of a mask.

Programs are made from it rather than from the model's own code, which may know its widths as numbers: heads of an
attention, a checked embedding size, a reshape. It computes what the model's ONNX graph computes at that mask, with the
same dropouts, and knows which module each operation came from.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn

from edgefl.errors import EdgeFLError, ExportError
from edgefl.masks import Mask, Weights
from export.executorch.quiet_output import first_line
from export.executorch.resizing import RESIZED, Call, call, run
from export.executorch.sizes import Sizes
from export.executorch.submodel import kept_tensors
from export.trace import Value
from export.trace_model import TracedModel, source_module, trace_model

__all__ = ["TracedSubmodel", "traced_submodel"]

aten = torch.ops.aten


def traced_submodel(
    model: nn.Module, example: Tensor, mask: Mask, weights: Weights | None = None, *, training: bool
) -> "TracedSubmodel":
    """Trace a model and return its submodel, to train or to predict with, for batches of the example's size.

    Without weights its parameters have shapes but no values, which is enough for compiling. The model is not changed.
    """
    stored, part = kept_tensors(model, mask, weights)
    with _modes_kept(model):
        traced = trace_model(model, example, training=training)
    trains = {name for name, tensor in stored.items() if isinstance(tensor, nn.Parameter)}
    return TracedSubmodel(traced, part, trains, len(example)).train(training)


class TracedSubmodel(nn.Module):
    """Runs traced operations one by one. Its tensors have the names that they have in the model."""

    def __init__(self, traced: TracedModel, tensors: Mapping[str, Tensor], parameters: set[str], batch: int) -> None:
        super().__init__()
        self._traced = traced
        self._sizes = Sizes({name: tuple(tensor.shape) for name, tensor in tensors.items()}, batch)
        for name, tensor in tensors.items():
            _store(self, name, nn.Parameter(tensor, tensor.is_floating_point()) if name in parameters else tensor)
        dropping = [node for node in traced.program.graph.nodes if _drops(node)]
        self._dropouts = {node: number for number, node in enumerate(dropping)}
        self._overrides: dict[fx.Node, Callable[[Call], Any]] = {}
        self._running: fx.Node | None = None

    @property
    def operations(self) -> Iterator[fx.Node]:
        """The operations that it runs, in order."""
        for node in self._traced.program.graph.nodes:
            if node.op == "call_function" and node not in self._traced.constants:
                yield node

    def override(self, node: fx.Node, function: Callable[[Call], Any]) -> None:
        """Run something else in place of an operation."""
        self._overrides[node] = function

    def module_of(self, node: fx.Node) -> str:
        """Name the module that an operation comes from: "'conv1' (Conv2d)"."""
        return source_module(node)

    def name_of(self, node: Any) -> str | None:
        """Return the name of the tensor of the model that a node stands for, if it does."""
        value = self._traced.values.get(node) if isinstance(node, fx.Node) and node.op == "placeholder" else None
        return value.parameter if isinstance(value, Value) else None

    def uses_of(self, node: fx.Node) -> int:
        """Return how often a tensor of the model is read, by whatever name."""
        name = self.name_of(node)
        return sum(len(other.users) for other in self._traced.program.graph.nodes if self.name_of(other) == name)

    def tensor(self, name: str) -> Any:
        """Return a tensor of the model."""
        path, _, last = name.rpartition(".")
        return getattr(self.get_submodule(path), last)

    def replace_tensor(self, name: str, tensor: Tensor) -> None:
        """Replace a tensor of the model by a constant of its own, or add one."""
        path, _, last = name.rpartition(".")
        module = self.get_submodule(path)
        if last in module._parameters:
            del module._parameters[last]
        module.register_buffer(last, tensor)

    @property
    def draws(self) -> bool:
        """Whether it has dropouts, which draw from a seed."""
        return bool(self._dropouts)

    @property
    def running(self) -> str:
        """The module whose operation is running, or ran last: "module 'conv1' (Conv2d)"."""
        return "the model" if self._running is None else f"module {source_module(self._running)}"

    def forward(self, x: Tensor, seed: Tensor | None = None) -> Any:
        """Run the operations. Without a seed, nothing is dropped."""
        values: dict[fx.Node, Any] = {}
        for node in self._traced.program.graph.nodes:
            if node.op == "output":
                return next(values[inner] for inner in node.all_input_nodes if self._is_result(inner))
            self._running = node
            traced = self._traced.values.get(node)
            if node.op == "call_function" and node not in self._traced.constants:
                values[node] = self._run(node, values, seed)
                self._check(node, values[node])
            elif isinstance(traced, Value):
                values[node] = x if traced is self._traced.input else self.tensor(traced.name)
        raise AssertionError  # every exported graph ends with an output

    def _is_result(self, node: fx.Node) -> bool:
        return self._traced.values.get(node) is self._traced.output

    def _run(self, node: fx.Node, values: Mapping[fx.Node, Any], seed: Tensor | None) -> Any:
        def given(source: fx.Node) -> Any:
            return self._constant(node, source) if source in self._traced.constants else values[source]

        args, kwargs = fx.map_arg((node.args, node.kwargs), given)
        assert callable(node.target)
        try:
            if node.target not in RESIZED and node not in self._overrides:
                return node.target(*args, **kwargs)
            axes = fx.map_arg(node.args, self._traced.values.get)
            more = {"out": self._traced.values[node], "sizes": self._sizes}
            made = call(node, args, kwargs, axes, dropout=self._dropouts.get(node), seed=seed, **more)
            return self._overrides.get(node, run)(made)
        except EdgeFLError as error:
            raise ExportError(f"{self.running}: {error.problem}", fix=error.fix) from error
        except Exception as error:
            raise ExportError(
                f"{node.target} in {self.running} cannot run at the widths of the mask: {first_line(error)}",
                fix="Keep the channels of that module whole, or train this model with onnxruntime.",
            ) from error

    def _constant(self, node: fx.Node, source: fx.Node) -> Any:
        """Return a constant in the shape that it has where it is used."""
        tensor = self._traced.constants[source]
        used = self._traced.constant_uses.get((node, source))
        if used is None or not isinstance(tensor, Tensor):
            return tensor
        for place, (before, now) in enumerate(zip(tensor.shape, self._sizes.shape(used), strict=True)):
            if before != now:  # only repeated entries are ever resized
                tensor = tensor.narrow(place, 0, 1)
        return tensor.expand(self._sizes.shape(used))

    def _check(self, node: fx.Node, result: Any) -> None:
        expected = self._traced.values[node]
        if isinstance(result, Tensor) and isinstance(expected, Value):
            shape = self._sizes.shape(expected)
            if tuple(result.shape) != shape:
                raise ExportError(
                    f"{node.target} in {self.running} returns {tuple(result.shape)} where the ONNX graph has {shape}",
                    fix="Report this model, and train it with onnxruntime meanwhile.",
                )


def _drops(node: fx.Node) -> bool:
    """Return whether an operation is a dropout that drops: the ONNX graph numbers the same ones."""
    if node.target is aten.scaled_dot_product_attention.default:
        return bool(node.kwargs.get("dropout_p", node.args[4] if len(node.args) > 4 else 0.0))
    if node.op != "call_function" or "dropout" not in str(node.target):
        return False
    _, p, train = node.args
    return bool(train and p)


def _store(module: nn.Module, name: str, tensor: Tensor) -> None:
    *path, last = name.split(".")
    for part in path:
        if part not in dict(module.named_children()):
            module.add_module(part, nn.Module())
        module = module.get_submodule(part)
    if isinstance(tensor, nn.Parameter):
        module.register_parameter(last, tensor)
    else:
        module.register_buffer(last, tensor)


@contextmanager
def _modes_kept(model: nn.Module) -> Iterator[None]:
    """Put modules back into the mode that they were in."""
    modes = {module: module.training for module in model.modules()}
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode

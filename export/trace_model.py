"""Traces a torch model, operation by operation, and emits each into the trace.

torch.export returns the model as a list of ATen operations with the module each came from. Everything else happens in
`export.ops`: this file looks operations up, passes them their arguments, and turns any failure into an error that names
the operation and the module.
"""

import itertools
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.export.graph_signature import InputKind
from torch.nn.modules import transformer

from edgefl.errors import EdgeFLError, ExportError
from export.axes import Axis, BatchFactor, ChannelFactor, ConstantFactor
from export.constants import accepts_broadcast_constants, computed, constant_value, expanded, is_computable
from export.ops import OPERATIONS
from export.trace import INPUT, Trace, Value

__all__ = ["TracedModel", "source_module", "trace_model"]

_INPUTS = ("x", "y", "seed", "label_mask")
"""Inputs of a training graph that are no tensors of the model."""
_DTYPES = {torch.float32: "float32", torch.int64: "int64", torch.bool: "bool"}


@dataclass(frozen=True, slots=True, eq=False)
class TracedModel:
    """A model that was traced to its output."""

    trace: Trace
    input: Value
    output: Value
    parameters: dict[str, Value]
    buffers: dict[str, Value]
    program: torch.export.ExportedProgram
    """The operations that were traced."""
    values: dict[fx.Node, Any]
    """What each operation returned: a value or several."""
    constants: dict[fx.Node, Any]
    """What torch computed while tracing: tensors that depend on no parameter or sample."""
    constant_uses: dict[tuple[fx.Node, fx.Node], Value]
    """The constants that operations read, by operation and constant: their axes are those that they met there."""


def trace_model(model: nn.Module, example: torch.Tensor, *, training: bool) -> TracedModel:
    """Trace a model on an example batch. The batch size and the channels stay free; other sizes are the example's."""
    example = _with_distinct_batch_size(model, example)
    program = _exported(model, example, training)
    trace = Trace(training=training)
    trace.batch_size = len(example)
    values: dict[fx.Node, Any] = {}
    constants: dict[fx.Node, Any] = {}
    uses: dict[tuple[fx.Node, fx.Node], Value] = {}
    parameters: dict[str, Value] = {}
    buffers: dict[str, Value] = {}
    first_names = _first_names(model)
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    source = Value("x", _input_axes(example), _dtype(example), layers=(INPUT,))
    result: Value | None = None
    for node in program.graph.nodes:
        spec = specs.get(node.name)
        if spec is not None and spec.kind is InputKind.USER_INPUT:
            values[node] = source
        elif spec is not None and (spec.kind is InputKind.CONSTANT_TENSOR or node.meta["val"].dtype is torch.bool):
            constants[node] = _constant(program, str(spec.target))
        elif spec is not None:
            target = _tensor_name(first_names.get(str(spec.target), str(spec.target)))
            trains = spec.kind is InputKind.PARAMETER
            kept = parameters if trains else buffers
            values[node] = kept.get(target) or _stored(target, node.meta["val"], trains)
            kept[target] = values[node]
        elif node.op == "call_function" and is_computable(node, constants):
            constants[node] = computed(node, constants)
        elif node.op == "call_function":
            values[node] = _call(trace, node, values, constants, uses)
        elif node.op == "output":
            result = _output(node, values, program)
    assert result is not None  # every exported graph has an output node
    return TracedModel(trace, source, result, parameters, buffers, program, values, constants, uses)


def _with_distinct_batch_size(model: nn.Module, example: torch.Tensor) -> torch.Tensor:
    """Return a batch whose size is a prime that divides no size of the model, to tell it apart from them."""
    stored = itertools.chain(model.parameters(), model.buffers())
    sizes = {*example.shape[1:], *(size for tensor in stored for size in tensor.shape)} - {0}
    primes = (number for number in itertools.count(211, 2) if all(number % d for d in range(3, number, 2)))
    batch = next(number for number in primes if all(size % number for size in sizes))
    return example.new_zeros((batch, *example.shape[1:]))


def _first_names(model: nn.Module) -> dict[str, str]:
    """Return the first name of every parameter: tied ones have several names and are one tensor."""
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    return {name: first[id(p)] for name, p in model.named_parameters(remove_duplicate=False)}


def _tensor_name(name: str) -> str:
    """Return the name of a parameter or buffer, which becomes that of an input; refuse names of other inputs."""
    if name in _INPUTS:
        raise ExportError(
            f"the model has a tensor named {name!r}, which is the name of another input of the graph",
            fix=f"Rename it; {', '.join(_INPUTS)} are taken.",
        )
    return name


def _constant(program: torch.export.ExportedProgram, name: str) -> torch.Tensor:
    stored = program.constants.get(name, program.state_dict.get(name))
    assert isinstance(stored, torch.Tensor)
    return stored.clone()


def _refuse_hidden_write(node: fx.Node) -> None:
    """Refuse an in-place write that older tensors see too: operations here are functions of their arguments."""
    if not getattr(getattr(node.target, "_schema", None), "is_mutable", False):
        return
    order = {other: place for place, other in enumerate(node.graph.nodes)}
    storage = node.meta["val"].untyped_storage()._cdata
    for older in itertools.takewhile(lambda other: other is not node, node.graph.nodes):
        tensor = older.meta.get("val")
        shared = isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata == storage
        if shared and any(order[user] > order[node] for user in older.users):
            raise ExportError(
                f"{node.target} in module {source_module(node)} writes into a tensor that is read again later",
                fix="Write it without changing a tensor in place, with torch.cat, torch.where or arithmetic.",
            )


def _exported(model: nn.Module, example: torch.Tensor, training: bool) -> torch.export.ExportedProgram:
    model = model.train(training)
    logger = logging.getLogger("torch.export")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), _plain_transformers():
            warnings.simplefilter("ignore")
            return torch.export.export(model, (example,))
    except Exception as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ExportError(
            f"torch.export cannot trace {type(model).__name__}: {first_line}",
            fix="Remove control flow that depends on data from its forward method; see torch.export's documentation.",
        ) from error
    finally:
        logger.setLevel(level)


@contextmanager
def _plain_transformers() -> Iterator[None]:
    """Let torch's own transformers compute step by step, and take masks as they are.

    In inference they would call one fused operation; and an encoder compares its mask with a causal one, to call a
    faster kernel, which cannot be traced.
    """
    fast, guess = torch.backends.mha.get_fastpath_enabled(), transformer._detect_is_causal_mask
    torch.backends.mha.set_fastpath_enabled(False)
    transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: is_causal is True
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        transformer._detect_is_causal_mask = guess


def _input_axes(example: torch.Tensor) -> tuple[Axis, ...]:
    batch, *rest = example.shape
    return ((BatchFactor(batch),), *((ConstantFactor(size),) for size in rest))


def _stored(name: str, tensor: torch.Tensor, trains: bool) -> Value:
    axes = tuple((ChannelFactor(size, (name, place, 1)),) for place, size in enumerate(tensor.shape))
    return Value(name, axes, _dtype(tensor), trains and tensor.is_floating_point(), parameter=name)


def _dtype(tensor: torch.Tensor) -> str:
    if tensor.dtype not in _DTYPES:
        raise ExportError(
            f"a tensor of the model is of dtype {tensor.dtype}", fix=f"Use one of {', '.join(map(str, _DTYPES))}."
        )
    return _DTYPES[tensor.dtype]


def _call(
    trace: Trace,
    node: fx.Node,
    values: dict[fx.Node, Any],
    constants: dict[fx.Node, Any],
    uses: dict[tuple[fx.Node, fx.Node], Value],
) -> Any:
    operation = OPERATIONS.get(str(node.target))
    if operation is None:
        raise ExportError(
            f"the operation {node.target} in module {source_module(node)} cannot be exported",
            fix="Write it with supported operations, or register a lowering for it in export.ops.",
        )
    _refuse_hidden_write(node)

    def given(source: fx.Node) -> Any:
        if source not in constants:
            return values[source]
        made = constant_value(trace, constants[source], _dtype(constants[source]))
        uses[node, source] = made if accepts_broadcast_constants(operation) else expanded(trace, made)
        return uses[node, source]

    try:
        args, kwargs = fx.map_arg((node.args, node.kwargs), given)
        return operation(trace, *args, **kwargs)
    except EdgeFLError as error:
        raise ExportError(f"{node.target} in module {source_module(node)}: {error.problem}", fix=error.fix) from error


def source_module(node: fx.Node) -> str:
    """Name the module that an operation comes from: "'conv1' (Conv2d)"."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    if not stack:
        return "the model"
    path, kind = stack[-1]
    kind = kind if isinstance(kind, str) else kind.__name__
    return f"{path!r} ({kind.rpartition('.')[2]})" if path else f"the model itself ({kind.rpartition('.')[2]})"


def _output(node: fx.Node, values: dict[fx.Node, Any], program: torch.export.ExportedProgram) -> Value:
    users = [spec.arg.name for spec in program.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    found = [inner for inner in node.all_input_nodes if inner.name in users]
    if len(found) != 1 or not isinstance(values.get(found[0]), Value):
        raise ExportError(
            f"the model returns {len(found)} tensors",
            fix="Return one tensor from forward: the logits or the prediction.",
        )
    value = values[found[0]]
    assert isinstance(value, Value)
    return value

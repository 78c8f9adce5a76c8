"""The only file that calls ExecuTorch's exporter: from a graph of torch operations to the bytes of a program.

ExecuTorch is imported inside functions: that takes seconds, prints to stderr, and is not needed to import this package.
"""

import copy
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree

from edgefl.errors import EdgeFLError, ExportError, MissingDependencyError
from export.executorch.quiet_output import first_line, quiet

__all__ = ["CompiledProgram", "PortableGraph", "compile_delegated", "lower_portable", "quantised"]

FindModule = Callable[[str], str]
"""Names the module of the user's model that an operation comes from."""


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """The bytes of a program, and the memory that it plans for what it computes."""

    pte: bytes
    peak_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class PortableGraph:
    """A graph in the operations of ExecuTorch's own kernels. Lowering it takes most of the time of a compilation, and
    programs that return only some of its outputs share it."""

    edge: Any

    def compiled(self, outputs: Collection[int] | None = None) -> CompiledProgram:
        """Compile the part that computes these outputs, by position; all of them if none are named."""
        return _finished(_with_outputs(self.edge, outputs))


def lower_portable(graph: fx.GraphModule, examples: Sequence[Tensor], find_module: FindModule) -> PortableGraph:
    """Lower a graph of core operations for ExecuTorch's own kernels."""

    def build() -> Any:
        from executorch.exir import to_edge

        # All tensors are contiguous, so operations that know orders of axes would only cost passes.
        return to_edge(torch.export.export(graph, tuple(examples)), compile_config=_config(_skip_dim_order=True))

    return PortableGraph(_lowered(build, find_module))


def compile_delegated(model: nn.Module, examples: Sequence[Tensor], find_module: FindModule) -> bytes:
    """Compile a model for XNNPACK; ExecuTorch's own kernels run what XNNPACK does not support."""

    def build() -> Any:
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
            XnnpackPartitioner,
        )
        from executorch.exir import to_edge_transform_and_lower

        exported = torch.export.export(model, tuple(examples))
        return to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()], compile_config=_config())

    return _finished(_lowered(build, find_module)).pte


def quantised(model: nn.Module, calibration: Tensor, sample: Tensor) -> nn.Module:
    """Return a model whose convolutions and linear layers use 8-bit integers, as XNNPACK expects them.

    The model is for batches of the size of `sample`; ranges of activations are those seen on the calibration samples.
    """
    with quiet():
        from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
            XNNPACKQuantizer,
            get_symmetric_quantization_config,
        )
        from torchao.quantization.pt2e.quantize_pt2e import (  # type: ignore[import-untyped]
            convert_pt2e,
            prepare_pt2e,
        )

        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
        watched = prepare_pt2e(torch.export.export(model, (sample,)).module(), quantizer)
        with torch.no_grad():
            for samples in torch.split(calibration, len(sample)):
                if len(samples) == len(sample):
                    watched(samples)
        result: nn.Module = convert_pt2e(watched)
        return result


@contextmanager
def _errors_in_words() -> Iterator[None]:
    with quiet():
        try:
            yield
        except ImportError as error:
            raise MissingDependencyError("executorch", action="exporting to ExecuTorch", extra="export") from error
        except EdgeFLError:
            raise
        except Exception as error:
            raise ExportError(
                f"ExecuTorch cannot compile the model: {first_line(error)}",
                fix="Export it to ONNX instead, or replace the module that the message describes.",
            ) from error


def _lowered(build: Callable[[], Any], find_module: FindModule) -> Any:
    with _errors_in_words():
        edge = build()
        missing = _without_kernel(edge.exported_program().graph)
    if missing is not None:
        raise ExportError(
            f"ExecuTorch has no kernel for the operation {missing} in {find_module(missing)}",
            fix="Replace that module with one that uses common operations, or export the model to ONNX.",
        )
    return edge


def _finished(edge: Any) -> CompiledProgram:
    with _errors_in_words():
        done = edge.to_executorch()
        (plan,) = done.executorch_program.execution_plan
        return CompiledProgram(bytes(done.buffer), sum(plan.non_const_buffer_sizes))


def _with_outputs(edge: Any, wanted: Collection[int] | None) -> Any:
    """Return a copy, since compiling changes a graph, without what only other outputs need."""
    from executorch.exir import EdgeProgramManager
    from torch.export import ExportedProgram
    from torch.export.graph_signature import ExportGraphSignature

    program = edge.exported_program()
    module, signature = copy.deepcopy(program.graph_module), program.graph_signature
    end = module.graph.output_node()
    kept = range(len(end.args[0])) if wanted is None else sorted(wanted)
    end.args = (tuple(end.args[0][place] for place in kept),)
    end.meta["val"] = tuple(node.meta["val"] for node in end.args[0])
    module.graph.eliminate_dead_code()
    module.recompile()
    part = ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=ExportGraphSignature(
            list(signature.input_specs), [signature.output_specs[place] for place in kept]
        ),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=_call_graph(program, len(kept)),
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=program.verifiers,
    )
    return EdgeProgramManager({"forward": part}, None, edge.compile_config)


def _call_graph(program: Any, outputs: int) -> list[Any]:
    """Return how the module is called, with fewer outputs."""
    entry = program.module_call_graph[0]
    signature = replace(entry.signature, out_spec=pytree.tree_structure(tuple(range(outputs))), outputs=[])
    return [replace(entry, signature=signature)]


def _config(**settings: bool) -> Any:
    from executorch.exir import EdgeCompileConfig

    # Its check allows only core operations and refuses `as_strided_copy`, which has a kernel. We check for kernels.
    return EdgeCompileConfig(_check_ir_validity=False, **settings)


def _without_kernel(graph: fx.Graph) -> str | None:
    """Return the first operation of a graph for which the runtime has no kernel."""
    from executorch.exir.operator.convert import to_out_variant
    from executorch.extension.pybindings import portable_lib

    kernels = set(portable_lib._get_operator_names())
    for node in graph.nodes:
        operation = getattr(node.target, "_op", None)
        if node.op != "call_function" or not isinstance(operation, torch._ops.OpOverload):
            continue
        try:
            wanted = to_out_variant(operation)[0].name()
        except RuntimeError:  # it has no out variant
            return str(operation)
        if wanted not in kernels:
            return str(operation)
    return None

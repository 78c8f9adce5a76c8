"""The only file that calls ExecuTorch's exporter: from a graph of torch operations to the bytes of a program.

ExecuTorch is imported inside functions: that takes seconds, prints to stderr, and is not needed to import this package.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from edgefl.errors import EdgeFLError, ExportError, MissingDependencyError
from export.executorch.quiet_output import first_line, quiet

__all__ = ["compile_delegated", "compile_portable", "quantised"]

FindModule = Callable[[str], str]
"""Names the module of the user's model that an operation comes from."""


def compile_portable(graph: fx.GraphModule, examples: Sequence[Tensor], find_module: FindModule) -> bytes:
    """Compile a graph of core operations for ExecuTorch's own kernels."""

    def build() -> Any:
        from executorch.exir import to_edge

        return to_edge(torch.export.export(graph, tuple(examples)), compile_config=_config())

    return _compiled(build, find_module)


def compile_delegated(model: nn.Module, examples: Sequence[Tensor], find_module: FindModule) -> bytes:
    """Compile a model for XNNPACK; ExecuTorch's own kernels run what XNNPACK does not support."""

    def build() -> Any:
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
            XnnpackPartitioner,
        )
        from executorch.exir import to_edge_transform_and_lower

        exported = torch.export.export(model, tuple(examples))
        return to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()], compile_config=_config())

    return _compiled(build, find_module)


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


def _compiled(build: Callable[[], Any], find_module: FindModule) -> bytes:
    with quiet():
        try:
            edge = build()
            missing = _without_kernel(edge.exported_program().graph)
            program = None if missing else bytes(edge.to_executorch().buffer)
        except ImportError as error:
            raise MissingDependencyError("executorch", action="exporting to ExecuTorch", extra="export") from error
        except EdgeFLError:
            raise
        except Exception as error:
            raise ExportError(
                f"ExecuTorch cannot compile the model: {first_line(error)}",
                fix="Export it to ONNX instead, or replace the module that the message describes.",
            ) from error
    if program is None:
        assert missing is not None
        raise ExportError(
            f"ExecuTorch has no kernel for the operation {missing} in {find_module(missing)}",
            fix="Replace that module with one that uses common operations, or export the model to ONNX.",
        )
    return program


def _config() -> Any:
    from executorch.exir import EdgeCompileConfig

    # Its check allows only core operations and refuses `as_strided_copy`, which has a kernel. We check for kernels.
    return EdgeCompileConfig(_check_ir_validity=False)


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

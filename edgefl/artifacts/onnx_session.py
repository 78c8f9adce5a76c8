"""Opens ONNX graphs of strangers in onnxruntime: checked first, and with options that keep them inside their bytes."""

from collections.abc import Mapping
from typing import Any

from edgefl.artifacts.graph_check import check_graph
from edgefl.errors import ExportError

__all__ = ["first_line", "open_onnx_session"]

_NOWHERE = "/nonexistent/edgefl-graphs-have-no-external-data"
_FOLDED_BYTES = 2**20


def open_onnx_session(graph: bytes, *, threads: int = 0, settings: Mapping[str, str] | None = None) -> Any:
    """Load a graph on the CPU; 0 threads means one per core.

    Raise a `SchemaError` if it could do more than compute, and an `ExportError` if onnxruntime cannot load it.
    """
    import onnxruntime

    check_graph(graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # errors are raised; they need not go to the terminal too
    entries = {
        "session.load_model_format": "ONNX",
        "session.model_external_initializers_file_folder_path": _NOWHERE,
        # Constants are computed while a graph is loaded, which nothing can interrupt: a small graph could take hours.
        "optimization.constant_folding_max_output_size_in_bytes": str(max(_FOLDED_BYTES, len(graph))),
    }
    for name, value in (entries | dict(settings or {})).items():
        options.add_session_config_entry(name, value)
    try:
        # Without its fallback: that prints what the graph says, and loads it a second time.
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:  # onnxruntime raises a dozen kinds, of its own and RuntimeError
        raise ExportError(
            f"onnxruntime {onnxruntime.__version__} cannot load the graph: {first_line(error)}",
            fix="Download it again, or upgrade onnxruntime: graphs need 1.18 or later.",
        ) from None


def first_line(error: Exception) -> str:
    """Return what onnxruntime said, without its long rest."""
    said = str(error).strip()
    return said.splitlines()[0][:300] if said else type(error).__name__

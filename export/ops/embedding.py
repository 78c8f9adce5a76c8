"""Embeddings: rows of a table."""

from collections.abc import Callable, Sequence
from typing import Any

from edgefl.errors import ExportError
from export.axes import freeze
from export.trace import Trace, Value

__all__ = ["OPERATIONS"]


def embedding(
    t: Trace, weight: Value, indices: Value, padding: int = -1, scale_by_frequency: bool = False, sparse: bool = False
) -> Value:
    """The rows of the table at some indices. The vocabulary is never cut; the row of `padding` gets no gradient."""
    if scale_by_frequency:
        raise ExportError(
            "an embedding with scale_grad_by_freq=True cannot be exported", fix="Leave that argument out."
        )
    freeze(weight.axes[0])
    axes = (*indices.axes, weight.axes[1])
    out = t.value(t.emit.one("Gather", weight.name, indices.name, axis=0), axes, weight)
    out = t.layer("embedding", {weight: 0}, [indices], out)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        rows = t.emit.one("Reshape", indices.name, t.emit.integers(-1, 1))
        grad = t.reshape(gradients[0], axes, (tuple(factor for axis in axes[:-1] for factor in axis), axes[-1]))
        if padding >= 0:
            ignored = t.emit.one("Equal", rows, t.emit.integers(padding))
            grad = t.emit.one("Where", ignored, t.emit.constant(0.0), grad)
        # Indices repeat. onnxruntime's ScatterND adds from several threads and loses updates; this one does not.
        places = t.emit.one("Expand", rows, t.emit.one("Shape", grad))
        zeros = t.emit.one("ConstantOfShape", t.emit.one("Shape", weight.name))
        t.add_gradient(weight, t.emit.one("ScatterElements", zeros, places, grad, axis=0, reduction="add"))

    t.backward(out, backward)
    return out


OPERATIONS: dict[str, Callable[..., Any]] = {"aten.embedding.default": embedding}

"""The losses of a training graph. A loss emits its value and the correctness of each sample, and starts the backward
pass."""

from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.errors import ExportError
from export.emitter import Shape
from export.trace import Trace, Value, declared_shape

__all__ = ["EmittedLoss", "Loss", "emit_loss"]

LABEL_MASK = "label_mask"


class Loss(StrEnum):
    """The losses that a training graph can have."""

    CROSS_ENTROPY = "cross_entropy"
    MASKED_CROSS_ENTROPY = "masked_cross_entropy"
    """Logits of labels that a device does not have are set to zero (HeteroFL, section 3.3): input `label_mask`."""
    MEAN_SQUARED_ERROR = "mean_squared_error"


@dataclass(frozen=True, slots=True)
class EmittedLoss:
    """What a loss adds to the graph."""

    value: str
    correct: str | None
    """Whether the prediction is right, for every sample; None for a regression."""
    inputs: dict[str, tuple[str, Shape]] = field(default_factory=dict)


def emit_loss(t: Trace, output: Value, loss: Loss) -> EmittedLoss:
    """Emit a loss of the model's output and set the output's gradient."""
    if loss is Loss.MEAN_SQUARED_ERROR:
        return _mean_squared_error(t, output)
    return _cross_entropy(t, output, masked=loss is Loss.MASKED_CROSS_ENTROPY)


def _cross_entropy(t: Trace, output: Value, *, masked: bool) -> EmittedLoss:
    if len(output.axes) != 2:
        raise ExportError(
            f"cross-entropy needs logits of shape (batch, classes), but the model returns {len(output.axes)} axes",
            fix="Flatten what the model returns, or choose the mean squared error.",
        )
    inputs: dict[str, tuple[str, Shape]] = {"y": ("int64", ["batch"])}
    logits = output.name
    if masked:
        inputs[LABEL_MASK] = ("float32", [output.shape[1]])
        logits = t.emit.one("Mul", logits, LABEL_MASK)
    value, logarithms = t.emit.node("SoftmaxCrossEntropyLoss", [logits, "y"], outputs=2, reduction="mean")
    # d loss / d logits = (softmax - one-hot) / batch
    hit = t.emit.one("OneHot", "y", t.emit.integers(output.shape[1]), t.emit.constant([0.0, 1.0]))
    excess = t.emit.one("Sub", t.emit.one("Exp", logarithms), hit)
    gradient = t.emit.one("Div", excess, t.emit.one("Cast", t.size(output.axes[0]), to=1))
    t.add_gradient(output, t.emit.one("Mul", gradient, LABEL_MASK) if masked else gradient)
    best = t.emit.one("ArgMax", logits, axis=1, keepdims=0)
    return EmittedLoss(value, t.emit.one("Equal", best, "y"), inputs)


def _mean_squared_error(t: Trace, output: Value) -> EmittedLoss:
    difference = t.emit.one("Sub", output.name, "y")
    value = t.emit.one("ReduceMean", t.emit.one("Mul", difference, difference), keepdims=0)
    count = t.emit.one("Cast", t.emit.one("Size", output.name), to=1)
    t.add_gradient(output, t.emit.one("Mul", difference, t.emit.one("Div", t.emit.constant(2.0), count)))
    return EmittedLoss(value, None, {"y": ("float32", declared_shape(output))})

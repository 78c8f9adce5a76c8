"""Traces one training step of a submodel to a flat list of operations: forward pass, loss, backward pass.

Torch differentiates; the table of `export.executorch.lowering` says what each operation becomes. A frozen tensor
requires no gradient, so torch computes nothing that only its gradient would need.

Shapes are fixed, but batches are not always full. The input `sample_weights` is 1/r for each of the r real samples and
0 for those that fill the batch up. Losses and batch norms average with it, so the others contribute exactly nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.errors import EdgeFLError, ExportError
from edgefl.values import SAMPLE_WEIGHTS
from export.executorch.lowering import decompositions
from export.executorch.norms import weighted_samples
from export.executorch.optimise_step import eliminate_copies
from export.executorch.quiet_output import first_line
from export.losses import LABEL_MASK, Loss
from export.ops.dropout import SEED

__all__ = ["TracedStep", "trace_prediction", "trace_step"]

Results = dict[str, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class TracedStep:
    """A traced training step, with the names of its inputs and outputs."""

    graph: fx.GraphModule
    examples: tuple[Tensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def trace_step(model: nn.Module, example: Tensor, names: Sequence[str], trained: set[str], loss: Loss) -> TracedStep:
    """Trace a training step of a model whose tensors, called `names`, are inputs; `trained` ones get gradients and new
    statistics."""
    stored = dict(model.named_parameters()) | dict(model.named_buffers())
    inputs = {"x": example.contiguous()} | _targets(model, example, loss)
    if getattr(model, "draws", False):
        inputs[SEED] = torch.zeros((), dtype=torch.int64)
    inputs |= {n: stored[n].detach() for n in names}
    return _traced(model, inputs, lambda given: _results(model, given, names, trained, loss))


def trace_prediction(model: nn.Module, example: Tensor, names: Sequence[str], output: str) -> TracedStep:
    """Trace the forward pass of a model whose tensors, called `names`, are inputs; its result is called `output`."""
    stored = dict(model.named_parameters()) | dict(model.named_buffers())
    inputs = {"x": example.contiguous()} | {name: stored[name].detach() for name in names}
    _output_shape(model, example)

    def predict(given: Results) -> Results:
        tensors = {name: given[name] for name in names}
        return {output: torch.func.functional_call(model, tensors, (given["x"],)).detach()}

    return _traced(model, inputs, predict)


def _traced(model: nn.Module, inputs: Results, compute: Callable[[Results], Results]) -> TracedStep:
    """Trace a function of tensors by name."""
    outputs: list[str] = []

    def step(*tensors: Tensor) -> tuple[Tensor, ...]:
        results = compute(dict(zip(inputs, tensors, strict=True)))
        outputs[:] = results
        return tuple(results.values())

    examples = tuple(inputs.values())
    try:
        # With oneDNN off, torch decomposes recurrent layers into operations that the table knows.
        with torch.backends.mkldnn.flags(enabled=False):
            with_views = make_fx(step, decompositions(), tracing_mode="fake", _allow_non_fake_inputs=True)(*examples)
        graph = eliminate_copies(_functional(with_views, examples))
    except EdgeFLError:
        raise
    except Exception as error:
        raise ExportError(
            f"torch cannot trace {type(model).__name__}: {first_line(error)}",
            fix="Train this model with onnxruntime, and report it: its operations are known.",
        ) from error
    kept = _changed(graph, outputs)
    return TracedStep(graph, examples, tuple(inputs), kept)


def _results(model: nn.Module, given: Results, names: Sequence[str], trained: set[str], loss: Loss) -> Results:
    """Compute a step: what a training program returns, by name."""
    tensors = {name: given[name].detach() for name in names}
    # A module updates its running statistics in place, so let it write into copies.
    buffers = {name: tensor.clone() for name, tensor in tensors.items() if name in dict(model.named_buffers())}
    leaves = {n: tensor.requires_grad_() for n, tensor in tensors.items() if n in trained and n not in buffers}
    with weighted_samples(given[SAMPLE_WEIGHTS]):
        prediction = torch.func.functional_call(model, tensors | buffers, _arguments(given))
        value, correct = _LOSSES[loss](prediction, given)
        found = torch.autograd.grad(value, list(leaves.values()), allow_unused=True) if leaves else ()
    gradients = {
        GRADIENT + name: gradient for name, gradient in zip(leaves, found, strict=True) if gradient is not None
    }
    return (
        {"loss": value.detach()}
        | correct
        | gradients
        | {NEW_STATISTIC + name: tensor for name, tensor in buffers.items() if name in trained}
    )


def _arguments(given: Results) -> tuple[Tensor, ...]:
    return (given["x"], given[SEED]) if SEED in given else (given["x"],)


def _cross_entropy(prediction: Tensor, given: Results) -> tuple[Tensor, Results]:
    logits = prediction * given[LABEL_MASK] if LABEL_MASK in given else prediction
    # torch's own cross-entropy handles ignored labels, with comparisons that cost more than the rest of it.
    hit = torch.zeros_like(logits).scatter(1, given["y"].unsqueeze(1), 1.0)
    likelihood = torch.mm(nn.functional.log_softmax(logits, 1) * hit, logits.new_ones((logits.shape[1], 1)))
    value = -torch.mm(given[SAMPLE_WEIGHTS].reshape(1, -1), likelihood).reshape(())
    return value, {"correct": logits.detach().argmax(1) == given["y"]}


def _mean_squared_error(prediction: Tensor, given: Results) -> tuple[Tensor, Results]:
    error = (prediction - given["y"]).reshape(len(prediction), -1)
    squared = torch.mm(error * error, error.new_full((error.shape[1], 1), 1 / error.shape[1]))
    return torch.mm(given[SAMPLE_WEIGHTS].reshape(1, -1), squared).reshape(()), {}


_LOSSES: dict[Loss, Callable[[Tensor, Results], tuple[Tensor, Results]]] = {
    Loss.CROSS_ENTROPY: _cross_entropy,
    Loss.MASKED_CROSS_ENTROPY: _cross_entropy,
    Loss.MEAN_SQUARED_ERROR: _mean_squared_error,
}


def _targets(model: nn.Module, example: Tensor, loss: Loss) -> Results:
    """Return examples of what the loss needs besides the prediction."""
    shape = _output_shape(model, example)
    weights = {SAMPLE_WEIGHTS: torch.full(shape[:1], 1 / shape[0])}
    if loss is Loss.MEAN_SQUARED_ERROR:
        return {"y": torch.zeros(shape)} | weights
    if len(shape) != 2:
        raise ExportError(
            f"cross-entropy needs logits of shape (batch, classes), but the model returns {tuple(shape)}",
            fix="Flatten what the model returns, or choose the mean squared error.",
        )
    targets: Results = {"y": torch.zeros(shape[0], dtype=torch.int64)} | weights
    return targets | ({LABEL_MASK: torch.ones(shape[1])} if loss is Loss.MASKED_CROSS_ENTROPY else {})


def _output_shape(model: nn.Module, example: Tensor) -> torch.Size:
    try:
        with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True):
            found = model(example)
    except EdgeFLError:
        raise
    except Exception as error:
        raise ExportError(
            f"{type(model).__name__} cannot run on an input of shape {tuple(example.shape)}: {first_line(error)}",
            fix="Give an example of the shape that the model takes.",
        ) from error
    if not isinstance(found, Tensor):
        raise ExportError(
            f"{type(model).__name__} returns a {type(found).__name__}",
            fix="Return one tensor from forward: the logits or the prediction.",
        )
    return found.shape


def _functional(graph: fx.GraphModule, examples: Sequence[Tensor]) -> fx.GraphModule:
    """Turn views and in-place changes into operations that return new tensors."""

    def run(*tensors: Tensor) -> Any:
        return graph(*tensors)

    pure = torch.func.functionalize(run, remove="mutations_and_views")
    return make_fx(pure, tracing_mode="fake", _allow_non_fake_inputs=True)(*examples)


def _changed(graph: fx.GraphModule, names: Sequence[str]) -> tuple[str, ...]:
    """Drop outputs that are unchanged inputs: running statistics that the model does not update."""
    end = next(node for node in graph.graph.nodes if node.op == "output")
    results = list(end.args[0])
    kept = [(name, node) for name, node in zip(names, results, strict=True) if node.op != "placeholder"]
    end.args = (tuple(node for _, node in kept),)
    graph.recompile()
    return tuple(name for name, _ in kept)

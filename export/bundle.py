"""Exports a torch model to a bundle: one export serves every device."""

import importlib.metadata
from collections.abc import Callable

import torch
from torch import nn

from edgefl import __version__
from edgefl.artifacts.bundle import GRAPH, INFER, TRAIN, WEIGHTS, Bundle, Manifest
from edgefl.errors import ExportError
from edgefl.model_graph import Dtype, ModelGraph
from edgefl.values import digest_of, dumps
from edgefl.wire import Body, BodyKind, Dense, encode
from export.describe_graph import describe
from export.inference_graph import inference_graph
from export.losses import Loss
from export.training_graph import training_graph

__all__ = ["make_bundle", "stored_weights"]

_MAKERS = ("torch", "onnx")


def make_bundle(
    model: nn.Module,
    name: str,
    example: torch.Tensor,
    *,
    loss: Loss = Loss.CROSS_ENTROPY,
    block_of: Callable[[str], str] | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Bundle:
    """Export a model. The example gives the shape and dtype of the input; its batch size does not matter."""
    if example.ndim < 2:
        raise ExportError(
            f"the example has shape {tuple(example.shape)}", fix="Give a batch: its first axis counts samples."
        )
    progress("training graph")
    trained, traced = training_graph(model, example, loss)
    graph = describe(traced, name, block_of)
    progress("inference graph")
    inferred = inference_graph(model, example)
    progress("weights")
    files = {
        GRAPH: dumps(graph).encode(),
        TRAIN: trained.SerializeToString(deterministic=True),
        INFER: inferred.SerializeToString(deterministic=True),
        WEIGHTS: _weights_body(model, graph),
    }
    manifest = Manifest(
        model=name,
        graph=graph.digest,
        input_shape=tuple(example.shape[1:]),
        input_dtype=Dtype(str(example.dtype).removeprefix("torch.")),
        outputs=traced.output.shape[-1],
        loss=str(loss),
        files={file: digest_of(data) for file, data in files.items()},
        made_with={"edgefl": __version__} | {maker: importlib.metadata.version(maker) for maker in _MAKERS},
    )
    return Bundle(manifest, graph, files)


def stored_weights(model: nn.Module, graph: ModelGraph) -> dict[str, torch.Tensor]:
    """Return the parameters and running statistics that the graph describes."""
    stored = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name: stored[name].detach() for name in graph.tensor}


def _weights_body(model: nn.Module, graph: ModelGraph) -> bytes:
    arrays = {name: Dense(tensor.numpy()) for name, tensor in stored_weights(model, graph).items()}
    return encode(Body(BodyKind.WEIGHTS, arrays, about={"model": graph.digest}))

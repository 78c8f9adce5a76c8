"""The model to export: one of the zoo by its name, or the user's own factory."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from edgefl.errors import ExportError
from edgefl.wire import BodyKind, Dense, decode
from export.zoo import ZOO, build, load_factory

__all__ = ["ModelSource", "open_source"]


@dataclass(frozen=True, slots=True, eq=False)
class ModelSource:
    """A model with an example of its input."""

    name: str
    model: nn.Module
    example: torch.Tensor


def open_source(
    target: str, *, classes: int | None = None, sample: str | None = None, seed: int = 0, weights: str | None = None
) -> ModelSource:
    """Build a model of the zoo, or call `package.module:factory`, whose input is described by `sample` ("3,32,32").

    `weights` names a file of kind `weights` to start from; without it the weights are fresh, or the factory's own.
    """
    source = _build(target, classes, sample, seed)
    if weights is not None:
        _load_weights(source, weights)
    return source


def _build(target: str, classes: int | None, sample: str | None, seed: int) -> ModelSource:
    if ":" in target:
        if not sample:
            raise ExportError(
                "the shape of one sample is not known", fix="Give it with --input, for example --input 3,32,32."
            )
        if classes is not None:
            raise ExportError(
                "--classes is for models of the zoo", fix="Let your factory decide how many classes there are."
            )
        example = torch.zeros((2, *_shape(sample)))
        return ModelSource(target.rpartition(":")[2], load_factory(target, seed=seed), example)
    if target not in ZOO:
        raise ExportError(
            f"there is no model {target!r} in the zoo",
            fix=f"Choose one of {', '.join(ZOO)}, or package.module:factory.",
        )
    if sample:
        raise ExportError("--input is for models of your own", fix=f"{target} has the input of its paper.")
    spec = ZOO[target]
    largest = spec.in_channels - 1 if spec.input_dtype == "int64" else 0.0
    example = torch.full((2, *spec.input_shape), largest)
    return ModelSource(target, build(target, classes=classes, seed=seed), example)


def _load_weights(source: ModelSource, path: str) -> None:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror}", fix="Give the path of a file.") from None
    body = decode(data, kind=BodyKind.WEIGHTS)
    stored = dict(source.model.named_parameters()) | dict(source.model.named_buffers())
    for name, payload in body.tensors.items():
        if name not in stored or tuple(stored[name].shape) != payload.shape or not isinstance(payload, Dense):
            raise ExportError(
                f"{path} has a tensor {name!r} of shape {payload.shape}, which {source.name} does not have",
                fix="Give the weights of this model: the same zoo name, classes and shape.",
            )
        stored[name].data.copy_(torch.from_numpy(payload.array.copy()))


def _shape(text: str) -> list[int]:
    try:
        shape = [int(size) for size in text.split(",")]
    except ValueError:
        shape = []
    if not shape or min(shape) < 1:
        raise ExportError(f"{text!r} is not a valid shape", fix="Write whole numbers with commas, such as 3,32,32.")
    return shape

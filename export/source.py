"""Which model is to be exported: one of the zoo by its name, or the user's own factory."""

from dataclasses import dataclass

import torch
from torch import nn

from edgefl.errors import ExportError
from export.zoo import ZOO, build, load_factory

__all__ = ["Source", "open_source"]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A model with an example of its input."""

    name: str
    model: nn.Module
    example: torch.Tensor


def open_source(target: str, *, classes: int | None = None, sample: str | None = None, seed: int = 0) -> Source:
    """Build a model of the zoo, or call `package.module:factory`, whose input is described by `sample` ("3,32,32")."""
    if ":" in target:
        if not sample:
            raise ExportError("the shape of one sample is not known", fix="Give it, for example --input 3,32,32.")
        if classes is not None:
            raise ExportError("--classes is for models of the zoo", fix="Let your factory decide how many there are.")
        example = torch.zeros((2, *_shape(sample)))
        return Source(target.rpartition(":")[2], load_factory(target, seed=seed), example)
    if target not in ZOO:
        raise ExportError(
            f"there is no model {target!r} in the zoo", fix=f"Known are {', '.join(ZOO)}, or package.module:factory."
        )
    if sample:
        raise ExportError("--input is for models of your own", fix=f"{target} has the input of its paper.")
    spec = ZOO[target]
    largest = spec.in_channels - 1 if spec.input_dtype == "int64" else 0.0
    example = torch.full((2, *spec.input_shape), largest)
    return Source(target, build(target, classes=classes, seed=seed), example)


def _shape(text: str) -> list[int]:
    try:
        shape = [int(size) for size in text.split(",")]
    except ValueError:
        shape = []
    if not shape or min(shape) < 1:
        raise ExportError(f"{text!r} is no shape", fix="Write whole numbers with commas, such as 3,32,32.")
    return shape

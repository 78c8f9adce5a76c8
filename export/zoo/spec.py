"""What the zoo knows of a model before it is built, and the naming rule that every model of the zoo follows.

The rule makes it possible to read a block off a parameter's name without a list for each model:

- A model is a chain of named steps. A step that holds parameters is a *block*: what PerFedMask trains or freezes
  as a whole, a convolution together with its norm and its shortcut.
- The last block is called `head`. It computes the class scores; PerFedMask leaves it out of its blocks.
- So the block of a parameter (or of a running statistic) is the part of its name before the first dot.

Architecture files import this one; it knows none of them.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torch import nn

__all__ = ["Factory", "ModelSpec", "HEAD", "block_of", "stack"]

Factory: TypeAlias = Callable[[int, int], nn.Module]
"""Builds a model from its number of classes and its number of input channels, in that order."""

HEAD = "head"
"""The block that computes the class scores."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model of the zoo, as its paper uses it."""

    name: str
    description: str
    paper: str
    input_shape: tuple[int, ...]
    """Shape of one sample, without the batch axis: channels, height, width for images."""
    input_dtype: Literal["float32", "int64"]
    """float32 for measurements, int64 for the indices of characters."""
    classes: int
    """The default number of class scores."""
    factory: Factory

    @property
    def in_channels(self) -> int:
        """Channels of an image, features of a vector, or the size of the alphabet of a text.

        A text model reads the characters that it predicts, so its alphabet is its classes.
        """
        return self.input_shape[0] if self.input_dtype == "float32" else self.classes


def block_of(parameter: str) -> str:
    """Return the block that a parameter or a running statistic of a zoo model belongs to."""
    return parameter.partition(".")[0]


def stack(layers: Mapping[str, nn.Module]) -> nn.Sequential:
    """Run layers one after the other, under the given names."""
    return nn.Sequential(OrderedDict(layers))

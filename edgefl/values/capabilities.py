"""Capabilities: what a device's software can run, which it sends when it enrols and when its software has changed.

Plans ask for nothing else. A device that sent none is one of EdgeFL's own clients from before: it has every rule and
every codec, and runs ONNX graphs.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.field_error import FieldError
from edgefl.values.quantities import PositiveCount
from edgefl.values.schema import document
from edgefl.values.strings import Identifier, Name

__all__ = ["Capabilities", "ClientSoftware", "EngineSoftware", "GraphFormat"]

_MOST_ITEMS = {"engines": 16, "rules": 256, "codecs": 256, "batch_sizes": 256}
_MOST_CHARACTERS = 8192
"""Of all names and versions together: a coordinator keeps this of every device."""


class GraphFormat(StrEnum):
    """What an engine runs."""

    ONNX = "onnx"
    EXECUTORCH = "executorch"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSoftware:
    """The program that speaks the protocol."""

    name: Name
    """Its name, such as 'edgefl-python'."""

    version: Name
    """Its version, such as '0.1.0'."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSoftware:
    """A training engine."""

    name: Name
    """Its name, such as 'onnxruntime'."""

    version: Name
    """Its version, such as '1.31.1'."""

    format: GraphFormat
    """What it runs."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("capabilities", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a device's software can run."""

    client: ClientSoftware
    """The program."""

    platform: Name
    """System and its version, such as 'Linux 6.6 aarch64', 'Android 15' or 'Chromium 156'."""

    engines: tuple[EngineSoftware, ...]
    """Training engines, the one that it uses first."""

    rules: tuple[Identifier, ...]
    """Local rules that it has, such as 'sgd', and settings of them that were added later, such as 'sgd.sensitivity'."""

    codecs: tuple[Identifier, ...]
    """Codecs of tensors that it can write into an update, such as 'dense'."""

    batch_sizes: tuple[PositiveCount, ...] | None = field(default=None, metadata={"absent": "any"})
    """Batch sizes that its engine can run, or None for any."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, most in _MOST_ITEMS.items():
            items = getattr(self, name) or ()
            if len(items) > most:
                raise FieldError(f"has {len(items)} entries", fix=f"Give at most {most}", path=(name,))
        engines = [text for engine in self.engines for text in (engine.name, engine.version)]
        characters = sum(map(len, (*engines, *self.rules, *self.codecs)))
        if characters > _MOST_CHARACTERS:
            raise FieldError(
                f"has {characters:,} characters in its engines, rules and codecs",
                fix=f"Give at most {_MOST_CHARACTERS:,}",
            )

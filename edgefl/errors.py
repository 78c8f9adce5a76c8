"""The exceptions that EdgeFL raises on purpose.

The command line turns them into a short message on stderr and exit code 1. A bug is never one of these: a `TypeError`
from our own code stays a `TypeError`.

    EdgeFLError
    ├── SchemaError             a value or its JSON form breaks its schema: unknown field, wrong unit, bad range
    ├── MaskError               an invalid mask or model graph: an empty group, a cut input, a wrong shape
    ├── WireFormatError         bytes that are not an EdgeFL body, or not the expected one
    ├── DataError               a data set is missing or damaged, or cannot be divided as requested
    ├── ExportError             a model that cannot be exported
    └── MissingDependencyError  an optional package that this action needs is not installed
"""

from typing import Any

__all__ = [
    "EdgeFLError",
    "SchemaError",
    "MaskError",
    "WireFormatError",
    "DataError",
    "ExportError",
    "MissingDependencyError",
]


class EdgeFLError(Exception):
    """An explained error: what happened, with the offending value, and how to fix it.

    `fix` is a sentence for the person who sees the message. It is required: an error must tell its reader what to do
    next.
    """

    def __init__(self, problem: str, *, fix: str) -> None:
        super().__init__(problem, fix)
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.problem}. {self.fix}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are copied and sent between processes by calling their class with positional arguments.
        return _restored, (type(self), self.problem, self.fix), self.__dict__


def _restored(cls: type[EdgeFLError], problem: str, fix: str) -> EdgeFLError:
    error = cls.__new__(cls)
    EdgeFLError.__init__(error, problem, fix=fix)
    return error


class SchemaError(EdgeFLError):
    """A value or its JSON form breaks its schema."""


class MaskError(EdgeFLError):
    """An invalid mask or model graph."""


class WireFormatError(EdgeFLError):
    """Bytes that are not an EdgeFL body, or not the expected one."""


class DataError(EdgeFLError):
    """A data set is missing or damaged, or cannot be divided as requested."""


class ExportError(EdgeFLError):
    """A model that cannot be exported."""


class MissingDependencyError(EdgeFLError):
    """An optional package that this action needs is not installed."""

    def __init__(self, package: str, *, action: str, extra: str) -> None:
        super().__init__(
            f"{action} needs the package {package!r}, which is not installed",
            fix=f"Install it with: pip install 'edgefl-toolkit[{extra}]'",
        )

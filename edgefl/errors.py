"""Everything that EdgeFL raises on purpose.

Every room raises these; the command line turns them into one line on stderr and exit code 1. A bug is never
one of these: a `TypeError` from our own code stays a `TypeError`.

    EdgeFLError
    ├── SchemaError             a value or its JSON form breaks its schema: unknown field, wrong unit, bad range
    ├── MaskError               a mask or a model graph that cannot be: an empty group, a cut input, a wrong shape
    ├── WireFormatError         bytes that are not an EdgeFL body, or not the body that was asked for
    ├── DataError               a data set is missing or damaged, or cannot be divided as asked
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
    """What happened (with the offending value), and what to do about it.

    `fix` is a sentence for the person who sees the message. It is required, because an error that leaves its
    reader without a next step is half an error.
    """

    def __init__(self, problem: str, *, fix: str) -> None:
        super().__init__(problem, fix)
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.problem}. {self.fix}"

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is copied, and sent between processes, by calling its class with its positional arguments.
        return _restored, (type(self), self.problem, self.fix), self.__dict__


def _restored(cls: type[EdgeFLError], problem: str, fix: str) -> EdgeFLError:
    error = cls.__new__(cls)
    EdgeFLError.__init__(error, problem, fix=fix)
    return error


class SchemaError(EdgeFLError):
    """A value or its JSON form breaks its schema."""


class MaskError(EdgeFLError):
    """A mask or a model graph that cannot be."""


class WireFormatError(EdgeFLError):
    """Bytes that are not an EdgeFL body, or not the body that was asked for."""


class DataError(EdgeFLError):
    """A data set is missing or damaged, or cannot be divided as asked."""


class ExportError(EdgeFLError):
    """A model that cannot be exported."""


class MissingDependencyError(EdgeFLError):
    """An optional package that this action needs is not installed."""

    def __init__(self, package: str, *, action: str, extra: str) -> None:
        super().__init__(
            f"{action} needs the package {package!r}, which is not installed",
            fix=f"Install it with: pip install 'edgefl-toolkit[{extra}]'",
        )

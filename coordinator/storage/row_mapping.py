"""Conversion between records and table rows. A column has the name of the field that it holds."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Column, Table

__all__ = ["chunks", "columns_of", "fields_of", "first_record", "record", "records"]

Record = TypeVar("Record")

_CHUNK = 4000  # SQLite allows 32,766 values in a statement, PostgreSQL 65,535


def columns_of(table: Table, kind: type) -> list[Column[Any]]:
    """Return the columns of a kind of record, in the order of its fields."""
    return [table.c[name] for name in _names(kind)]


def fields_of(record: Any) -> dict[str, Any]:
    """Return a record's fields by column name."""
    return {name: getattr(record, name) for name in _names(type(record))}


def record(kind: type[Record], row: Iterable[Any]) -> Record:
    """Return the record of a row whose columns are `columns_of`."""
    return kind(**dict(zip(_names(kind), row, strict=True)))


def records(kind: type[Record], rows: Iterable[Iterable[Any]]) -> list[Record]:
    """Return the records of several rows."""
    return [record(kind, row) for row in rows]


def first_record(kind: type[Record], rows: Sequence[Iterable[Any]]) -> Record | None:
    """Return the record of the first row, or None without rows."""
    return record(kind, rows[0]) if rows else None


def chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut a list into pieces that fit into one statement a few times over."""
    for start in range(0, len(names), _CHUNK):
        yield names[start : start + _CHUNK]


def _names(kind: Any) -> list[str]:
    return list(kind.__dataclass_fields__)

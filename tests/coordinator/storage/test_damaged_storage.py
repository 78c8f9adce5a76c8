"""Files that are damaged, cut off, locked or read-only: each is named, with what to do. None is called a bug."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import DatabaseUnavailableError
from coordinator.storage import open as opening
from coordinator.storage.open import open_blobs, open_store
from coordinator.storage.sqlite_errors import explained
from edgefl.errors import EdgeFLError
from tests.coordinator.storage.small_federation import FEDERATION, running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with something in it."""
    path = tmp_path / "coordinator.db"
    with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
        running(store)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:100] + bytes(range(256)) * ((size - 100) // 256 + 1))


def overwrite_all(path: Path) -> None:
    path.write_bytes(b"this was a database " * 500)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def drop_table(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE tasks")


def drop_version(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE alembic_version")


@pytest.mark.parametrize("harm", [cut_off, overwrite, overwrite_all, empty, drop_table, drop_version])
def test_a_damaged_database_is_named_with_how_to_restore_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(opening, "_CREATION_SECONDS", 0.0)
    harm(path)
    with pytest.raises(EdgeFLError) as caught:
        open_store(f"sqlite:///{path}")
    assert str(path) in caught.value.problem
    assert "Backup and restore" in caught.value.fix


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
    with pytest.raises(EdgeFLError, match=r"notes\.db is one of another program: it has the table 'notes'"):
        open_store(f"sqlite:///{path}")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [("notes",)]


def test_a_database_that_is_damaged_while_it_is_open_is_named(path: Path) -> None:
    with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
        overwrite_all(path)
        for attempt in (
            lambda: store.federations.all(),
            lambda: store.devices.by_token("x"),
            lambda: store.federations.add(FEDERATION),
        ):
            with pytest.raises(DatabaseUnavailableError, match=r"coordinator\.db is damaged.*Backup and restore"):
                attempt()


def test_a_locked_database_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.storage.database._LOCK_SECONDS", 0.05)
    with contextlib.closing(sqlite3.connect(path)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseUnavailableError, match=r"coordinator\.db is locked by another process"):
            open_store(f"sqlite:///{path}")


def test_a_read_only_file_is_named(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute("DELETE FROM federations")
        found = explained(caught.value, path)
    assert found is not None
    assert "coordinator.db cannot be written to" in found.problem
    assert "writable" in found.fix


def test_a_mistake_of_ours_is_not_blamed_on_the_file(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.Error) as caught:
        connection.execute("SELEKT")
    assert explained(caught.value, path) is None
    assert explained(ValueError(), path) is None


def test_a_damaged_file_of_small_bodies_is_named(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path))
    digests = [blobs.put(bytes([number]) * 200_000) for number in range(20)]
    blobs.close()
    blobs = open_blobs(str(tmp_path))
    path = tmp_path / "small.sqlite"
    data = path.read_bytes()
    path.write_bytes(data[: 2 * 16384] + b"\xff" * (len(data) - 2 * 16384))
    with pytest.raises(DatabaseUnavailableError, match=r"small\.sqlite is damaged.*Backup and restore"):
        [blobs.get(digest) for digest in digests]
    blobs.close()
    overwrite_all(path)
    with pytest.raises(DatabaseUnavailableError, match=r"small\.sqlite is damaged"):
        open_blobs(str(tmp_path))

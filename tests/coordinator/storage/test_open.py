"""Opening a store: whatever is at the URL, it becomes a database of the right form, or a message that helps."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text

from coordinator.errors import DatabaseUnavailableError
from coordinator.storage.open import open_store
from coordinator.storage.records import COORDINATOR, FederationState, OperatorRole
from coordinator.storage.store import Store
from coordinator.storage.tables import metadata
from edgefl.errors import EdgeFLError, MissingDependencyError
from tests.coordinator.postgresql import new_database
from tests.coordinator.storage.small_federation import (
    FEDERATION,
    a_token,
    an_artifact,
    an_upload,
    digest,
    open_round,
    running,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that nobody has opened yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/folder/with space %41/coordinator.db"
    return new_database(request.getfixturevalue("server"))


@contextlib.contextmanager
def connected(url: str) -> Iterator[Connection]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def everything(store: Store) -> list[object]:
    return [
        store.federations.all(),
        store.rounds.of("fed"),
        store.tasks.of("fed"),
        store.devices.of("fed"),
        store.keys.of("fed"),
        store.artifacts.get("fed", digest("weights")),
        store.tokens.all(),
        store.audit.page(),
        store.workers.take_lease("driver", "two", now=11.0, seconds=5.0),
    ]


def test_everything_is_there_after_a_restart(new_url: str) -> None:
    with contextlib.closing(open_store(new_url)) as store:
        devices = running(store)
        open_round(store, devices)
        store.uploads.accept([an_upload(devices[0])])
        store.uploads.refuse(f"task-0-{devices[1]}", devices[1], "{}", 9.0)
        store.artifacts.add([an_artifact("weights", 0)])
        store.tokens.add(a_token("alice"), by=COORDINATOR)
        store.workers.take_lease("driver", "one", now=10.0, seconds=5.0)
        before = everything(store)
    with contextlib.closing(open_store(new_url)) as store:
        assert everything(store) == before
        assert before[-3] == [a_token("alice")]
        assert before[-1] is False


def test_the_steps_make_the_tables_that_the_code_knows(new_url: str) -> None:
    open_store(new_url).close()
    with connected(new_url) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


_WITHOUT_PROGRAMS = (
    "DROP TABLE programs",
    "ALTER TABLE tasks DROP COLUMN rung",
    "ALTER TABLE devices DROP COLUMN engine",
)
_WITHOUT_CAPABILITIES = "ALTER TABLE devices DROP COLUMN capabilities"


def test_the_tokens_of_an_older_database_stay_valid(new_url: str) -> None:
    open_store(new_url).close()
    with connected(new_url) as connection:  # as it was before
        for statement in (*_WITHOUT_PROGRAMS, _WITHOUT_CAPABILITIES, "DROP TABLE tokens", "DROP TABLE audit"):
            connection.execute(text(statement))
        if connection.dialect.name == "postgresql":
            connection.execute(text("DROP FUNCTION audit_is_append_only()"))
        connection.execute(text("CREATE TABLE secrets (name VARCHAR PRIMARY KEY, value TEXT NOT NULL)"))
        connection.execute(text("INSERT INTO secrets VALUES ('admin-token', 'one'), ('viewer-token', 'two')"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0004'"))
    with contextlib.closing(open_store(new_url)) as store:
        known = [(token.name, token.role, token.hash, token.from_start) for token in store.tokens.all()]
        assert known == [
            ("admin", OperatorRole.ADMIN, "one", True),
            ("viewer", OperatorRole.VIEWER, "two", True),
        ]
        assert store.audit.last() is None


def test_the_devices_of_an_older_database_have_no_capabilities_until_they_send_them(new_url: str) -> None:
    with contextlib.closing(open_store(new_url)) as store:
        devices = running(store)
    with connected(new_url) as connection:  # as it was before
        for statement in (*_WITHOUT_PROGRAMS, _WITHOUT_CAPABILITIES):
            connection.execute(text(statement))
        connection.execute(text("UPDATE alembic_version SET version_num = '0005'"))
    with contextlib.closing(open_store(new_url)) as store:
        assert [device.capabilities for device in store.devices.of("fed")] == [None] * len(devices)
        store.devices.set_capabilities(devices[0], "{}")
        assert [device.capabilities for device in store.devices.of("fed")].count("{}") == 1


def test_the_tasks_of_an_older_database_have_no_rung_and_its_federations_no_programs(new_url: str) -> None:
    with contextlib.closing(open_store(new_url)) as store:
        devices = running(store, devices=2)
        store.devices.set_capabilities(devices[0], '{"engines": [{"name": "onnxruntime", "version": "1.31.1"}]}')
        task, _ = open_round(store, devices)
    with connected(new_url) as connection:  # as it was before
        for statement in _WITHOUT_PROGRAMS:
            connection.execute(text(statement))
        connection.execute(text("UPDATE alembic_version SET version_num = '0006'"))
    with contextlib.closing(open_store(new_url)) as store:
        found = store.tasks.get(task)
        assert found is not None
        assert found.rung is None
        assert [device.engine for device in store.devices.of("fed")] == ["onnxruntime 1.31.1", None]
        assert store.programs.of("fed") == []
        store.programs.want("fed", {"key": "{}"}, at=1.0)
        assert [one.key for one in store.programs.of("fed")] == ["key"]


def test_a_database_of_a_newer_version_is_left_alone(new_url: str) -> None:
    open_store(new_url).close()
    with connected(new_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(EdgeFLError, match=r"'9999', which this version .* does not know.*newer version"):
        open_store(new_url)
    with connected(new_url) as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"


def test_workers_that_start_at_once_find_one_database(new_url: str) -> None:
    code = (
        "import sys; from coordinator.storage.open import open_store; import coordinator.storage.store;"
        "import coordinator.storage.migrate; print('ready', flush=True); sys.stdin.readline();"
        f"open_store({new_url!r}).close(); print('opened')"
    )
    command = [sys.executable, "-c", code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(2)]  # type: ignore[call-overload]
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        answers = [worker.communicate() for worker in workers]
    assert [out for out, _ in answers] == ["opened\n"] * 2, answers


def test_stores_opened_in_threads_find_one_database(new_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(open_store, [new_url] * 4))
    assert stores[0].federations.add(FEDERATION)
    assert all(store.federations.get("fed") == FEDERATION for store in stores)
    for store in stores:
        store.close()


def test_an_sqlite_store_waits_for_the_disk_and_keeps_its_references(tmp_path: Path) -> None:
    path = tmp_path / "coordinator.db"
    with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
        database = store._database
        with database._writer.connect() as connection:
            asked = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "foreign_keys")]
        assert asked == [2, 1]  # FULL, ON
    with contextlib.closing(sqlite3.connect(path)) as direct:
        assert direct.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize(
    "url", ["mysql://user:hidden@host/db", "sqlite://", "sqlite:///:memory:", "coordinator.db", "", "postgresql+x://y"]
)
def test_an_unknown_url_is_an_error_that_shows_how_to_write_one(url: str) -> None:
    with pytest.raises(
        EdgeFLError, match=r"Write sqlite:///path/of/a/file or postgresql://user@host/database"
    ) as caught:
        open_store(url)
    assert "hidden" not in str(caught.value)


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no database at all" * 100)
    with pytest.raises(EdgeFLError, match="file is not a database"):
        open_store(f"sqlite:///{tmp_path}/file")
    with pytest.raises(EdgeFLError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path}/file/below/a/file")
    with pytest.raises(EdgeFLError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path}")


def test_a_server_that_is_not_there_is_an_error_without_its_password() -> None:
    with pytest.raises(DatabaseUnavailableError, match=r"127\.0\.0\.1:9/db cannot be opened.*refused") as caught:
        open_store("postgresql://user:hidden@127.0.0.1:9/db")
    assert "hidden" not in str(caught.value)


def test_a_user_who_may_not_make_tables_is_told_so(server: str) -> None:
    url = new_database(server)
    with connected(url) as connection:
        connection.execute(text("CREATE ROLE guest LOGIN"))
        connection.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))  # as PostgreSQL does from 15 on
    with pytest.raises(EdgeFLError, match=r"permission denied for schema public.*Its user must be allowed"):
        open_store(url.replace("edgefl@", "guest@"))


def test_a_database_that_the_server_does_not_have_is_an_error(server: str) -> None:
    with pytest.raises(DatabaseUnavailableError, match='database "none" does not exist'):
        open_store(server.rpartition("/")[0] + "/none")


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'edgefl-toolkit\[postgresql\]'"):
        open_store("postgresql://user@127.0.0.1/db")


def test_connections_that_broke_are_replaced(server: str) -> None:
    url = new_database(server)
    end = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name AND pid <> pg_backend_pid()"
    )
    with contextlib.closing(open_store(url)) as store:
        store.federations.add(FEDERATION)
        store.federations.get("fed")
        with connected(server) as connection:
            connection.execute(end, {"name": url.rpartition("/")[2]})
        assert store.federations.get("fed") == FEDERATION
        assert store.federations.move("fed", FederationState.RUNNING, since=[FederationState.CREATED], at=2.0)
        found = store.federations.get("fed")
        assert found == replace(FEDERATION, state=FederationState.RUNNING, changed_at=2.0)


def test_a_database_that_stays_locked_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.storage.database._LOCK_SECONDS", 0.05)
    path = tmp_path / "coordinator.db"
    with (
        contextlib.closing(open_store(f"sqlite:///{path}")) as store,
        contextlib.closing(sqlite3.connect(path)) as lock,
    ):
        lock.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnavailableError, match="database is locked"):
            store.federations.add(FEDERATION)
        assert store.federations.get("fed") is None  # readers do not wait
        lock.rollback()
        assert store.federations.add(FEDERATION)

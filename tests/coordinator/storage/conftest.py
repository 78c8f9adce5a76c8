"""Every test of the store runs over every database: an SQLite file, and a PostgreSQL server."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine

from coordinator.storage.open import open_store
from coordinator.storage.store import Store
from coordinator.storage.tables import metadata
from tests.coordinator.postgresql import new_database


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database of this module."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('store')}/coordinator.db"
    return new_database(request.getfixturevalue("server"))


@pytest.fixture(scope="module")
def opened(url: str) -> Iterator[tuple[Store, Engine]]:
    """The store, opened once a module, and a way to empty it."""
    store = open_store(url)
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield store, engine
    engine.dispose()
    store.close()


@pytest.fixture
def store(opened: tuple[Store, Engine]) -> Store:
    """An empty store, but for the audit log, which cannot be emptied."""
    store, engine = opened
    with engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            if table.name != "audit":
                connection.execute(table.delete())
    return store

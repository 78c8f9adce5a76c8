"""What tests of several layers share: a federation whose clock the test moves, and a coordinator that serves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.rounds.uploads import UploadQueue
from tests.coordinator.fleet import Clock, make_context
from tests.coordinator.http.site import Site, serving
from tests.coordinator.postgresql import postgresql
from tests.coordinator.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    clock = Clock()
    context = make_context(tmp_path, clock)
    intake = UploadQueue(context)
    intake.start()
    yield Stage(context, clock, intake)
    intake.stop()
    context.store.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One coordinator for the tests of a file: starting one takes longer than most tests."""
    with serving(tmp_path_factory.mktemp("coordinator")) as running:
        running.federation()
        yield running


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A PostgreSQL server."""
    with postgresql() as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path

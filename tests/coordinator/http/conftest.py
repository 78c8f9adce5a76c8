"""One coordinator for the tests of a file: starting one takes longer than most tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coordinator.http.site import Site, serving


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("coordinator")) as running:
        running.federation()
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path

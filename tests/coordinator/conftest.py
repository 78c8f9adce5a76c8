"""What tests of rounds share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.rounds.uploads import UploadQueue
from tests.coordinator.fleet import Clock, make_context
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

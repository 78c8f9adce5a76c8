"""A few runs of the chaos script, so that CI sees it; the README names the command for a hundred."""

from pathlib import Path

import pytest

from tests.coordinator.chaos import one_run
from tests.coordinator.postgresql import postgresql


@pytest.mark.slow
def test_a_killed_coordinator_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        run = one_run(seed, folder, f"sqlite:///{folder}/coordinator.db", workers=1)
        assert not run.problems
        assert run.kills


@pytest.mark.slow
def test_two_workers_on_one_postgresql_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    with postgresql() as url:
        run = one_run(3, tmp_path, url, workers=2)
    assert not run.problems
    assert run.kills

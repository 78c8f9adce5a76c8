"""A few kills of the Java client, so that CI sees them; `python -m tests.android_demo.kills` does fifty."""

from pathlib import Path

import pytest

from tests.android_demo.kills import MOMENTS, run


def test_a_client_that_is_killed_loses_nothing_and_sends_nothing_twice(client_jar: Path, tmp_path: Path) -> None:
    outcome = run(client_jar, tmp_path, kills=6, seed=2)
    assert outcome.problems == []
    assert outcome.kills == 6


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["fedavg", "fedmrn"])
def test_fifty_kills_lose_nothing_and_send_nothing_twice(client_jar: Path, tmp_path: Path, method: str) -> None:
    outcome = run(client_jar, tmp_path, kills=50, seed=1, method=method)
    assert outcome.problems == []
    assert outcome.kills == 50
    assert {moment.phase for moment in MOMENTS} <= outcome.phases.keys()

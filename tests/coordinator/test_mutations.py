"""Some of the damaged and forged updates; `python -m tests.coordinator.mutations` sends ten thousand."""

from pathlib import Path

import pytest

from tests.coordinator.mutations import run


def test_mutated_updates_are_refused_with_advice_and_change_nothing(tmp_path: Path) -> None:
    statuses, problems = run(tmp_path, 400, seed=1)
    assert not problems
    assert statuses.keys() <= {400, 413, 422}


@pytest.mark.thorough
def test_ten_thousand_mutated_updates_are_refused(tmp_path: Path) -> None:
    statuses, problems = run(tmp_path, 10_000, seed=2)
    assert not problems
    assert statuses.keys() <= {400, 413, 422}

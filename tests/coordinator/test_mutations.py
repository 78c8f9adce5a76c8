"""Some of the damaged and forged updates; `python -m tests.coordinator.mutations` sends ten thousand."""

from pathlib import Path

from tests.coordinator.mutations import run


def test_mutated_updates_are_refused_with_advice_and_change_nothing(tmp_path: Path) -> None:
    statuses, problems = run(tmp_path, 400, seed=1)
    assert not problems
    assert statuses.keys() <= {413, 422}

"""Java clients and Python agents in one federation; `python -m tests.android_demo.mixed_federation` has the table."""

from pathlib import Path

import pytest

from tests.android_demo.mixed_federation import JAVA, METHODS, Comparison, compare


def check(found: Comparison) -> None:
    assert found.java == JAVA
    assert found.counted == found.expected
    assert found.same_plans
    assert found.first_difference <= 1e-5
    assert abs(found.accuracy - found.python_accuracy) <= 0.01


@pytest.mark.parametrize(("method", "parts"), [("fedavg", "kept"), ("perfedmask", "trained")])
def test_two_rounds_are_those_of_python_alone(client_jar: Path, tmp_path: Path, method: str, parts: str) -> None:
    """The weak devices train less of the model, and every update counts."""
    found = compare(client_jar, tmp_path, method, rounds=2)
    check(found)
    shares = getattr(found, parts)
    assert shares["weak-1"] == shares["weak-2"] < shares["strong-1"] == shares["strong-2"]


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_ten_rounds_are_as_accurate_as_python_alone(client_jar: Path, tmp_path: Path, method: str) -> None:
    check(compare(client_jar, tmp_path, method, rounds=10))

import pytest


@pytest.fixture(autouse=True)
def _no_data_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEFL_DATA", raising=False)

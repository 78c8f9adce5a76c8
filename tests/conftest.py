"""What every test shares: steady property tests, nothing of the caller's settings, and no skipped test in CI."""

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

# Here and not in a fixture, so that commands that tests start do not see them either.
for variable in [name for name in os.environ if name.startswith("EDGEFL_")]:
    del os.environ[variable]

# Nor the data sets in the caller's home: a test that wants one that is not installed makes a small one.
os.environ["EDGEFL_DATA"] = str(Path(tempfile.gettempdir()) / "edgefl-tests-have-no-data-sets")

IN_CI = os.environ.get("CI") == "true"

# Machines are shared and slow at times, so a single example has no deadline; in CI the examples are always the same.
settings.register_profile("edgefl", deadline=None, derandomize=IN_CI)
settings.load_profile("edgefl")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure in CI, where everything that tests need must be installed."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {report.longrepr}"
    return report

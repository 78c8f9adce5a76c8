"""A few runs of the fault script; `python -m tests.device_runtime.fault_script` does hundreds."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_an_agent_that_is_killed_again_and_again_loses_nothing_and_does_nothing_twice() -> None:
    # In a process of its own: it forks, which a process with threads must not.
    command = [sys.executable, "-m", "tests.device_runtime.fault_script", "--runs", "6", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 runs" in done.stdout
    assert ", 0 problems" in done.stdout

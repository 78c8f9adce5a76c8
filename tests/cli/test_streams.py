"""Streams that are closed, full, or too simple for what is written to them: ordinary situations, and no bugs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UPDATE = "tests/golden/update_v1.safetensors"


def shell(words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `edgefl` as a shell does, with its redirections."""
    command = f'"{sys.executable}" -m edgefl {words}'
    return subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=os.environ | environment, capture_output=True, encoding="utf-8"
    )


def test_a_closed_pipe_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "edgefl", "inspect", UPDATE]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, cwd=ROOT)
    os.close(write_end)
    assert done.stderr == b""
    assert done.returncode == 0


def test_a_character_that_the_terminal_lacks_is_replaced() -> None:
    done = shell(f"inspect {UPDATE}", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "gr??er" in done.stdout


def test_a_closed_standard_output_takes_everything() -> None:
    done = shell(f"inspect {UPDATE} >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_standard_input_is_empty() -> None:
    done = shell("inspect - <&-")
    assert done.returncode == 1
    assert "standard input: it is empty" in done.stderr


def test_an_error_never_goes_to_standard_output() -> None:
    done = shell("inspect nowhere 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
def test_a_full_disk_is_said_once_and_without_a_name() -> None:
    done = shell(f"inspect {UPDATE} >/dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("edgefl: error: No space left on device\n")
    assert done.stderr.count("\n") == 2

"""The corpus of every fuzz target, and in `make thorough` a search for more."""

import subprocess
import sys

import pytest

from tests.fuzz.targets import CORPUS, TARGETS

SECONDS = 60


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_of_the_corpus_breaks_its_parser(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    accepted = [TARGETS[name](path.read_bytes()) for path in inputs]
    assert any(accepted)


@pytest.mark.thorough
@pytest.mark.parametrize("name", TARGETS)
def test_a_minute_of_fuzzing_breaks_no_parser(name: str) -> None:
    pytest.importorskip("atheris", reason="atheris, which the extra `dev` installs on Linux with an x86 processor")
    command = [sys.executable, "-m", "tests.fuzz.run", name, "--seconds", str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 240)
    assert done.returncode == 0, done.stderr[-4000:]

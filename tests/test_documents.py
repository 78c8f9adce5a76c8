"""The documents say what is true: their sessions and the Python example are run, their links followed.

The numbers of the README's measured table are not checked here; `make bench` makes them.

`tests/documents/` has more: every command parses and runs, every option is in docs/commands.md.

`python -m tests.test_documents` writes the output of the documents' sessions anew, and docs/commands.md.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from edgefl.cli.main import make_parser
from tests.documents.commands import ROOT, documents
from tests.documents.reference import REFERENCE, reference

DOCUMENTS = documents()
SESSION = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<output>.*?)```", re.DOTALL)


def output_of(command: str) -> str:
    words = shlex.split(command)
    assert words[0] == "edgefl"
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_sessions_print_what_the_document_shows(document: Path) -> None:
    for session in SESSION.finditer(document.read_text()):
        assert output_of(session["command"]) == session["output"], session["command"]


def test_the_readme_has_sessions() -> None:
    assert len(SESSION.findall((ROOT / "README.md").read_text())) >= 2


def test_the_python_example_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    (promised,) = re.findall(r"print\(.*\)  # (.*)", code)
    assert capsys.readouterr().out.strip() == promised


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_the_map_of_the_readme_names_folders_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    named = re.findall(r"^    (\w+)/ ", text.partition("## Map")[2], re.MULTILINE)
    assert set(named) >= {"edgefl", "export", "device_runtime", "coordinator", "tests"}
    assert all((ROOT / name).is_dir() for name in named)


def test_every_verb_is_in_the_readme() -> None:
    (verbs,) = (action for action in make_parser()._actions if action.dest == "verb")
    assert verbs.choices is not None
    text = (ROOT / "README.md").read_text()
    assert all(f"edgefl {verb}" in text for verb in verbs.choices)


if __name__ == "__main__":
    REFERENCE.write_text(reference(), encoding="utf-8")
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        filled = SESSION.sub(lambda m: f"```console\n$ {m['command']}\n{output_of(m['command'])}```", text)
        if filled != text:
            path.write_text(filled, encoding="utf-8")

"""The documents say what is true: their sessions and the Python example are run.

The numbers in docs/measured.md are not checked here; `make bench` makes them. `tests/documents/test_site.py` follows
the links.

`tests/documents/` has more: every command parses and runs, every option is in docs/commands.md.

`python -m tests.test_documents` writes the output of the documents' sessions anew, docs/commands.md and
docs/messages.md.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.commands import ROOT, documents
from tests.documents.messages import PAGE, messages_page
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


def test_documents_have_sessions() -> None:
    """Or the search for them is broken."""
    assert len(SESSION.findall("".join(path.read_text() for path in DOCUMENTS))) >= 2


def test_the_python_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python_api.md").read_text(), re.DOTALL)
    exec(compile(code, "python_api.md", "exec"), {})
    (promised,) = re.findall(r"print\(.*\)  # (.*)", code)
    assert capsys.readouterr().out.strip() == promised


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_map_names_folders_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"^    (\w+)/ ", text.partition("## Where things are")[2], re.MULTILINE)
    assert set(named) >= {"edgefl", "export", "device_runtime", "coordinator", "tests"}
    assert all((ROOT / name).is_dir() for name in named)


def test_every_figure_has_a_command_and_a_date() -> None:
    rows = [
        line for line in (ROOT / "docs" / "measured.md").read_text().splitlines() if re.match(r"\| (?!what|---)", line)
    ]
    assert len(rows) > 20
    for row in rows:
        assert re.search(r"\| `(edgefl bench|python -m benchmarks)[^|]*\| \d{4}-\d\d-\d\d \|$", row), row


if __name__ == "__main__":
    REFERENCE.write_text(reference(), encoding="utf-8")
    PAGE.write_text(messages_page(), encoding="utf-8")
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        filled = SESSION.sub(lambda m: f"```console\n$ {m['command']}\n{output_of(m['command'])}```", text)
        if filled != text:
            path.write_text(filled, encoding="utf-8")

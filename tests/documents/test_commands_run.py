"""Every `edgefl` command that a document prints is run: in order, in a folder of its own, in a small form.

What is made smaller, and what is only parsed and why, is in `small.py`; what texts presume is in `world.py`. Python
examples are run too, and files that a document shows after "This is `NAME`:" are written. `docs/commands.md` is the
parser's own help: its examples are parsed.
"""

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgefl.cli.main import main
from tests.documents.commands import Command, commands_in, documents
from tests.documents.small import NOT_RUN, made_small, reason_not_to_run
from tests.documents.world import World, join, provide, serve

SHOWN = re.compile(r"This is `(?P<name>[\w.-]+)`:\n\n```\w+\n(?P<text>.*?)```", re.DOTALL)
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
RUN = [path for path in documents() if path.name != "commands.md" and commands_in(path)]
_known: set[frozenset[str]] = set()
"""Measurements that this process has made: they are not made again for another document."""


@pytest.fixture(scope="module")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Opening"]:
    with contextlib.ExitStack() as stack:
        yield Opening(stack, tmp_path_factory.mktemp("world"))


class Opening:
    """Opens the world for the first command that needs it."""

    def __init__(self, stack: contextlib.ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        self._world: World | None = None

    def __call__(self) -> World:
        if self._world is None:
            self._world = self._stack.enter_context(World.begun(self._folder))
        return self._world


@pytest.mark.parametrize("document", RUN, ids=lambda path: path.name)
def test_the_commands_of_a_document_run(
    document: Path, world_of: Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    for shown in SHOWN.finditer(document.read_text()):
        (tmp_path / shown["name"]).write_text(shown["text"])
    for command in commands_in(document):
        if command.words[0] == "edgefl" and not reason_not_to_run(command.text):
            _run(command, world_of, tmp_path, monkeypatch)


def _run(command: Command, world_of: Opening, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = made_small(command.words)
    verb = words[1]
    if verb in ("bench", "profile"):
        if frozenset(words) in _known:
            return
        _known.add(frozenset(words))
    for word in words:
        provide(word.partition("@")[0], folder)
    if verb in ("fed", "join", "predict") or "--federation" in words:
        words = _in_the_world(words, world_of(), folder)
        for name, value in world_of().environment.items():
            monkeypatch.setenv(name, value)
    where = f"{command.document}, line {command.line}: {' '.join(words)}"
    if verb == "serve":
        serve(words, folder)
    elif verb == "join":
        join(words, world_of(), folder)
    elif verb == "--version":
        with pytest.raises(SystemExit, match="0"):
            main(words[1:])
    else:
        if verb == "simulate" and "--out" in words:
            shutil.rmtree(folder / words[words.index("--out") + 1], ignore_errors=True)
        assert main(words[1:]) == 0, where


def _in_the_world(words: list[str], world: World, folder: Path) -> list[str]:
    """Put real names where a document has words such as DEVICE_ID, and this machine where it has another."""
    verb = words[1:3]
    names = {"DEVICE_ID": "device-2" if verb == ["fed", "revoke-device"] else "device-1"}
    if verb == ["fed", "revoke-key"]:
        names["KEY_ID"] = world.key_id()
    if verb == ["fed", "abort"]:
        names["digits"] = "ended"
    if verb[0] == "join":
        names |= {word: world.running.url for word in words if word.startswith("http")}
        names |= {"JOIN_KEY": world.solo_key, "KEY": world.solo_key}
    if verb[0] == "predict" and not list((folder / ".edgefl").rglob("identity.json")):
        provide("pi.json", folder)
        join(made_small(["edgefl", "join", world.running.url, "--data", "mine.npz"]), world, folder)
    return [names.get(word, word) for word in words]


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_python_examples_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for code in PYTHON.findall(document.read_text()):
        compiled = compile(code, document.name, "exec")
        if "..." not in code:  # else something is left out, and reading it is all that can be done
            exec(compiled, {})


def test_what_is_not_run_is_in_a_document() -> None:
    texts = [command.text for path in RUN for command in commands_in(path)]
    for pattern, reason in NOT_RUN:
        assert any(re.search(pattern, text) for text in texts), (pattern, reason)

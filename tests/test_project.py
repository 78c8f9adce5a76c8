"""The project itself: a bare install works, and the rooms keep their promises about what they import."""

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import edgefl
from tests.installing import copy_project, install, packages_in

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"

BLOCKER = """
import importlib, pkgutil, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(name + " is blocked in this test")
sys.meta_path.insert(0, Blocker())
for room in {rooms!r}:
    package = importlib.import_module(room)
    for module in pkgutil.walk_packages(package.__path__, room + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(sorted(name for name in sys.modules if name.partition(".")[0] in {blocked!r}))
"""


def run(*command: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | changes
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)


@pytest.mark.parametrize("room", ["device_runtime", "edgefl"])
def test_a_room_imports_whole_without_frameworks(room: str) -> None:
    blocked = ["torch", "executorch", "fastapi", "pydantic", "scipy", "sklearn", "matplotlib", "plotly", "shtab"]
    done = run(sys.executable, "-c", BLOCKER.format(blocked=blocked, rooms=[room]))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_blocker_blocks() -> None:
    done = run(sys.executable, "-c", BLOCKER.format(blocked=["numpy"], rooms=["edgefl"]))
    assert done.returncode == 1
    assert "numpy is blocked in this test" in done.stderr


def test_help_is_shown_without_importing_numpy() -> None:
    code = (
        "import sys; from edgefl.cli.main import make_parser; make_parser().format_help();"
        "print([n for n in ('numpy', 'safetensors', 'edgefl.wire', 'edgefl.data') if n in sys.modules])"
    )
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_every_module_says_what_it_is_for_and_what_is_public() -> None:
    for module in pkgutil.walk_packages([str(ROOT / "edgefl")], "edgefl."):
        if module.name.endswith("__main__"):
            continue
        loaded = __import__(module.name, fromlist=["x"])
        if module.ispkg and not hasattr(loaded, "__all__"):
            continue
        missing = [name for name in loaded.__all__ if not hasattr(loaded, name)]
        assert not missing, f"{module.name}.__all__ names {missing}"
        assert loaded.__doc__, f"{module.name} does not say what it is for"


def test_no_module_unpickles() -> None:
    for path in ROOT.glob("*/**/*.py"):
        if path.parts[len(ROOT.parts)] in {"edgefl", "export", "device_runtime", "coordinator"}:
            text = path.read_text()
            assert "import pickle" not in text, path
            assert "allow_pickle=True" not in text, path


def test_the_citation_names_this_version_and_licence() -> None:
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    assert "cff-version: 1.2.0" in citation
    assert f"version: {edgefl.__version__}" in citation
    assert "license: Apache-2.0" in citation
    assert {"message", "title", "authors", "type"} <= {line.partition(":")[0] for line in citation}


@pytest.mark.slow
def test_a_bare_install_shows_help_and_inspects_files(tmp_path: Path) -> None:
    source = tmp_path / "source"
    copy_project(source)
    tools = tmp_path / "venv" / "bin"
    install(tmp_path / "venv", str(source))
    assert packages_in(tmp_path / "venv") == {"edgefl-toolkit", "numpy", "safetensors"}

    tool = str(tools / "edgefl")
    assert run(tool, "--version").stdout == f"edgefl {edgefl.__version__}\n"
    assert "inspect" in run(tool, "--help").stdout
    shown = run(tool, "inspect", str(GOLDEN / "update_v1.safetensors"))
    assert "update body" in shown.stdout, shown.stderr
    assert run(tool, "inspect", "--json", str(GOLDEN / "mask_v1.safetensors")).returncode == 0
    assert run(tool, "data", "list").returncode == 0

    missing = run(tool, "completion", "bash")
    assert missing.returncode == 1
    assert "pip install 'edgefl-toolkit[completion]'" in missing.stderr
    missing = run(tool, "data", "show")
    assert missing.returncode == 1
    assert "pip install 'edgefl-toolkit[data]'" in missing.stderr

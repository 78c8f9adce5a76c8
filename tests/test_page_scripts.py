"""The scripts of the web pages: how `make check` checks them, and where it does not."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "check-page-scripts"


def check(folder: Path, node: str | None, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the script with nothing on the path but the shell's tools and a Node.js that claims a version."""
    for name in ("dirname", "touch"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    if node is not None:
        major, minor, _ = map(int, node.split("."))
        new_enough = major > 20 or (major == 20 and minor >= 19)
        text = f'#!/bin/sh\n[ "$1" = --version ] && echo v{node} && exit\nexit {int(not new_enough)}\n'
        for name in ("node", "npm"):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
    shell = shutil.which("sh")
    assert shell is not None
    return subprocess.run([shell, SCRIPT], capture_output=True, text=True, env={"PATH": str(folder), **environment})


@pytest.mark.parametrize("node", [None, "18.20.4"])
def test_without_node_the_check_is_skipped_and_says_why(tmp_path: Path, node: str | None) -> None:
    done = check(tmp_path, node)
    assert done.returncode == 0
    assert "are not checked: " + ("node and npm" if node is None else "eslint needs Node.js 20.19") in done.stderr


@pytest.mark.parametrize("node", [None, "20.18.0"])
def test_in_ci_the_check_is_never_skipped(tmp_path: Path, node: str | None) -> None:
    assert check(tmp_path, node, CI="true").returncode == 1


def test_the_tools_are_pinned_and_the_lock_file_names_no_registry() -> None:
    manifest = json.loads((ROOT / "package.json").read_text())
    assert set(manifest["devDependencies"]) >= {"eslint", "typescript"}
    assert "dependencies" not in manifest
    assert all(re.fullmatch(r"[\d.]+", version) for version in manifest["devDependencies"].values())
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert packages[""]["devDependencies"] == manifest["devDependencies"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert all("integrity" in package for name, package in packages.items() if name)


def test_scripts_are_checked_as_they_are() -> None:
    """Nothing is excused from a rule or from its types."""
    scripts = [*ROOT.glob("coordinator/page/static/*.js"), *ROOT.glob("edgefl/charts/static/*.js")]
    assert len(scripts) > 20
    for path in scripts:
        assert not re.search(r"eslint-disable|@ts-(ignore|nocheck|expect-error)", path.read_text()), path.name

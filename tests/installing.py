"""Virtual environments that tests make, with uv: it needs no pip, neither there nor here."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["UV", "copy_project", "install", "packages_in"]

UV = str(Path(sys.executable).with_name("uv"))


def copy_project(folder: Path) -> None:
    """Copy the files of this project that an installation may need."""
    left_out = (".venv*", "node_modules", ".git", ".*_cache", "*.egg-info", "build", "runs", "site", "__pycache__")
    shutil.copytree(Path(__file__).parents[1], folder, ignore=shutil.ignore_patterns(*left_out, "tests"))


def install(environment: Path, what: str) -> None:
    """Make an environment with this Python, and install something in it."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, environment], check=True)
    subprocess.run([UV, "pip", "install", "--quiet", "--python", environment, what], check=True)


def packages_in(environment: Path) -> set[str]:
    """Return the names of all packages of an environment."""
    command = [UV, "pip", "list", "--python", str(environment), "--format=json"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    return {package["name"] for package in json.loads(listed.stdout)}

"""A virtual environment of its own with something installed in it, by the pip of this one: that saves it a pip."""

import json
import subprocess
import sys
from pathlib import Path

__all__ = ["install", "packages_in"]


def install(environment: Path, what: str) -> None:
    """Make the environment, and install something there."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    subprocess.run([*_pip(environment), "install", "--quiet", what], check=True)


def packages_in(environment: Path) -> set[str]:
    """Return the names of all packages of an environment."""
    told = subprocess.run([*_pip(environment), "list", "--format=json"], check=True, capture_output=True, text=True)
    return {package["name"] for package in json.loads(told.stdout)}


def _pip(environment: Path) -> list[str]:
    return [sys.executable, "-m", "pip", "--python", str(environment), "--disable-pip-version-check"]

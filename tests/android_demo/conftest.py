"""The Java client's jar and the phone app's APK, built once for all processes that run tests."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "android_demo"
PACKAGES = "maven and default-jdk-headless (sudo apt-get install maven default-jdk-headless)"
MAVEN = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"]


def once(factory: pytest.TempPathFactory, name: str, work: Callable[[Path], None]) -> Path:
    """Return a path that the first of several processes fills, while the others wait."""
    shared = factory.getbasetemp()
    if shared.name.startswith("popen-"):  # each process of pytest-xdist has a folder in the one that they share
        shared = shared.parent
    with (shared / f"{name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = shared / f"{name}.done"
        if not done.exists():
            work(shared / name)
            done.touch()
    return shared / name


@pytest.fixture(scope="session")
def maven_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what `mvn verify` printed; an empty file if it succeeded."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip(f"the Java client is not built: it needs {PACKAGES}")

    def build(log: Path) -> None:
        # Tests of the app start a coordinator.
        command = [*MAVEN, "verify", f"-Dedgefl.python={sys.executable}", f"-Dedgefl.root={ROOT}"]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
        log.write_text(done.stdout + done.stderr if done.returncode else "", encoding="utf-8")

    return once(tmp_path_factory, "maven.log", build)


@pytest.fixture(scope="session")
def built(maven_log: Path) -> Path:
    """Return the folder of the Java project, built."""
    if maven_log.read_text(encoding="utf-8"):
        pytest.fail("the Java client does not build: see the test of its build")
    return PROJECT


@pytest.fixture(scope="session")
def client_jar(built: Path) -> Path:
    """Return the desktop client, a jar that has everything that it needs."""
    return built / "desktop" / "target" / "edgefl-client.jar"


@pytest.fixture(scope="session")
def apk(built: Path) -> Path:
    """Return the phone app, without an engine."""
    return built / "app" / "target" / "edgefl.apk"


def build_app(project: Path, phase: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Build the app alone, from what Maven has already downloaded, in another zone, locale and umask than usual."""
    command = [*MAVEN, "--offline", "--projects", "app", "--also-make", phase, "-Dmaven.test.skip=true", *options]
    environment = {**os.environ, "TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8"}
    return subprocess.run(command, cwd=project, env=environment, umask=0o077, capture_output=True, text=True)


@pytest.fixture
def elsewhere(built: Path, tmp_path: Path) -> Path:
    """Return a copy of the Java project's sources in another folder."""
    return Path(shutil.copytree(built, tmp_path / "project", ignore=shutil.ignore_patterns("target")))


@pytest.fixture
def built_elsewhere(built: Path, tmp_path: Path) -> Path:
    """Return a copy of the Java project in another folder, compiled; without what is large."""
    large = shutil.ignore_patterns("robolectric", "lib", "surefire-reports", "*.jar", "*.apk")
    return Path(shutil.copytree(built, tmp_path / "project", ignore=large))

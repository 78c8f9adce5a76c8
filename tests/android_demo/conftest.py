"""The Java client's jar, built once for all processes that run tests."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "android_demo"
PACKAGES = "maven and default-jdk-headless (sudo apt-get install maven default-jdk-headless)"


@pytest.fixture(scope="session")
def maven_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what `mvn verify` printed; an empty file if it succeeded."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip(f"the Java client is not built: it needs {PACKAGES}")
    shared = tmp_path_factory.getbasetemp()
    if shared.name.startswith("popen-"):  # each process of pytest-xdist has a folder in the one that they share
        shared = shared.parent
    log = shared / "maven.log"
    with (shared / "maven.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            command = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "verify"]
            done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
            log.write_text(done.stdout + done.stderr if done.returncode else "", encoding="utf-8")
    return log


@pytest.fixture(scope="session")
def client_jar(maven_log: Path) -> Path:
    """Return the desktop client, a jar that has everything that it needs."""
    if maven_log.read_text(encoding="utf-8"):
        pytest.fail("the Java client does not build: see the test of its build")
    return PROJECT / "desktop" / "target" / "edgefl-client.jar"

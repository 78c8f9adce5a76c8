"""The desktop client as a user starts it, with Java's options for short lives: a test starts it hundreds of times."""

import subprocess
from pathlib import Path

__all__ = ["JVM", "JavaClient", "java_client_jar"]

# Only the first compiler and a collector without threads: half the start, and two cores are left for others.
JVM = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")


def java_client_jar() -> Path:
    """Return the jar, built from the sources as they are, for scripts that run without pytest."""
    from tests.android_demo.conftest import PROJECT

    command = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "-DskipTests", "package"]
    subprocess.run(command, cwd=PROJECT, check=True)
    return PROJECT / "desktop" / "target" / "edgefl-client.jar"


class JavaClient:
    """One device: a home folder and its samples."""

    def __init__(self, jar: Path, home: Path, data: Path) -> None:
        self.jar, self.home, self.data = jar, home, data

    @property
    def temporary(self) -> Path:
        return self.home.with_name(self.home.name + "-tmp")

    def command(self, uri: str, *options: str) -> list[str]:
        # A folder of its own, so that a test sees what a client leaves there.
        self.temporary.mkdir(parents=True, exist_ok=True)
        java = [*JVM, f"-Djava.io.tmpdir={self.temporary}", "-jar", str(self.jar)]
        return [*java, "join", uri, "--data", str(self.data), "--home", str(self.home), "--threads", "1", *options]

    def run(self, uri: str, *options: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.command(uri, *options), capture_output=True, text=True, timeout=120)

"""A Raspberry Pi 4 without a Raspberry Pi: Debian's arm64 Python and the packages of a device, run by qemu.

Good for what a Pi computes, never for how long it takes. Nothing is installed on this machine: arm64 packages of its
own Debian release and aarch64 wheels are unpacked into two folders, which stay in the cache of the person who runs the
tests ($XDG_CACHE_HOME/edgefl-tests, about 210 MB) until somebody removes them. No root rights and no chroot are needed.

A process inside sees the files of this machine where the unpacked ones have none. It cannot start another process.
"""

import fcntl
import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.installing import UV

PROJECT = Path(__file__).parents[2]

_LONGEST_SECONDS = 900  # for each command: seconds on an idle machine, minutes on a busy one

_COMMANDS = {"qemu-aarch64-static": "qemu-user-static", "mmdebstrap": "mmdebstrap"}
"""Commands that are needed, and the Debian packages that have them."""

_DEBIAN = ("python3-minimal", "libpython3-stdlib", "libstdc++6", "libgomp1", "zlib1g")
"""What Python and onnxruntime need of the system."""

_PLATFORM = "aarch64-manylinux_2_28"

# The four cores of a Raspberry Pi 4. onnxruntime looks here for what the processor can do, and crashes if it finds the
# file of an x86.
_CORE = """processor\t: {core}
Features\t: fp asimd evtstrm crc32 cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd08
CPU revision\t: 3
"""


@dataclass(frozen=True, slots=True)
class EmulatedPi:
    """The two folders, ready to run."""

    root: Path
    """The files of its system."""
    site: Path
    """Its Python packages."""

    def run(self, module: str, *arguments: str) -> None:
        """Run a module of this project inside, with the project as its working folder."""
        python = str(self.root / "usr/bin/python3")
        environment = {
            "PYTHONPATH": f"{self.site}{os.pathsep}{PROJECT}",
            "LANG": "C.UTF-8",
            "PATH": "",  # commands of this machine are none of the Pi's
            "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime from 1.29 on reports its use to its makers; a test must not
        }
        run(
            *(_command("qemu-aarch64-static"), "-cpu", "cortex-a72", "-L", str(self.root), python, "-m", module),
            *arguments,
            environment=environment,
        )


def why_not() -> str | None:
    """Say why there can be no emulated Pi on this machine, or None if there can."""
    absent = [package for command, package in _COMMANDS.items() if shutil.which(command) is None]
    if absent:
        return f"needs the Debian packages {', '.join(absent)} (sudo apt-get install {' '.join(absent)})"
    system = platform.freedesktop_os_release().get("ID")
    return None if system == "debian" else f"needs Debian, whose archive also has arm64 packages; this is {system}"


def emulated_pi(packages: Sequence[str]) -> EmulatedPi:
    """Return a Pi that has these Python packages in the versions of this environment. The first call makes it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgefl-tests"
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    root = made_once(
        cache / f"pi-{release}-{_key(*_DEBIAN, _CORE)}",
        lambda folder: _make_root(folder, release),
    )
    python = (root / "usr/bin/python3").readlink().name.removeprefix("python")
    pins = [f"{name}=={importlib.metadata.version(name)}" for name in packages]
    site = made_once(
        cache / f"pi-python{python}-{_key(*pins, _PLATFORM)}",
        lambda folder: _make_site(folder, python, pins),
    )
    return EmulatedPi(root, site)


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder that the first process to come here makes, whole or not at all, while others wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            half = folder.with_name(f"{folder.name}.half")
            shutil.rmtree(half, ignore_errors=True)  # of a process that was killed
            half.mkdir()
            make(half)
            half.rename(folder)
    return folder


def run(*words: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return what it printed; what it complained of is in the error if it fails."""
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=PROJECT, env=environment, timeout=_LONGEST_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout


def _make_root(folder: Path, release: str) -> None:
    """Unpack arm64 packages from where this machine has its own."""
    wanted = ["Identifier: Packages", "Component: main", f"Release: {release}"]
    entries = run(_command("apt-get"), "indextargets", "--format", "$(SOURCESENTRY)", *wanted).split()
    sources = sorted({entry.rpartition(":")[0] for entry in entries})  # without the line in the file
    if not sources:
        raise RuntimeError(f"apt has no source with the release {release}, component main, in /etc/apt")
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
        settings.write(run(_command("apt-config"), "dump", "Acquire"))  # proxies, for one
        settings.write('APT::Sandbox::User "root";\n')  # the cache is nothing that another user may read
        settings.flush()
        # Packages are unpacked only and none of their scripts run. So the mode, which would run them on this machine,
        # is safe; it alone works without root rights and name spaces.
        run(
            *(_command("mmdebstrap"), "--quiet", "--arch=arm64", "--variant=extract", "--mode=chrootless"),
            *(f"--include={','.join(_DEBIAN)}", f"--aptopt={settings.name}", release, str(folder), *sources),
        )
    shutil.rmtree(folder / "etc/apt")  # whatever the settings hold, a cache need not keep it
    (folder / "proc").mkdir()
    (folder / "proc/cpuinfo").write_text("\n".join(_CORE.format(core=core) for core in range(4)))


def _make_site(folder: Path, python: str, pins: Sequence[str]) -> None:
    """Unpack aarch64 wheels."""
    run(
        *(UV, "pip", "install", "--quiet", "--python", sys.executable, "--target", str(folder)),
        *("--only-binary=:all:", f"--python-platform={_PLATFORM}", f"--python-version={python}"),
        *pins,
    )


def _key(*recipe: str) -> str:
    return hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:12]


def _command(name: str) -> str:
    return shutil.which(name) or name

"""Install this project with one of its extras, editable and with uv: `.venv/bin/python .ci/install.py dev`.

On Linux the package index has torch as a CUDA build, which brings gigabytes of libraries that nothing here uses.
PyTorch publishes CPU builds on a page of its own. They are taken from there if the page answers within three seconds
and has a wheel for this Python; otherwise torch comes from the package index. One line says which, and why. A problem
with the page never stops the installation. `TORCH_INDEX` in the environment names another page of wheels; if it is
empty, no page is used.
"""

import importlib.metadata
import os
import platform
import queue
import re
import subprocess
import sys
import threading
import tomllib
import urllib.parse
import urllib.request
from pathlib import Path

__all__ = ["CPU_WHEELS", "install", "pinned_torch", "why_not"]

CPU_WHEELS = "https://download.pytorch.org/whl/cpu/torch/"
ANSWER_SECONDS = 3.0
READ_SECONDS = 30.0
ROOT = Path(__file__).resolve().parents[1]


def install(extra: str, page: str) -> int:
    """Install the project with an extra; return uv's exit code."""
    version = pinned_torch(extra)
    offered = version is not None and not _has_torch(version) and _offers(page, version)
    if offered and _uv_install(extra, "--find-links", page) == 0:
        return 0
    if offered:
        _say(f"torch: {page} has it, but installing from there failed; trying the package index")
    return _uv_install(extra)


def pinned_torch(extra: str) -> str | None:
    """Return the version of torch that an extra pins, or None if it has no torch."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    return next((line.removeprefix("torch==") for line in extras[extra] if line.startswith("torch==")), None)


def why_not(
    page: str, version: str, *, answer_seconds: float = ANSWER_SECONDS, read_seconds: float = READ_SECONDS
) -> str | None:
    """Say why a page of wheels cannot be used for torch, or None if it can."""
    if not page:
        return "TORCH_INDEX is empty"
    found: queue.SimpleQueue[str | Exception] = queue.SimpleQueue()
    # A daemon thread, because looking up a host name cannot be interrupted.
    threading.Thread(target=_read, args=(page, found), daemon=True).start()
    try:
        first = found.get(timeout=answer_seconds)
    except queue.Empty:
        return f"{page} did not answer within {answer_seconds:g} s"
    try:
        text = first if isinstance(first, Exception) else found.get(timeout=read_seconds)
    except queue.Empty:
        return f"{page} took more than {read_seconds:g} s to send"
    if isinstance(text, Exception):
        return f"{page} cannot be read ({text})"
    return None if _lists(text, version) else f"{page} has no CPU build of torch {version} for this Python"


def _read(page: str, found: "queue.SimpleQueue[str | Exception]") -> None:
    try:
        with urllib.request.urlopen(page, timeout=READ_SECONDS) as answer:
            found.put("answered")
            found.put(answer.read().decode(errors="replace"))
    except Exception as problem:  # any problem is a reason to do without the page
        found.put(problem)


def _lists(text: str, version: str) -> bool:
    """Say whether a page names a CPU wheel of torch for this Python and this machine."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheel = rf"torch-{re.escape(version)}\+cpu-{python}-{python}-\w*linux\w*_{platform.machine()}\.whl"
    return re.search(wheel, urllib.parse.unquote(text)) is not None


def _offers(page: str, version: str) -> bool:
    if sys.platform != "linux":
        return False  # elsewhere the package index has CPU builds
    reason = why_not(page, version)
    _say(
        f"torch: the CPU build, from {page}"
        if reason is None
        else f"torch: from the package index, which has a CUDA build of several gigabytes for Linux: {reason}"
    )
    return reason is None


def _has_torch(version: str) -> bool:
    try:
        return importlib.metadata.version("torch").partition("+")[0] == version
    except importlib.metadata.PackageNotFoundError:
        return False


def _uv_install(extra: str, *options: str) -> int:
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "pip", "install", "--quiet", "--python", sys.executable, *options, "--editable", f".[{extra}]"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(install(sys.argv[1], os.environ.get("TORCH_INDEX", CPU_WHEELS)))

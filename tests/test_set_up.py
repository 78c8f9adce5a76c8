"""Set-up takes torch from PyTorch's page of CPU builds where that works, and never depends on it."""

import contextlib
import hashlib
import importlib.util
import platform
import re
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from urllib.parse import quote, unquote

import pytest

from tests.installing import UV

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "install.py"
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
WHEEL = f"torch-2.13.0+cpu-{TAG}-{TAG}-manylinux_2_28_{platform.machine()}.whl"

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="CUDA builds are on Linux alone")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def serving(files: dict[str, bytes], *, waits: float = 0.0, status: int = 200) -> Iterator[str]:
    """Serve files from 127.0.0.1, after a while if wanted."""
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            released.wait(waits)
            body = files.get(unquote(self.path))
            with contextlib.suppress(OSError):  # nobody waits for it any more
                self.send_response(404 if body is None else status)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        released.set()
        server.shutdown()
        server.server_close()


def page(*wheels: str) -> bytes:
    return "".join(f'<a href="/{quote(wheel)}">{wheel}</a><br/>\n' for wheel in wheels).encode()


def test_the_page_is_the_published_one_and_the_version_the_pinned_one(script: ModuleType) -> None:
    assert script.CPU_WHEELS == "https://download.pytorch.org/whl/cpu/torch/"
    assert script.ANSWER_SECONDS == 3
    assert script.pinned_torch("dev") == script.pinned_torch("export") == "2.13.0"
    assert script.pinned_torch("simulate") is None


@pytest.mark.parametrize("wheel", [WHEEL, quote(WHEEL)])
def test_a_page_that_lists_the_wheel_is_used(script: ModuleType, wheel: str) -> None:
    with serving({"/torch/": page("torch-2.12.0+cpu.whl") + wheel.encode()}) as url:
        assert script.why_not(f"{url}torch/", "2.13.0") is None


@pytest.mark.parametrize(
    "wheel",
    [
        WHEEL.replace("2.13.0", "2.12.0"),
        WHEEL.replace(TAG, "cp39"),
        WHEEL.replace(platform.machine(), "s390x"),
        WHEEL.replace("+cpu", "+cu130"),
    ],
)
def test_a_page_without_a_wheel_for_this_machine_is_not_used(script: ModuleType, wheel: str) -> None:
    with serving({"/": page(wheel)}) as url:
        assert script.why_not(url, "2.13.0") == f"{url} has no CPU build of torch 2.13.0 for this Python"


def test_a_page_that_hangs_is_given_up_in_time(script: ModuleType) -> None:
    with serving({"/": page(WHEEL)}, waits=60) as url:
        began = time.monotonic()
        assert script.why_not(url, "2.13.0", answer_seconds=0.2) == f"{url} did not answer within 0.2 s"
        assert time.monotonic() - began < 30


def test_a_page_that_stops_half_way_is_given_up(script: ModuleType) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        held = []

        def answer() -> None:
            connection, _ = listening.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<html>")
            held.append(connection)

        threading.Thread(target=answer, daemon=True).start()
        assert script.why_not(url, "2.13.0", read_seconds=0.2) == f"{url} took more than 0.2 s to send"
        held[0].close()


def test_a_page_that_refuses_is_not_used(script: ModuleType) -> None:
    with serving({}) as url:
        missing = script.why_not(url, "2.13.0")
    assert missing == f"{url} cannot be read (HTTP Error 404: Not Found)"
    refused = script.why_not(url, "2.13.0")  # nobody listens there any more
    assert refused is not None
    assert "refused" in refused
    assert script.why_not("", "2.13.0") == "TORCH_INDEX is empty"
    assert "cannot be read" in (script.why_not("nonsense", "2.13.0") or "")


@needs_linux
@pytest.mark.parametrize(("broken", "calls"), [(False, 1), (True, 2)])
def test_an_index_that_fails_never_stops_the_installation(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], broken: bool, calls: int
) -> None:
    """Where the page looks good and uv cannot install from it, uv is called again without it."""
    called: list[tuple[str, ...]] = []

    def uv(extra: str, *options: str) -> int:
        called.append(options)
        return int(broken and bool(options))

    monkeypatch.setattr(script, "_uv_install", uv)
    monkeypatch.setattr(script, "_has_torch", lambda version: False)
    with serving({"/": page(WHEEL)}) as url:
        assert script.install("dev", url) == 0
        assert called == [("--find-links", url), ()][:calls]
        said = capsys.readouterr().err
        assert said.startswith(f"torch: the CPU build, from {url}\n")
        assert ("trying the package index" in said) is broken


@needs_linux
def test_without_a_page_the_reason_is_said_once(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[tuple[str, ...]] = []

    def uv(extra: str, *options: str) -> int:
        called.append(options)
        return 0

    monkeypatch.setattr(script, "_uv_install", uv)
    monkeypatch.setattr(script, "_has_torch", lambda version: False)
    assert script.install("dev", "") == 0
    assert called == [()]
    assert re.fullmatch(r"torch: from the package index, .*: TORCH_INDEX is empty\n", capsys.readouterr().err)


def test_extras_without_torch_ask_no_page(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "_uv_install", lambda extra, *options: len(options))
    monkeypatch.setattr(script, "why_not", None)
    assert script.install("simulate", "http://127.0.0.1:1/") == 0


def wheel_bytes(path: Path, name: str, version: str) -> tuple[str, bytes]:
    """Return the name and bytes of a wheel that has nothing in it."""
    info = f"{name}-{version}.dist-info"
    file = path / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return file.name, file.read_bytes()


def test_uv_prefers_the_cpu_build_of_the_page_to_the_index(tmp_path: Path) -> None:
    """What the script relies on: `torch==2.13.0` takes 2.13.0+cpu from the page, and all else from the index."""
    plain, cpu = (wheel_bytes(tmp_path, "torch", version) for version in ("2.13.0", "2.13.0+cpu"))
    numpy = wheel_bytes(tmp_path, "numpy", "9.0")
    digest = hashlib.sha256(cpu[1]).hexdigest()
    index = {
        "/simple/torch/": f'<a href="/{plain[0]}">{plain[0]}</a>'.encode(),
        "/simple/numpy/": f'<a href="/{numpy[0]}">{numpy[0]}</a>'.encode(),
        "/whl/cpu/torch/": f'<a href="/{quote(cpu[0])}#sha256={digest}">{cpu[0]}</a>'.encode(),
        **{f"/{name}": content for name, content in (plain, cpu, numpy)},
    }
    with serving(index) as url:
        command = [UV, "pip", "install", "--no-config", "--no-cache", "--python", sys.executable]
        command += ["--target", str(tmp_path / "site"), "--default-index", f"{url}simple/", "torch==2.13.0", "numpy"]
        subprocess.run([*command, "--quiet", "--find-links", f"{url}whl/cpu/torch/"], check=True)
    folders = {path.name for path in (tmp_path / "site").glob("*.dist-info")}
    assert folders == {"torch-2.13.0+cpu.dist-info", "numpy-9.0.dist-info"}

"""The way to a coordinator, measured against a real server on this machine."""

import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from device_runtime.profiler.network import LARGEST_BYTES, SMALLEST_BYTES, measure_speed
from edgefl.errors import EdgeFLError, MissingDependencyError

KEY = "open sesame"
SLOW_BYTES_PER_SECOND = 1_000_000


class Speed(BaseHTTPRequestHandler):
    """What a coordinator does at /v1/speed; other first parts of the path make it slow or wrong."""

    asked: list[tuple[str, int]] = []  # noqa: RUF012  a record of all requests, emptied before each test

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        size = int(parse_qs(parts.query)["bytes"][0])
        self.asked.append(("GET", size))
        if not self._let_in(parts.path):
            return
        sent = size // 2 if parts.path.startswith("/short") else size
        if parts.path.startswith("/slow"):
            time.sleep(size / SLOW_BYTES_PER_SECOND)
        self.send_response(200)
        self.send_header("Content-Length", str(sent))
        self.end_headers()
        self.wfile.write(bytes(sent))

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.asked.append(("POST", len(self.rfile.read(size))))
        if self._let_in(self.path):
            self.send_response(204)
            self.end_headers()

    def _let_in(self, path: str) -> bool:
        status = 401 if self.headers["Authorization"] != f"Bearer {KEY}" else 200
        status = 404 if not path.endswith("/v1/speed") or path.startswith("/else") else status
        status = 500 if path.startswith("/broken") else status
        if status != 200:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
        return status == 200

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    Speed.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Speed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_both_ways_are_measured_with_growing_transfers(url: str) -> None:
    speed = measure_speed(url + "/", KEY)
    assert speed.download > 0
    assert speed.upload > 0
    for method in ("GET", "POST"):
        sizes = [size for asked, size in Speed.asked if asked == method]
        assert sizes[0] == SMALLEST_BYTES
        assert sizes == sorted(sizes)
        assert sizes[-1] <= LARGEST_BYTES


def test_a_slow_way_is_found_out_without_sending_much(url: str) -> None:
    speed = measure_speed(f"{url}/slow", KEY)
    assert speed.download < SLOW_BYTES_PER_SECOND
    assert speed.download > SLOW_BYTES_PER_SECOND / 10
    assert sum(size for asked, size in Speed.asked if asked == "GET") < 4 * SLOW_BYTES_PER_SECOND


@pytest.mark.parametrize(
    ("path", "key", "problem", "fix"),
    [
        ("", "wrong", "refuses the key", "--key"),
        ("", None, "refuses the key", "--key"),
        ("/else", KEY, "HTTP 404", "without a path"),
        ("/broken", KEY, "HTTP 500", "log"),
        ("/short", KEY, "bytes instead of 65,536", "coordinator's"),
    ],
)
def test_a_wrong_answer_is_explained(url: str, path: str, key: str | None, problem: str, fix: str) -> None:
    with pytest.raises(EdgeFLError, match=problem) as caught:
        measure_speed(url + path, key)
    assert fix in caught.value.fix


@pytest.mark.parametrize("address", ["pi.local:8000", "ftp://pi.local", "http://pi.local:port", ""])
def test_what_is_no_address_is_said_to_be_none(address: str) -> None:
    with pytest.raises(EdgeFLError, match="is not an address") as caught:
        measure_speed(address)
    assert "http://" in caught.value.fix


def test_nobody_at_the_address_is_said_plainly() -> None:
    with pytest.raises(EdgeFLError, match="does not answer") as caught:
        measure_speed("http://127.0.0.1:9")
    assert "Check the address" in caught.value.fix


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingDependencyError, match=r"edgefl-toolkit\[device\]"):
        measure_speed("http://127.0.0.1:9")

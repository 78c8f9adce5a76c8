"""The coordinator of device tests on a real socket: HTTP/1.1 on 127.0.0.1, in threads of this process."""

import contextlib
import gzip
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from device_runtime.agent.transport import Request
from tests.device_runtime.coordinator import Coordinator


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    """Packed as it was."""
    size: int
    """Bytes that came, headers included."""


@contextlib.contextmanager
def serving(coordinator: Coordinator, certificate: Path | None = None) -> Iterator[str]:
    """Serve a coordinator, and give its address. It knows gzip and nothing else, and packs nothing."""
    lock = threading.Lock()

    def answer(asked: Asked) -> tuple[int, Mapping[str, str], bytes]:
        body = gzip.decompress(asked.body) if asked.headers.get("content-encoding") == "gzip" else asked.body
        token = asked.headers.get("authorization", "").removeprefix("Bearer ") or None
        start = int(asked.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        with lock:
            reply = coordinator.answer(Request(asked.method, asked.path, token, body, start=start))
        return reply.status, {}, reply.body

    with serving_http(answer, certificate) as url:
        yield url


@contextlib.contextmanager
def serving_http(
    answer: Callable[[Asked], tuple[int, Mapping[str, str], bytes]], certificate: Path | None = None
) -> Iterator[str]:
    """Serve a function that answers with status, headers and body, and give its address. A body that is shorter than
    its header Content-Length says is the end of its connection. With a certificate (a file, with its key): over TLS."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            head = [self.requestline, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
            size = len("\r\n".join(head)) + len(body)
            status, more, content = answer(Asked(self.command, self.path, headers, body, size))
            length = int(more.get("Content-Length", len(content)))
            with contextlib.suppress(OSError):  # the device was killed
                self.send_response(status)
                for name, value in {"Content-Length": str(length), **more}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            self.close_connection = self.close_connection or length != len(content)

        do_GET = do_POST = do_PUT = answer  # noqa: N815  the names are http.server's

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, address: object) -> None:
            """A device that was killed in the middle of a request is no error here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

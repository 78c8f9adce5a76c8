"""The coordinator of device tests on a real socket: HTTP/1.1 on 127.0.0.1, in threads of this process."""

import contextlib
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from device_runtime.agent.transport import Request
from tests.device_runtime.coordinator import Coordinator


@contextlib.contextmanager
def serving(coordinator: Coordinator) -> Iterator[str]:
    """Serve a coordinator, and give its address."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            token = self.headers.get("Authorization", "").removeprefix("Bearer ") or None
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
            with lock:
                reply = coordinator.answer(Request(self.command, self.path, token, body, start=start))
            with contextlib.suppress(OSError):  # the device was killed
                self.send_response(reply.status)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

        do_GET = do_POST = do_PUT = answer  # noqa: N815  the names are http.server's

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, address: object) -> None:
            """A device that was killed in the middle of a request is no error here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

"""An HTTP/1.1 server on raw sockets, which can end a connection in the middle of any message.

It reads requests, asks a handler for each answer, and sends what the handler scripted: also half of it, with another
length, or nothing. One thread per connection; the standard library alone.
"""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from edgefl.conformance.messages import Exchange, ScriptedAnswer
from edgefl.errors import EdgeFLError

__all__ = ["ExchangeHandler", "RawHttpServer"]

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: what was not sent is thrown away, and the other side gets a reset."""
_PIECE = 65_536
_LARGEST_HEAD = 65_536
_LARGEST_BODY = 64 * 2**20
_SEND_BUFFER = 65_536
"""Bytes that the system takes before the client has read any: what a client takes must be seen here."""
_IDLE_SECONDS = 600.0


class ExchangeHandler(Protocol):
    """Decides what is answered."""

    def begin(self, exchange: Exchange) -> None:
        """Take note of a request whose body has not been read yet."""
        ...

    def answer(self, exchange: Exchange) -> ScriptedAnswer:
        """Return the answer to a request."""
        ...


class _ClosedError(Exception):
    """The connection has ended."""


class RawHttpServer:
    """Listens on one port; it can be closed and opened again there."""

    def __init__(
        self,
        handler: ExchangeHandler,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        is_elsewhere: bool = False,
    ) -> None:
        self._handler, self._tls, self._is_elsewhere = handler, tls, is_elsewhere
        self._host, self.port = host, port
        self._listener: socket.socket | None = None
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._acceptor: threading.Thread | None = None
        self._lock = threading.Lock()
        self._count = 0
        self.accepted = 0
        """Connections that were accepted, whatever became of them."""
        self.open()

    @property
    def url(self) -> str:
        """The address."""
        return f"{'http' if self._tls is None else 'https'}://{self._host}:{self.port}"

    def open(self) -> None:
        """Listen."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, self.port))
        except (OSError, OverflowError) as error:
            listener.close()
            raise EdgeFLError(
                f"port {self.port} of {self._host} cannot be used ({error})", fix="Give another --port."
            ) from None
        listener.listen(64)
        self._listener, self.port = listener, listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """Refuse connections, and end the open ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.close()
        if self._acceptor is not None:
            self._acceptor.join()
        for thread in self._end_connections():
            if thread is not threading.current_thread():
                thread.join(5.0)

    def _end_connections(self) -> list[threading.Thread]:
        """End the open connections, and return their threads."""
        with self._lock:
            open_now = dict(self._connections)
        for connection in open_now:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        return list(open_now.values())

    def serve_as(self, tls: ssl.SSLContext | None, *, is_elsewhere: bool = False) -> None:
        """Answer with another key from now on, and end the open connections."""
        self._tls, self._is_elsewhere = tls, is_elsewhere
        self._end_connections()

    def pause(self, seconds: float) -> None:
        """Refuse connections for a while, as a coordinator that restarts does. Returns at once."""

        def restart() -> None:
            self.close()
            time.sleep(seconds)
            self.open()

        threading.Thread(target=restart, daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(_IDLE_SECONDS)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._lock:
                self._connections[connection] = thread
                self.accepted += 1
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        is_elsewhere = self._is_elsewhere
        try:
            if self._tls is not None:
                connection = self._encrypted(connection, self._tls)
            with self._lock:
                self._count += 1
                number = self._count
            _Connection(connection, number, self._handler, is_elsewhere=is_elsewhere).serve()
        except (OSError, _ClosedError, ValueError):
            pass
        finally:
            connection.close()
            with self._lock:
                self._connections.pop(connection, None)

    def _encrypted(self, connection: socket.socket, tls: ssl.SSLContext) -> socket.socket:
        """Return the connection over TLS, which takes the place of the plain one."""
        with self._lock:
            thread = self._connections.pop(connection)
            encrypted = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            self._connections[encrypted] = thread
        try:
            encrypted.do_handshake()
        except BaseException:
            with self._lock:
                self._connections.pop(encrypted, None)
            encrypted.close()
            raise
        return encrypted


class _Connection:
    """One connection."""

    def __init__(self, connection: socket.socket, number: int, handler: ExchangeHandler, *, is_elsewhere: bool) -> None:
        self._socket, self._number, self._handler = connection, number, handler
        self._is_elsewhere = is_elsewhere
        self._buffer = bytearray()

    def serve(self) -> None:
        """Answer requests until the connection ends."""
        while True:
            exchange = self._head()
            self._handler.begin(exchange)
            if not self._read_body(exchange):
                self._handler.answer(exchange)
                return self._reset()
            exchange.is_complete = True
            answer = self._handler.answer(exchange)
            if answer.hold_seconds:
                time.sleep(answer.hold_seconds)
            keep = self._send(exchange, answer)
            if answer.then is not None:
                answer.then()
            if not keep or exchange.headers.get("connection", "").lower() == "close":
                return None

    def _head(self) -> Exchange:
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > _LARGEST_HEAD:
                raise _ClosedError
            self._more()
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        self._buffer = bytearray(rest)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, target = first.partition(" ")
        target = target.rpartition(" ")[0]
        found = urlsplit(target)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Exchange(
            method,
            unquote(found.path),
            dict(parse_qsl(found.query, keep_blank_values=True)),
            headers,
            self._number,
            self._is_elsewhere,
        )

    def _read_body(self, exchange: Exchange) -> bool:
        """Read the body; return False if that is to end in the middle."""
        if exchange.headers.get("expect", "").lower() == "100-continue":
            self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        most = exchange.read_at_most
        for piece in self._pieces(exchange.headers):
            exchange.body += piece
            if most is not None and len(exchange.body) >= most:
                return False
            if len(exchange.body) > _LARGEST_BODY:
                raise _ClosedError
        return most is None

    def _pieces(self, headers: Mapping[str, str]) -> Iterator[bytes]:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            while size := int(self._line().partition(b";")[0], 16):
                yield from self._exactly(size)
                self._line()
            while self._line():
                pass
            return
        yield from self._exactly(int(headers.get("content-length", "0")))

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            if len(self._buffer) > _LARGEST_HEAD:
                raise _ClosedError
            self._more()
        line, _, rest = bytes(self._buffer).partition(b"\r\n")
        self._buffer = bytearray(rest)
        return line

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size > 0:
            if not self._buffer:
                self._more()
            piece = bytes(self._buffer[: min(size, 1024)])  # small, so that a body can be cut anywhere
            del self._buffer[: len(piece)]
            size -= len(piece)
            yield piece

    def _more(self) -> None:
        received = self._socket.recv(_PIECE)
        if not received:
            raise _ClosedError
        self._buffer += received

    def _send(self, exchange: Exchange, answer: ScriptedAnswer) -> bool:
        """Send an answer, and return whether the connection stays open."""
        if answer.no_answer:
            self._reset()
            return False
        size = len(answer.body) * answer.repeats
        has_body = answer.status >= 200 and answer.status not in (204, 304)
        headers = {"Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())}
        if answer.is_chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif has_body:
            headers["Content-Length"] = str(size)
        headers |= answer.headers
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        phrase = next((status.phrase for status in HTTPStatus if status == answer.status), "Unknown")
        self._socket.sendall(f"HTTP/1.1 {answer.status} {phrase}\r\n{lines}\r\n".encode("latin-1"))
        if has_body:
            self._send_body(exchange, answer)
        exchange.answered = time.monotonic()
        promised = int(headers.get("Content-Length", size))
        if answer.cut_after is not None or (has_body and promised != size and not answer.is_chunked):
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            return False
        if answer.is_chunked:
            self._socket.sendall(b"0\r\n\r\n")
        return True

    def _send_body(self, exchange: Exchange, answer: ScriptedAnswer) -> None:
        left = len(answer.body) * answer.repeats if answer.cut_after is None else answer.cut_after
        for _ in range(answer.repeats):
            for begin in range(0, len(answer.body), _PIECE):
                piece = answer.body[begin : begin + min(_PIECE, left)]
                if not piece:
                    return
                framed = b"%x\r\n%b\r\n" % (len(piece), piece) if answer.is_chunked else piece
                self._socket.sendall(framed)
                exchange.sent_bytes += len(piece)
                left -= len(piece)

    def _reset(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

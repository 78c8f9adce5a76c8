"""HTTP/1.1 connection of a simulated device, on a plain socket: a thousand HTTP clients would be the bottleneck."""

import asyncio
from dataclasses import dataclass

__all__ = ["Connection"]

_LENGTH = b"content-length:"


@dataclass
class Connection:
    """A persistent connection with one request at a time."""

    host: str
    port: int
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, path: str, token: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request and return status and body."""
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        size = next(int(line[len(_LENGTH) :]) for line in lines if line.lower().startswith(_LENGTH))
        return int(lines[0].split()[1]), await self.reader.readexactly(size)

    async def close(self) -> None:
        """Close the connection."""
        if self.writer is not None:
            self.writer.close()
            await self.writer.wait_closed()
            self.reader = self.writer = None

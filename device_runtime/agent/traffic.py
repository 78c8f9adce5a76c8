"""Network traffic of a device: counted as it passes the socket, and ended where the owner's limit is reached.

The transport counts every byte here, headers, chunk sizes and answers that are thrown away included, and the agent says
how much there may be. What exceeds the limit is not received, whichever request it answers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edgefl.errors import EdgeFLError

__all__ = ["Traffic", "TrafficSpentError"]

_NOTE_BYTES = 2**20
"""Bytes after which somebody who keeps the count is told: a power cut must not make a large download free."""


class TrafficSpentError(EdgeFLError):
    """The traffic that the owner allows is used up."""


@dataclass(slots=True)
class Traffic:
    """Bytes received and sent, and the most that they may become together; None means no limit."""

    down: int = 0
    up: int = 0
    most: int | None = None
    will_be_limited: bool = False
    """Whether there will be a limit, if there is none yet: connections are opened accordingly."""
    kept_back: int = 0
    """Bytes below the limit that downloads leave for the rest: a device must be able to say why it refuses a task."""
    noted: Callable[[], None] = lambda: None
    """Called now and then while bytes pass."""
    _last_note: int = 0
    _is_download: bool = False

    @property
    def total(self) -> int:
        """Bytes in both directions."""
        return self.down + self.up

    @property
    def left(self) -> int | None:
        """The bytes that may still pass now, negative if more passed than should; None means no limit."""
        if self.most is None:
            return None
        return self.most - self.total - (self.kept_back if self._is_download else 0)

    def check(self, size: int = 1) -> None:
        """Raise if this many bytes may not pass."""
        if self.left is not None and self.left < size:
            raise TrafficSpentError(
                "the traffic that the owner allows for today is used up", fix="Allow more, or wait until tomorrow."
            )

    def count(self, *, down: int = 0, up: int = 0) -> None:
        """Add bytes that passed."""
        self.down += max(0, down)
        self.up += max(0, up)
        if self.total - self._last_note >= _NOTE_BYTES:
            self._last_note = self.total
            self.noted()

    @contextmanager
    def downloading(self) -> Iterator[None]:
        """Keep back what downloads must leave."""
        self._is_download = True
        try:
            yield
        finally:
            self._is_download = False

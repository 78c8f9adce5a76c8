"""Logs: one line per event, as text for people or as JSON for machines, with the id of its request.

They must contain no secrets. Requests are logged by the template of their route, so neither queries nor headers appear;
and whatever looks like a token is finally removed from every line, tracebacks included.
"""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from coordinator.redaction import without_secrets

__all__ = ["REQUEST_ID", "JsonLines", "TextLines", "configure"]

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def configure(form: Literal["text", "json"], level: str, stream: TextIO | None = None) -> logging.Handler:
    """Send the logs of this process to a stream. Only the entry point of a process calls this."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("coordinator").setLevel(level.upper())
    return handler


class JsonLines(logging.Formatter):
    """Formats events as one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, ensure_ascii=False, default=str))


class TextLines(logging.Formatter):
    """Formats events as lines for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event; a traceback follows it."""
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        extras = "".join(f" {name}={value}" for name, value in _extras(record).items())
        message = record.getMessage().replace("\n", "\\n")
        line = f"{time} {record.levelname.lower():7} {message}{extras}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return without_secrets(line)


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    extras = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    request_id = REQUEST_ID.get()
    return extras if request_id is None else {"request": request_id} | extras

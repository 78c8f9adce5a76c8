"""Runs system commands for a reading, such as `vcgencmd` on a Raspberry Pi.

Callers take a `Command` as an argument, so that tests can answer with captured output. Nothing here knows what the
output means.
"""

import shutil
import subprocess
from collections.abc import Callable, Sequence

__all__ = ["Command", "run"]

Command = Callable[[Sequence[str]], str | None]
"""Takes the words of a command and returns its output, or None if it is missing or failed."""

_LONGEST_SECONDS = 2.0


def run(words: Sequence[str]) -> str | None:
    """Run a command and return its output, or None if it is missing, failed, or took too long."""
    if shutil.which(words[0]) is None:  # true on most devices, and cheaper to check than to start it
        return None
    try:
        done = subprocess.run(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None

"""Commands of the system that are asked for a reading: `vcgencmd` on a Raspberry Pi.

Whoever needs a command takes a `Command`, so that tests answer with captured output. Nothing here knows what the
commands say.
"""

import shutil
import subprocess
from collections.abc import Callable, Sequence

__all__ = ["Command", "run"]

Command = Callable[[Sequence[str]], str | None]
"""From the words of a command to what it printed, or None if it is not there or failed."""

_LONGEST_SECONDS = 2.0


def run(words: Sequence[str]) -> str | None:
    """Run a command and return what it printed, or None if it is not there, failed, or took too long."""
    if shutil.which(words[0]) is None:  # on most devices, and cheaper to find out than by starting it
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

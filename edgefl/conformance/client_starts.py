"""How a client under test is started: by a command, by hand, or by a function of a test."""

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from edgefl.errors import EdgeFLError
from edgefl.pairing import Pairing

__all__ = ["CommandClient", "HandStartedClient", "Invitation", "RunningClient", "StartClient"]


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a client is given."""

    url: str
    key: str
    data: Path
    """The samples to train on."""
    home: Path
    """A folder of its own for the client's files, which does not exist at its first start."""
    act: str = ""
    pins: tuple[str, ...] = ()
    """Of the keys that the server may have; none without TLS."""
    is_again: bool = False
    """Whether this client was started before, with the same folder."""

    @property
    def uri(self) -> str:
        """The pairing URI."""
        return Pairing(self.url, self.key, None, self.pins).app_uri()

    def again(self) -> "Invitation":
        """Return the invitation to start the same client once more."""
        return replace(self, is_again=True)


class RunningClient(Protocol):
    """A client that was started."""

    def is_running(self) -> bool:
        """Return whether it has not ended yet."""
        ...

    def stop(self) -> None:
        """End it."""
        ...


StartClient = Callable[[Invitation], RunningClient]


class CommandClient:
    """A client that is started by a command, in which {url}, {key}, {uri}, {data} and {home} are replaced."""

    def __init__(self, command: str, invitation: Invitation, log: Path) -> None:
        values = {name: str(getattr(invitation, name)) for name in ("url", "key", "uri", "data", "home")}
        words = shlex.split(command)
        for name, value in values.items():
            words = [word.replace(f"{{{name}}}", value) for word in words]
        try:
            with log.open("ab") as output:
                self._process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
                )
        except OSError as error:
            raise EdgeFLError(f"{words[0]} cannot be started: {error.strerror}", fix="Check --client.") from None

    def is_running(self) -> bool:
        """Return whether the process has not ended yet."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process, and those that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class HandStartedClient:
    """A client that somebody starts: nobody here knows whether it runs."""

    def is_running(self) -> bool:
        """Return True: it may."""
        return True

    def stop(self) -> None:
        """Leave it alone."""

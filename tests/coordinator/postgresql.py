"""A real PostgreSQL server for tests: made in a temporary folder, on a free port of 127.0.0.1, stopped at the end.

    with postgresql() as url:
        store = open_store(new_database(url))

It does not wait for the disk, so it survives the death of a client but not of the machine.
"""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

__all__ = ["free_port", "new_database", "postgresql"]

_NUMBERS = itertools.count()
_SETTINGS = ("fsync=off", "full_page_writes=off", "unix_socket_directories=", "max_connections=200")


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Run a server, and give the URL of a database on it. Skips the test where PostgreSQL is not installed."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="edgefl-postgresql-") as folder:
        data = Path(folder) / "data"
        owner = _owner(folder)
        make: list[str | Path] = [programs / "initdb", "--pgdata", data, "--username=edgefl", "--auth=trust"]
        make += ["--no-sync", "--encoding=UTF8", "--locale=C"]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **owner)
        port = free_port()
        log = (Path(folder) / "log").open("wb")
        command: list[str | Path] = [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port)]
        command += [part for setting in _SETTINGS for part in ("-c", setting)]
        with log, subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **owner) as server:
            try:
                url = f"postgresql://edgefl@127.0.0.1:{port}/postgres"
                _wait_for(url, server, Path(folder) / "log")
                yield url
            finally:
                server.send_signal(signal.SIGINT)  # fast shutdown: clients are thrown out
                server.wait(30)


def new_database(url: str) -> str:
    """Make an empty database on a server, and return its URL. It sorts words as a dictionary does, where it can."""
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        try:
            connection.execute(f"CREATE DATABASE {name} LOCALE_PROVIDER icu ICU_LOCALE 'en-US' TEMPLATE template0")
        except (psycopg.errors.SyntaxError, psycopg.errors.FeatureNotSupported):  # before version 15, or built without
            connection.execute(f"CREATE DATABASE {name}")
    return url.rpartition("/")[0] + "/" + name


def _programs() -> Path:
    """Debian keeps the server's programs out of the path, by version."""
    found = [Path(path) for path in [shutil.which("initdb")] if path]
    found += sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]), reverse=True
    )
    if not found:
        pytest.skip("needs a PostgreSQL server: install the Debian package postgresql")
    return found[0].parent


def _owner(folder: str) -> dict[str, Any]:
    """PostgreSQL refuses to run as root: then it is somebody else, to whom the folder is given."""
    if os.getuid() != 0:
        return {}
    owner = next(entry for name in ("postgres", "nobody") for entry in pwd.getpwall() if entry.pw_name == name)
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=5):
            return
        time.sleep(0.05)
    raise AssertionError(log.read_text())

"""A full disk is an answer that says so, and when to come back. Nothing is lost, and afterwards everything goes on."""

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy.exc import OperationalError

from coordinator.errors import is_disk_full
from coordinator.http.server_settings import ServerLimits
from edgefl.artifacts.bundle import pack_bundle
from edgefl.values import Enrolment, Outcome, dumps
from tests.coordinator.http.site import Site, serving
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE


@contextlib.contextmanager
def coordinator(folder: Path, limits: ServerLimits | None = None) -> Iterator[Site]:
    with serving(folder, limits) as running:
        running.federation()
        running.device("pi")
        running.open_round("pi")
        yield running


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with coordinator(tmp_path) as running:
        yield running


@pytest.fixture
def spooling(tmp_path: Path) -> Iterator[Site]:
    """A coordinator that writes every upload to a file."""
    with coordinator(tmp_path, ServerLimits(kept_bytes=1000)) as running:
        yield running


@contextlib.contextmanager
def full(connection: Any) -> Iterator[None]:
    """Let an SQLite file grow no more, as on a full disk."""
    (used,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {used}")
    try:
        yield
    finally:
        connection.execute("PRAGMA max_page_count = 1073741823")


@contextlib.contextmanager
def full_database(site: Site) -> Iterator[None]:
    writer = site.context.store.devices._database._writer
    with contextlib.closing(writer.raw_connection()) as connection:
        raw = connection.driver_connection
    with full(raw):
        yield


def assert_told(answer: httpx.Response) -> None:
    assert answer.status_code == 503
    assert answer.json()["error"]["problem"] == "the coordinator's disk is full"
    assert int(answer.headers["Retry-After"]) > 0


def test_an_upload_that_does_not_fit_the_disk_is_told_to_come_back(
    spooling: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, packed, client = spooling.update("digits-0-pi"), pack_bundle(bundle()), spooling.client("token-of-pi")
    path = tmp_path / "blobs" / "spool" / "full"
    with monkeypatch.context() as patched:
        patched.setattr(spooling.context.blobs, "spool", lambda: path)
        path.symlink_to("/dev/full")
        assert_told(client.put("/v1/tasks/digits-0-pi/result", content=body))
        assert not path.is_symlink()
        path.symlink_to("/dev/full")
        assert_told(spooling.admin.post("/v1/bundles", content=packed))
        assert not path.is_symlink()
    assert client.put("/v1/tasks/digits-0-pi/result", content=body).json()["outcome"] == Outcome.ACCEPTED
    assert spooling.admin.post("/v1/bundles", content=packed).status_code == 201


def test_an_update_that_does_not_fit_the_store_is_told_to_come_back(site: Site) -> None:
    body, client = site.update("digits-0-pi"), site.client("token-of-pi")
    with full(site.context.blobs._small._writer):  # type: ignore[attr-defined]
        assert_told(client.put("/v1/tasks/digits-0-pi/result", content=body))
    assert client.put("/v1/tasks/digits-0-pi/result", content=body).json()["outcome"] == Outcome.ACCEPTED


def test_a_full_database_tells_everyone_who_writes(site: Site) -> None:
    key = site.admin.post("/v1/federations/digits/keys", json={}).json()["key"]
    enrolment = dumps(Enrolment(enrolment_id="e" * 32, software="edgefl 0", profile=PROFILE))
    with full_database(site):
        answers = [
            *(site.client(key).post("/v1/devices", content=enrolment) for _ in range(200)),
            *(site.admin.post("/v1/federations/digits/keys", json={"label": "x" * 200}) for _ in range(50)),
        ]
    refused = [answer for answer in answers if answer.status_code >= 400]
    assert refused
    for answer in refused:
        assert_told(answer)
    assert site.client(key).post("/v1/devices", content=enrolment).status_code == 201


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (OSError(errno.EACCES, "Permission denied"), False),
        (sqlite3.OperationalError("database is locked"), False),
        (OperationalError("INSERT", {}, OSError(errno.ENOSPC, "full")), True),
        (type("DiskFull", (Exception,), {"sqlstate": "53100"})(), True),
        (None, False),
    ],
)
def test_a_full_disk_is_recognised(error: Exception | None, expected: bool) -> None:
    assert is_disk_full(error) is expected


def test_a_full_disk_is_recognised_behind_another_error() -> None:
    error = RuntimeError("a table could not be written")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert is_disk_full(error)

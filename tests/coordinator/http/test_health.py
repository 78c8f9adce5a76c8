"""Health and readiness."""

import asyncio
import errno
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.http.readiness import Readiness
from coordinator.storage import database, folder_blobs
from tests.coordinator.http.site import Site, serving


def test_a_coordinator_that_works_is_healthy_and_ready(site: Site) -> None:
    for path in ("/healthz", "/readyz"):
        answer = site.client().get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_coordinator_whose_storage_fails_lives_and_is_not_ready(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(folder) as site:

        def broken(*_: object) -> None:
            raise OSError("the disk is gone")

        monkeypatch.setattr(site.context.store.federations, "get", broken)
        monkeypatch.setattr(site.context.blobs, "size", broken)
        answer = site.client().get("/readyz")
        assert answer.status_code == 503
        assert "database" in answer.json()["error"]["problem"]
        assert "blob store" in answer.json()["error"]["problem"]
        assert "disk is gone" not in answer.text
        assert answer.headers["Retry-After"]
        assert site.client().get("/healthz").status_code == 200


def no_space(folder: Path) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def lose_blobs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder / "blobs")


def lose_small_blobs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "blobs" / "small.sqlite").unlink()


def fill_blobs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_blobs, "try_write", no_space)


def lose_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "coordinator.db").unlink()


def fill_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "try_write", no_space)


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (lose_blobs, "blob store"),
        (lose_small_blobs, "blob store"),
        (fill_blobs, "blob store"),
        (lose_database, "database"),
        (fill_database, "database"),
    ],
)
def test_a_coordinator_that_can_read_but_not_write_is_not_ready(
    folder: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path, pytest.MonkeyPatch], None], named: str
) -> None:
    with serving(folder) as site:
        harm(folder, monkeypatch)
        answer = site.client().get("/readyz")
        assert answer.status_code == 503
        assert f"the {named} cannot be read and written" in answer.json()["error"]["problem"]
        assert site.client().get("/healthz").status_code == 200


def test_storage_that_hangs_is_not_ready_and_is_tried_by_one_thread_only() -> None:
    release, calls = threading.Event(), []

    def hang() -> None:
        calls.append(1)
        release.wait(30)

    readiness = Readiness({"it hangs": hang, "it works": lambda: None}, seconds=0.05)
    try:
        for _ in range(3):
            assert asyncio.run(readiness.broken()) == ["it hangs"]
        assert len(calls) == 1
    finally:
        release.set()


def test_an_attempt_is_shared_by_all_who_ask_within_a_second_and_then_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, now = [], time.monotonic()
    readiness = Readiness({"it works": lambda: calls.append(1)})

    async def ask() -> list[list[str]]:
        return list(await asyncio.gather(*(readiness.broken() for _ in range(5))))

    assert asyncio.run(ask()) == [[]] * 5
    assert len(calls) == 1
    monkeypatch.setattr("coordinator.http.readiness.time.monotonic", lambda: now + 60)
    assert asyncio.run(readiness.broken()) == []
    assert len(calls) == 2

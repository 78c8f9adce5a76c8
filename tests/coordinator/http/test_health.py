"""Health and readiness."""

from pathlib import Path

import pytest

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

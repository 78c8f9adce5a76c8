"""What the coordinator stores is closed to other users, and what is not its own is left alone."""

import logging
import os
import stat
from pathlib import Path

import pytest

from coordinator.storage.folder_blobs import FolderBlobs
from coordinator.storage.open import blobs_folder, database_file, open_store
from coordinator.storage.private_files import check_own_folder, private_umask, tighten, tighten_tree
from edgefl.errors import EdgeFLError


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_tree_is_closed_and_links_out_of_it_are_not_followed(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("not ours")
    (tree / "below").mkdir(parents=True)
    (tree / "below" / "file").write_text("ours")
    (tree / "link").symlink_to(outside / "file")
    (tree / "folder link").symlink_to(outside / "folder")
    for path in (outside / "folder", outside / "file", tree, tree / "below", tree / "below" / "file"):
        path.chmod(0o777)
    assert tighten_tree(tree) == 3
    assert [mode_of(path) for path in (tree, tree / "below", tree / "below" / "file")] == [0o700, 0o700, 0o600]
    assert [mode_of(path) for path in (outside / "folder", outside / "file")] == [0o777, 0o777]
    assert tighten_tree(tree) == 0
    assert tighten(tree / "link", tree / "nothing") == 0


def test_a_mode_never_becomes_wider(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch()
    secret.chmod(0o444)
    assert tighten(secret) == 1
    assert mode_of(secret) == 0o400


def test_a_folder_that_everybody_shares_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(EdgeFLError, match=r"is shared by all users.*a folder of its own"):
        check_own_folder(tmp_path)
    tmp_path.chmod(0o777)
    check_own_folder(tmp_path)


def test_what_somebody_else_owns_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: Path, mode: int) -> None:
        raise PermissionError(1, "not permitted")

    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    with caplog.at_level(logging.WARNING):
        assert tighten(tmp_path) == 0
    assert "belongs to somebody else" in caplog.text


def test_databases_and_blobs_are_private_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store, blobs = open_store(f"sqlite:///{tmp_path}/state/coordinator.db"), FolderBlobs(tmp_path / "blobs")
        with private_umask():
            blobs.put_all([b"small", b"large" * 100_000])
        found = [path for top in ("state", "blobs") for path in (tmp_path / top).rglob("*")]
        assert len(found) >= 9  # both databases with their logs, two folders, one large body
        assert {mode_of(path) for path in found if path.is_file()} == {0o600}
        assert {mode_of(path) for path in found if path.is_dir()} == {0o700}
        store.close()
        blobs.close()
        (tmp_path / "after").touch()
        assert mode_of(tmp_path / "after") == 0o666
    finally:
        os.umask(before)


def test_only_what_is_on_this_machine_has_a_path() -> None:
    assert database_file("sqlite:////var/lib/edgefl/a.db") == Path("/var/lib/edgefl/a.db")
    assert [database_file(url) for url in ("postgresql://host/name", "sqlite://", "nothing")] == [None] * 3
    assert blobs_folder("s3://bucket/folder") is None
    assert blobs_folder("file:///srv/blobs") == blobs_folder("/srv/blobs") == Path("/srv/blobs")

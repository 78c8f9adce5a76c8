import gzip
import tarfile
from pathlib import Path

import pytest

from edgefl.data import archives
from edgefl.data.archives import read_file, read_members
from edgefl.data.formats.npz import read_npz
from edgefl.errors import DataError
from tests.data.files import tar, zipped


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    bombs = {
        "bomb.gz": gzip.compress(bytes(1001), mtime=0),
        "bomb.tar.gz": tar({"in/bomb": bytes(1001)}),
        "bomb.zip": zipped({"in/bomb": bytes(1001)}),
    }
    for name, content in bombs.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="more than 1,000 bytes"):
            read_file(tmp_path / name) if name == "bomb.gz" else read_members(tmp_path / name, ["bomb"])


def test_a_plain_tar_that_ends_within_a_file_is_refused(tmp_path: Path) -> None:
    content = gzip.decompress(tar({"in/file": bytes(5000)}))
    path = tmp_path / "cut.tar"
    path.write_bytes(content[:3000])
    with pytest.raises(DataError, match=r"cut\.tar is damaged"):
        read_members(path, ["file"])


def test_a_member_is_matched_by_whole_parts_of_its_path(tmp_path: Path) -> None:
    path = tmp_path / "some.tar.gz"
    path.write_bytes(tar({"a/not_train.bin": b"1", "a/train.bin": b"2", "train.bin/other": b"3"}))
    assert read_members(path, ["train.bin", "absent"]) == {"train.bin": b"2"}


def test_a_link_in_a_tar_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "links.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("in/train.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert read_members(path, ["train.bin"]) == {}


@pytest.mark.parametrize("form", ["tar.gz", "zip"])
def test_a_file_that_is_there_twice_is_refused(tmp_path: Path, form: str) -> None:
    members = {"a/train.bin": b"1", "b/train.bin": b"2"}
    path = tmp_path / f"some.{form}"
    path.write_bytes(tar(members) if form == "tar.gz" else zipped(members))
    with pytest.raises(DataError, match=r"twice, as a/train\.bin and as b/train\.bin"):
        read_members(path, ["train.bin"])


def test_a_garbage_tar_is_named_in_a_whole_sentence(tmp_path: Path) -> None:
    path = tmp_path / "garbage.tar.gz"
    path.write_bytes(b"garbage" * 100)
    with pytest.raises(DataError, match=r"has another format: file could not be opened successfully\. Download"):
        read_members(path, ["train.bin"])


def test_a_file_that_is_not_there_or_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="absent cannot be read: No such file or directory"):
        read_file(tmp_path / "absent")

    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    for read in (lambda: read_file(tmp_path / "mine"), lambda: read_npz(tmp_path / "mine.npz")):
        with pytest.raises(DataError, match=r"mine(\.npz)? cannot be read: Permission denied"):
            read()

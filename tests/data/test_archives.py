import gzip
import tarfile
from pathlib import Path

import pytest

from edgefl.data import archives
from edgefl.data.archives import read_file, read_members
from edgefl.errors import DataError
from tests.data.files import tar, zipped


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    bombs = {
        "bomb.gz": gzip.compress(bytes(1001)),
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


def test_a_file_that_does_not_exist_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_file(tmp_path / "absent")

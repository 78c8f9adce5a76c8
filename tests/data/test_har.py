from pathlib import Path

import numpy as np
import pytest

from edgefl.data import load, partition
from edgefl.errors import DataError
from tests.data.files import har_members, unpack, zipped

INNER = "UCI HAR Dataset.zip"
OUTER = "human+activity+recognition+using+smartphones.zip"


@pytest.mark.parametrize("form", ["folder", "zip", "zip in zip"])
def test_har_is_read_from_its_folder_its_zip_and_the_zip_around_it(tmp_path: Path, form: str) -> None:
    members = har_members()
    if form == "folder":
        unpack(tmp_path, members)
    elif form == "zip":
        (tmp_path / INNER).write_bytes(zipped({**members, f"__MACOSX/{next(iter(members))}": b"junk"}))
    else:
        (tmp_path / OUTER).write_bytes(zipped({INNER: zipped(members), "readme.names": b"text"}))
    dataset = load("har", tmp_path)
    assert dataset.train.features.shape == (12, 561)
    assert dataset.train.features.dtype == np.float32
    assert dataset.train.labels.tolist() == [0, 1, 2, 3, 4, 5] * 2
    assert dataset.class_names == ("WALKING", "UP", "DOWN", "SITTING", "STANDING", "LAYING")
    assert dataset.owner_kind == "subject"
    assert dataset.owner_names == tuple(f"subject {n}" for n in (1, 2, 3, 4, 30))
    assert dataset.train.owners is not None
    assert dataset.train.owners.tolist() == [0, 2, 4] * 4


def test_the_numbers_of_a_window_are_those_of_its_line(tmp_path: Path) -> None:
    members = har_members()
    unpack(tmp_path, members)
    line = members["UCI HAR Dataset/train/X_train.txt"].splitlines()[5]
    expected = np.array([float(word) for word in line.split()], dtype=np.float32)
    np.testing.assert_array_equal(load(tmp_path).train.features[5], expected)


def test_pooled_har_has_a_client_for_every_subject_of_both_parts(tmp_path: Path) -> None:
    unpack(tmp_path, har_members())
    dataset = load("har", tmp_path)
    assert len(partition(dataset.train, "owner")) == 3
    assert len(partition(dataset.pooled().train, "owner")) == 5


@pytest.mark.parametrize(
    ("file", "content", "word"),
    [
        ("train/X_train.txt", b"", "empty"),
        ("train/X_train.txt", b"1 2 3\n", "3 numbers"),
        ("train/X_train.txt", b"\x00\xff garbage\n", "damaged"),
        ("train/X_train.txt", b" ".join([b"1"] * 561) + b"\n1 2\n", "damaged"),
        ("train/X_train.txt", b" ".join([b"1"] * 561) + b"\n", "1 windows, 12 labels"),
        ("train/X_train.txt", b"\n".join([b" ".join([b"nan"] * 561)] * 12), "NaN"),
        ("train/y_train.txt", b"7\n" * 12, "from 1 to 6"),
        ("train/y_train.txt", b"0\n" * 12, "from 1 to 6"),
        ("train/y_train.txt", b"1.5\n" * 12, "from 1 to 6"),
        ("train/subject_train.txt", b"-1\n" * 12, "from 1 to 30"),
        ("train/subject_train.txt", b"99999999999999999999999\n" * 12, "from 1 to 30"),
        ("train/subject_train.txt", b"1\n", "1 subjects"),
    ],
)
def test_a_damaged_har_file_is_named_with_what_is_wrong(tmp_path: Path, file: str, content: bytes, word: str) -> None:
    unpack(tmp_path, {**har_members(), f"UCI HAR Dataset/{file}": content})
    with pytest.raises(DataError, match=word) as raised:
        load("har", tmp_path)
    assert "UCI HAR Dataset" in raised.value.problem


def test_a_zip_without_a_file_says_which(tmp_path: Path) -> None:
    members = har_members()
    del members["UCI HAR Dataset/test/subject_test.txt"]
    (tmp_path / INNER).write_bytes(zipped(members))
    with pytest.raises(DataError, match=r"it does not contain test/subject_test\.txt"):
        load("har", tmp_path)


def test_a_zip_cut_anywhere_is_an_error_and_never_a_traceback(tmp_path: Path) -> None:
    content = zipped(har_members(train=2, test=2))
    for length in range(0, len(content), 211):
        (tmp_path / INNER).write_bytes(content[:length])
        with pytest.raises(DataError, match="UCI HAR Dataset"):
            load("har", tmp_path)

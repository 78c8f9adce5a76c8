import json
from pathlib import Path

import numpy as np
import pytest

from edgefl.data import load, partition
from edgefl.data.formats.alphabet import ALPHABET, encode
from edgefl.data.formats.plays import speeches
from edgefl.errors import DataError
from tests.data.files import leaf, unpack

WINDOW = "To be, or not to be, that is the question: Whether 'tis nobler in the mind to suf"[:80]


def leaf_folder(folder: Path) -> None:
    unpack(
        folder,
        {
            "train/a.json": leaf({"HAMLET": [(WINDOW, "f"), (WINDOW[1:] + "f", "e")]}),
            "train/b.json": leaf({"OPHELIA": [("x" * 80, "\n")]}),
            "test/a.json": leaf({"HAMLET": [(WINDOW, "f")], "GHOST": [("y" * 80, "z")]}),
        },
    )


def test_the_alphabet_is_leafs() -> None:
    assert len(ALPHABET) == 80
    assert len(set(ALPHABET)) == 80
    assert [ALPHABET.index(character) for character in "\n A[a}"] == [0, 1, 25, 51, 53, 79]


def test_leaf_files_become_windows_next_characters_and_roles(tmp_path: Path) -> None:
    leaf_folder(tmp_path)
    dataset = load("shakespeare", tmp_path)
    assert dataset.classes == 80
    assert dataset.owner_kind == "role"
    assert dataset.owner_names == ("HAMLET", "OPHELIA", "GHOST")
    assert dataset.train.owners is not None
    assert dataset.train.owners.tolist() == [0, 0, 1]
    assert "".join(ALPHABET[index] for index in dataset.train.features[0]) == WINDOW
    assert [ALPHABET[label] for label in dataset.train.labels] == ["f", "e", "\n"]
    tokens, _ = dataset.batch([0])
    assert tokens.dtype == np.int64
    assert len(partition(dataset.train, "owner")) == 2


def test_unknown_characters_become_plain_ones_or_a_space_and_never_shift_a_window() -> None:
    plain = "".join(ALPHABET[index] for index in encode("\u2019\u201c\u2014\u00e9\u4e2d\U0001f600\ud800*a"))
    assert plain == "'\"-e    a"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "damaged"),
        (b"{", "damaged"),
        (b"\xff\xfe garbage", "damaged"),
        (b"[" * 100_000, "damaged"),
        (b"[1, 2]", "list"),
        (b"{}", "users"),
        (b'{"users": ["A"], "user_data": {}}', "no data"),
        (b'{"users": [["A"]], "user_data": {}}', "no data"),
        (json.dumps({"users": ["A"], "user_data": {"A": {"x": ["a" * 80], "y": []}}}).encode(), "equal length"),
        (leaf({"A": [("short", "a")]}), "80 characters"),
        (leaf({"A": [("a" * 80, "ab")]}), "length 1"),
        (leaf({"A": [("a" * 80, "b")]}).replace(b"[1]", b"[5]"), "num_samples"),
        (leaf({"A": [("a" * 80, "b")]}).replace(b"[1]", b"[]"), "num_samples"),
        (leaf({}), "no samples"),
    ],
)
def test_a_damaged_leaf_file_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, word: str) -> None:
    unpack(tmp_path, {"train/all.json": content, "test/all.json": leaf({"A": [("a" * 80, "b")]})})
    with pytest.raises(DataError, match=word) as raised:
        load("shakespeare", tmp_path)
    assert "train" in raised.value.problem


def test_speakers_are_headings_alone_on_a_line() -> None:
    text = (
        "THE TRAGEDY\n\nACT I\n\nSCENE I. Elsinore.\n\n"
        "BERNARDO.\nWho's there?\n\nFRANCISCO.\nNay, answer me.\nStand:\n\n[Exit.]\n\nII.\n\n"
        "First Citizen:\nBefore we proceed:\n\nBERNARDO.\nLong live the King!\n\nWell.\n\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK ***\nlicence\n"
    )
    assert speeches(text) == {
        "BERNARDO": "Who's there?\nLong live the King!\nWell.",
        "FRANCISCO": "Nay, answer me.\nStand:",
        "First Citizen": "Before we proceed:",
    }


def test_the_last_fifth_of_a_roles_words_is_its_test_part_and_windows_do_not_cross(tmp_path: Path) -> None:
    words = "".join(chr(ord("a") + n % 26) for n in range(1000))
    (tmp_path / "play.txt").write_text(f"LEAR:\n{words}\n\nFOOL:\nToo short.\n", encoding="utf-8")
    dataset = load(tmp_path / "play.txt")
    assert dataset.owner_names == ("LEAR",)
    assert (len(dataset.train), len(dataset.test)) == (800 - 80, 200 - 80)
    encoded = encode(words)
    np.testing.assert_array_equal(dataset.train.features[719], encoded[719:799])
    assert dataset.train.labels[719] == encoded[799]
    np.testing.assert_array_equal(dataset.test.features[0], encoded[800:880])


def test_roles_of_several_texts_are_kept_apart(tmp_path: Path) -> None:
    for name in ("lear", "hamlet"):
        (tmp_path / f"{name}.txt").write_text(f"KING:\n{'word ' * 60}\n", encoding="utf-8")
    assert load("shakespeare", tmp_path).owner_names == ("hamlet: KING", "lear: KING")


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"\xff\xfe\x00", "UTF-8"), (b"no speaker at all", "no speaker"), (b"LEAR:\nshort\n", "more than 80")],
)
def test_a_text_that_is_no_play_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, word: str) -> None:
    (tmp_path / "play.txt").write_bytes(content)
    with pytest.raises(DataError, match=word) as raised:
        load("shakespeare", tmp_path)
    assert str(tmp_path) in raised.value.problem

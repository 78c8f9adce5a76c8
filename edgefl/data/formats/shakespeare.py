"""Shakespeare as in LEAF: 80 characters in, the next one out, one client per role.

It reads LEAF's own JSON files, or plain texts of plays. From a text, the speeches of each role are joined; the last
fifth is for testing, and windows never cross that boundary, so no test character is trained on. A role with too little
text for one training window is left out. With several texts in one folder, roles are distinguished by file name.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from edgefl.data.archives import damaged
from edgefl.data.dataset import Dataset
from edgefl.data.formats.alphabet import ALPHABET, WINDOW, as_class_names, encode
from edgefl.data.formats.leaf import has_leaf_parts, users_of
from edgefl.data.formats.plays import read_play
from edgefl.data.samples import Samples, frozen
from edgefl.data.sources import Source

__all__ = ["SHAKESPEARE"]

TEST_FRACTION = 0.2


class _Windows:
    """Windows, next characters and roles of one part, collected step by step."""

    def __init__(self) -> None:
        self.windows: list[NDArray[np.uint8]] = [np.empty((0, WINDOW), dtype=np.uint8)]
        self.labels: list[NDArray[np.uint8]] = [np.empty(0, dtype=np.uint8)]
        self.roles: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]

    def __len__(self) -> int:
        return sum(map(len, self.labels))

    def add(self, role: int, windows: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
        """Add the windows of one role."""
        self.windows.append(windows)
        self.labels.append(labels)
        self.roles.append(np.full(len(labels), role, dtype=np.int64))

    def add_text(self, role: int, text: NDArray[np.uint8]) -> None:
        """Add every window of a role's encoded text, with the next character as its label."""
        if len(text) > WINDOW:
            self.add(role, sliding_window_view(text, WINDOW)[:-1], text[WINDOW:])

    def samples(self) -> Samples:
        """Return the collected samples."""
        labels = np.concatenate(self.labels).astype(np.int64)
        return Samples(frozen(np.concatenate(self.windows)), labels, np.concatenate(self.roles))


def _dataset(train: _Windows, test: _Windows, roles: list[str]) -> Dataset:
    return Dataset(
        name="shakespeare",
        train=train.samples(),
        test=test.samples(),
        classes=len(ALPHABET),
        class_names=as_class_names(),
        owner_kind="role",
        owner_names=tuple(roles),
    )


def _add_leaf_user(into: _Windows, role: int, path: Path, user: str, x: list[Any], y: list[Any]) -> None:
    if not all(isinstance(window, str) and len(window) == WINDOW for window in x):
        raise damaged(path, f"user {user!r} has a window that is not a string of {WINDOW} characters")
    if not all(isinstance(label, str) and len(label) == 1 for label in y):
        raise damaged(path, f"user {user!r} has a next character that is not a string of length 1")
    into.add(role, encode("".join(x)).reshape(-1, WINDOW), encode("".join(y)))


def _read_leaf(folder: Path) -> Dataset:
    roles: dict[str, int] = {}
    parts = {"train": _Windows(), "test": _Windows()}
    for part, windows in parts.items():
        for path, user, x, y in users_of(folder / part):
            _add_leaf_user(windows, roles.setdefault(user, len(roles)), path, user, x, y)
    if not len(parts["train"]):
        raise damaged(folder / "train", "its files have no samples")
    return _dataset(parts["train"], parts["test"], list(roles))


def _texts(place: Path) -> list[Path]:
    if place.is_file():
        return [place] if place.suffix.lower() == ".txt" else []
    return sorted(path for path in place.glob("*.txt") if path.is_file())


def _read_texts(place: Path) -> Dataset:
    train, test = _Windows(), _Windows()
    roles: list[str] = []
    texts = _texts(place)
    for path in texts:
        for role, words in read_play(path).items():
            encoded = encode(words)
            border = len(encoded) - int(len(encoded) * TEST_FRACTION)
            if border <= WINDOW:
                continue
            train.add_text(len(roles), encoded[:border])
            test.add_text(len(roles), encoded[border:])
            roles.append(role if len(texts) == 1 else f"{path.stem}: {role}")
    if not roles:
        raise damaged(place, f"no role says more than {WINDOW} characters")
    return _dataset(train, test, roles)


def _find(place: Path) -> Path | None:
    if place.is_dir() and has_leaf_parts(place):
        return place
    if place.is_dir() and has_leaf_parts(place / "data"):
        return place / "data"
    return place if _texts(place) else None


def _read(place: Path) -> Dataset:
    return _read_leaf(place) if place.is_dir() and has_leaf_parts(place) else _read_texts(place)


SHAKESPEARE = Source(
    name="shakespeare",
    title="Shakespeare: next-character prediction over 80 characters, one owner per role",
    looks_for="LEAF's folders train/ and test/ of .json files, or plays as .txt files",
    how_to_get="Either run LEAF (git clone https://github.com/TalwalkarLab/leaf, then in data/shakespeare: "
    "./preprocess.sh -s niid --sf 0.2 -k 0 -t sample -tf 0.8) and take its folder data/shakespeare/data, "
    "or put a plain text of the plays (https://www.gutenberg.org/cache/epub/100/pg100.txt) into a folder",
    find=_find,
    read=_read,
)

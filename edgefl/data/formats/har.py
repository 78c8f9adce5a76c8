"""UCI HAR: human activity recognition with smartphones, from its published text files, zipped or not.

One line per window: 561 features in [-1, 1] in X_*.txt, the activity 1..6 in y_*.txt, the subject 1..30 in
subject_*.txt. Training and test samples have different subjects: `Dataset.pooled` joins them.
"""

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgefl.data.archives import damaged, is_archive, read_members, reading
from edgefl.data.dataset import Dataset
from edgefl.data.samples import Samples, frozen
from edgefl.data.sources import Source

__all__ = ["HAR"]

FOLDER = "UCI HAR Dataset"
ARCHIVES = ("human+activity+recognition+using+smartphones.zip", f"{FOLDER}.zip")
FEATURES = 561
ACTIVITIES = 6
MOST_PEOPLE = 30
NAMES = "activity_labels.txt"
PARTS = ("train", "test")
FILES = tuple(f"{part}/{kind}_{part}.txt" for part in PARTS for kind in ("X", "y", "subject"))


def _find(place: Path) -> Path | None:
    if is_archive(place):
        return place if "har" in place.name.lower() or "human" in place.name.lower() else None
    for archive in ARCHIVES:
        if (place / archive).is_file():
            return place / archive
    return next(
        (folder for folder in (place, place / FOLDER) if all((folder / file).is_file() for file in FILES)),
        None,
    )


def _table(file: str, content: bytes, columns: int) -> NDArray[np.float32]:
    if not content.strip():
        raise damaged(file, "it is empty")
    with reading(file):
        table = np.loadtxt(io.BytesIO(content), dtype=np.float32, ndmin=2, comments=None)
    if table.shape[1] != columns:
        raise damaged(file, f"a line has {table.shape[1]} numbers, not {columns}")
    if not np.isfinite(table).all():
        raise damaged(file, "a number is NaN or infinite")
    return frozen(table)


def _numbers(file: str, content: bytes, most: int) -> NDArray[np.int64]:
    """Return one whole number from 1 to `most` per line."""
    column = _table(file, content, 1)[:, 0]
    if not np.isin(column, np.arange(1, most + 1)).all():
        raise damaged(file, f"a line is not a whole number from 1 to {most}")
    return column.astype(np.int64)


def _part(
    path: Path, members: dict[str, bytes], part: str
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the features, labels from 0 and published subject numbers of one part."""
    names = [f"{part}/{kind}_{part}.txt" for kind in ("X", "y", "subject")]
    features = _table(f"{path}:{names[0]}", members.pop(names[0]), FEATURES)
    labels = _numbers(f"{path}:{names[1]}", members.pop(names[1]), ACTIVITIES)
    people = _numbers(f"{path}:{names[2]}", members.pop(names[2]), MOST_PEOPLE)
    if not len(features) == len(labels) == len(people):
        raise damaged(
            path,
            f"the {part} part has {len(features)} windows, {len(labels)} labels and {len(people)} subjects",
        )
    return features, labels - 1, people


def _class_names(content: bytes | None) -> tuple[str, ...] | None:
    """Return the names from lines such as `1 WALKING`, if the file exists and is complete."""
    words = [line.split() for line in (content or b"").decode("utf-8", errors="replace").splitlines()]
    names = {pair[0]: pair[1] for pair in words if len(pair) == 2}
    numbers = [str(number) for number in range(1, ACTIVITIES + 1)]
    return tuple(names[number] for number in numbers) if set(numbers) <= set(names) else None


def _read(path: Path) -> Dataset:
    members = read_members(path, (*FILES, NAMES))
    absent = [file for file in FILES if file not in members]
    if absent:
        raise damaged(path, f"it does not contain {', '.join(absent)}")
    (x, y, who), (x_test, y_test, who_test) = (_part(path, members, part) for part in PARTS)
    people = np.unique(np.concatenate([who, who_test]))
    return Dataset(
        name="har",
        train=Samples(x, y, np.searchsorted(people, who)),
        test=Samples(x_test, y_test, np.searchsorted(people, who_test)),
        classes=ACTIVITIES,
        class_names=_class_names(members.get(NAMES)),
        owner_kind="subject",
        owner_names=tuple(f"subject {number}" for number in people.tolist()),
    )


HAR = Source(
    name="har",
    title="UCI HAR: 7,352 + 2,947 smartphone motion windows, 561 features, 6 activities, 30 subjects",
    looks_for=f"{' or '.join(map(repr, ARCHIVES))}, or the unpacked folder {FOLDER!r}",
    how_to_get=f"Download https://archive.ics.uci.edu/static/public/240/{ARCHIVES[0]} into a folder; "
    "you need not unpack it",
    find=_find,
    read=_read,
)

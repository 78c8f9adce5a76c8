"""LEAF's JSON files: folders train/ and test/ with the samples of every user.

    {"users": ["HAMLET"], "num_samples": [2], "user_data": {"HAMLET": {"x": [...], "y": [...]}}}

This reads the common structure; the data set that uses it knows what x and y mean.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgefl.data.archives import damaged, read_file, reading

__all__ = ["has_leaf_parts", "users_of"]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.json") if path.is_file())


def has_leaf_parts(folder: Path) -> bool:
    """Return whether a folder has train/ and test/ with JSON files in both."""
    return all(_files(folder / part) for part in ("train", "test"))


def _parsed(path: Path) -> dict[str, Any]:
    content = read_file(path)
    with reading(path):
        frame = json.loads(content)
    if not isinstance(frame, dict):
        raise damaged(path, f"its JSON is a {type(frame).__name__}, not an object")
    if not isinstance(frame.get("users"), list) or not isinstance(frame.get("user_data"), dict):
        raise damaged(path, "it lacks the list 'users' or the object 'user_data'")
    return frame


def users_of(folder: Path) -> Iterator[tuple[Path, str, list[Any], list[Any]]]:
    """Yield each file, user, x and y of a part, with one file in memory at a time."""
    for path in _files(folder):
        frame = _parsed(path)
        counts = frame.get("num_samples")
        if counts is not None and (not isinstance(counts, list) or len(counts) != len(frame["users"])):
            raise damaged(path, "'num_samples' does not match 'users'")
        for position, user in enumerate(frame["users"]):
            data = frame["user_data"].get(user) if isinstance(user, str) else None
            if not isinstance(data, dict):
                raise damaged(path, f"user {user!r} has no data")
            x, y = data.get("x"), data.get("y")
            if not isinstance(x, list) or not isinstance(y, list) or len(x) != len(y):
                raise damaged(path, f"user {user!r} needs two lists 'x' and 'y' of equal length")
            if counts is not None and counts[position] != len(x):
                raise damaged(path, f"user {user!r} has {len(x)} samples, but 'num_samples' says {counts[position]}")
            yield path, user, x, y

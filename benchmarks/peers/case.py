"""The input of every contender of a simulation, as files in one folder, and its output.

Images are bytes, client after client; each contender makes numbers of them in its own way. Nothing but numpy is
imported: contenders read this in environments of their own.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Case", "Left", "chosen_clients", "leave", "read_case", "read_left", "save_arrays", "write_case"]

Arrays = Mapping[str, NDArray[Any]]

_TASK, _X, _Y, _WEIGHTS = "task.json", "x.npy", "y.npy", "weights.npz"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How much work there is."""

    model: str
    rounds: int
    clients: int = 100
    per_round: int = 10
    samples: int = 600
    """Of each client."""
    batch: int = 64
    rate: float = 0.05
    workers: int = 2
    mean: float = 0.0
    deviation: float = 1.0
    """Of the bytes divided by 255."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Left:
    """What a contender ended with."""

    ends: Sequence[float]
    """When each round ended, in seconds since 1970."""
    weights: Arrays


def write_case(folder: Path, case: Case, x: NDArray[np.uint8], y: NDArray[np.int64], weights: Arrays) -> None:
    """Write the files."""
    (folder / _TASK).write_text(json.dumps(dataclasses.asdict(case)), encoding="utf-8")
    np.save(folder / _X, x)
    np.save(folder / _Y, y)
    save_arrays(folder / _WEIGHTS, weights)


def read_case(folder: Path) -> tuple[Case, NDArray[np.uint8], NDArray[np.int64], dict[str, NDArray[Any]]]:
    """Return the work, all images and labels, and the initial weights. Images stay on the disk until they are used."""
    case = Case(**json.loads((folder / _TASK).read_text(encoding="utf-8")))
    with np.load(folder / _WEIGHTS) as stored:
        weights = dict(stored)
    return case, np.load(folder / _X, mmap_mode="r"), np.load(folder / _Y), weights


def chosen_clients(case: Case, number: int) -> list[int]:
    """Return who takes part in a round, for contenders that do not choose for themselves."""
    return [int(one) for one in np.random.default_rng(number).permutation(case.clients)[: case.per_round]]


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays by their names."""
    named: dict[str, Any] = dict(arrays)
    np.savez(path, **named)


def leave(folder: Path, name: str, ends: Sequence[float], weights: Arrays) -> None:
    """Write what a contender ended with."""
    save_arrays(folder / f"{name}.npz", weights)
    (folder / f"{name}.json").write_text(json.dumps(list(ends)), encoding="utf-8")


def read_left(folder: Path, name: str) -> Left:
    """Read it again."""
    with np.load(folder / f"{name}.npz") as stored:
        return Left(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")), dict(stored))

"""What is known of published images, independently of any hash: counts, mean colours, first labels."""

from dataclasses import dataclass

import numpy as np

from edgefl.data import Samples
from edgefl.errors import DataError

__all__ = ["Facts", "check_facts"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What one part of a data set is known by."""

    per_class: tuple[int, ...]
    means: tuple[float, ...]
    """The mean of every colour, from 0 to 1, to four digits."""
    first_labels: tuple[int, ...]


def check_facts(part: str, samples: Samples, facts: Facts) -> None:
    """Refuse samples of which something known does not hold; `part` names them in the message."""
    counts = tuple(np.bincount(samples.labels, minlength=len(facts.per_class)).tolist())
    if counts != facts.per_class:
        raise _wrong(part, "images of each class", counts, facts.per_class)
    first = tuple(samples.labels[: len(facts.first_labels)].tolist())
    if first != facts.first_labels:
        raise _wrong(part, "first labels", first, facts.first_labels)
    means = tuple(round(float(mean), 4) for mean in samples.features.mean(axis=(0, 2, 3)) / 255)
    if means != facts.means:
        raise _wrong(part, "mean colours", means, facts.means)


def _wrong(part: str, what: str, found: tuple[float, ...], known: tuple[float, ...]) -> DataError:
    return DataError(
        f"This is not the published data set: the {what} of its {part} are {_listed(found)}, not {_listed(known)}",
        fix="Do not use this package; get the data set from its publisher (see `edgefl data list`)",
    )


def _listed(numbers: tuple[float, ...]) -> str:
    return " ".join(map(str, numbers))

"""Each client's own validation and test samples, with labels in the proportions of its training samples.

They are either taken from the client's samples (`split_clients`), or drawn from the published test set
(`matched_test`), as FedSpa (appendix B.1) and PerFedMask (section 5) do. A personal model is evaluated on samples like
those it is for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgefl.data.partitions import Partition
from edgefl.data.samples import frozen
from edgefl.data.schemes.apportionment import apportion, generator
from edgefl.errors import DataError

__all__ = ["ClientSplit", "split_clients", "matched_test"]


@dataclass(frozen=True, slots=True, eq=False)
class ClientSplit:
    """Sorted indices of one client's samples, into the partitioned training samples."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]

    def __post_init__(self) -> None:
        for part in ("train", "validation", "test"):
            object.__setattr__(self, part, frozen(np.sort(getattr(self, part))))


def split_clients(
    partition: Partition,
    labels: NDArray[np.int64],
    *,
    validation: float = 0.1,
    test: float = 0.2,
    seed: int = 0,
) -> tuple[ClientSplit, ...]:
    """Split each client's samples into training, validation and test samples, label by label.

    Training keeps at least one sample of every label the client has, so every tested label was trained, and training is
    never empty. Within that, a part with a fraction above 0 gets at least one sample, test first.
    """
    if not (min(validation, test) >= 0 and validation + test < 1):
        raise DataError(
            f"Fractions of {validation} for validation and {test} for test are not valid",
            fix="Use fractions of at least 0 whose sum is below 1",
        )
    partition.label_counts(labels, 1 + int(labels.max(initial=0)))  # rejects labels of another data set
    rng = generator(seed)
    return tuple(_split(client, labels[client], validation, test, rng) for client in partition.clients)


def _part_size(samples: int, fraction: float, available: int) -> int:
    wanted = int(np.floor(samples * fraction + 0.5))
    return min(max(wanted, 1) if fraction > 0 else 0, available)


def _split(
    client: NDArray[np.int64],
    labels: NDArray[np.int64],
    validation: float,
    test: float,
    rng: np.random.Generator,
) -> ClientSplit:
    values, counts = np.unique(labels, return_counts=True)
    spare = counts.astype(np.int64) - 1
    to_give = int(spare.sum())
    most_tests = to_give - 1 if validation > 0 and to_give > 1 else to_give  # one is left to validate with
    for_test = apportion(_part_size(len(client), test, most_tests), counts.astype(np.float64), spare)
    spare = spare - for_test
    for_validation = apportion(_part_size(len(client), validation, int(spare.sum())), counts.astype(np.float64), spare)
    train, held_out, tested = [], [], []
    for value, tests, holds in zip(values, for_test, for_validation, strict=True):
        members = rng.permutation(client[labels == value])
        tested.append(members[:tests])
        held_out.append(members[tests : tests + holds])
        train.append(members[tests + holds :])
    return ClientSplit(np.concatenate(train), np.concatenate(held_out), np.concatenate(tested))


def matched_test(
    partition: Partition,
    train_labels: NDArray[np.int64],
    test_labels: NDArray[np.int64],
    *,
    samples: int = 100,
    seed: int = 0,
) -> tuple[NDArray[np.int64], ...]:
    """Return, for each client, indices of test samples in the label proportions of its training samples.

    No client gets a sample twice, but clients may share some. If the test set has too few samples of a label, the
    client gets fewer samples overall rather than other proportions; a label missing from the test set is left out.
    """
    if samples < 1:
        raise DataError(f"{samples} test samples per client were requested", fix="Request at least 1")
    classes = 1 + max(int(train_labels.max(initial=0)), int(test_labels.max(initial=0)))
    available = np.bincount(test_labels, minlength=classes)
    rng = generator(seed)
    by_label = [np.flatnonzero(test_labels == label) for label in range(classes)]
    chosen = []
    for number, counts in enumerate(partition.label_counts(train_labels, classes)):
        usable = np.where(available > 0, counts, 0)
        if not usable.any():
            raise DataError(
                f"The test set has no sample of any label that client {number} trains on",
                fix="Use split_clients, which takes test samples from the client's own",
            )
        wanted = _matched_counts(usable, available, samples)
        drawn = [rng.permutation(by_label[label])[: wanted[label]] for label in np.flatnonzero(wanted)]
        chosen.append(frozen(np.sort(np.concatenate(drawn))))
    return tuple(chosen)


def _matched_counts(counts: NDArray[np.int64], available: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the test samples per label: as many as possible, up to `most`, in the proportions of `counts`."""
    held = counts > 0
    total = int(counts.sum())
    possible = int((available[held] * total // counts[held]).min())
    return apportion(min(most, possible), counts.astype(np.float64), available)

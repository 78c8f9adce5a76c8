"""Partition: which client has which training samples, and the specs such as `dirichlet:0.3` that describe one.

The simulator and the command line call `partition`. The schemes are in `edgefl.data.schemes`; this module parses a spec
and checks that the result uses every sample exactly once.
"""

import hashlib
import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgefl.data.dataset import MOST_CLASSES
from edgefl.data.samples import Samples, frozen
from edgefl.data.schemes.apportionment import generator
from edgefl.data.schemes.dirichlet import LEAST_ALPHA, MOST_ALPHA, dirichlet
from edgefl.data.schemes.few_labels import few_labels
from edgefl.data.schemes.iid_and_owner import by_owner, iid
from edgefl.data.schemes.two_class import two_class
from edgefl.errors import DataError

__all__ = ["SCHEMES", "DEFAULT_CLIENTS", "Scheme", "Partition", "parse_scheme", "partition"]

DEFAULT_CLIENTS = 10

SCHEMES = ("iid", "dirichlet:ALPHA", "labels:K", "owner", "two-class:RATE")
"""The specs of schemes. `edgefl data show --help` describes each."""

_NUMBERS = {
    "dirichlet": f"a number from {LEAST_ALPHA:g} to {MOST_ALPHA:g}, such as dirichlet:0.3",
    "labels": f"a whole number from 1 to {MOST_CLASSES}, such as labels:3",
    "two-class": "a number above 0 and at most 1, such as two-class:0.5",
}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to divide samples: its kind, and its parameter."""

    kind: str
    number: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in (name.partition(":")[0] for name in SCHEMES):
            raise DataError(f"{self.kind!r} is not a known partition scheme", fix=f"Use one of: {', '.join(SCHEMES)}")
        if self.kind not in _NUMBERS and self.number is not None:
            raise DataError(f"The scheme {self.kind} takes no number", fix=f"Write just {self.kind}")
        if self.kind in _NUMBERS and self.number is None:
            raise DataError(f"The scheme {self.kind} needs a number", fix=f"Use {_NUMBERS[self.kind]}")
        if self.number is not None and not _fits(self.kind, self.number):
            raise DataError(
                f"The scheme {self.kind} has the invalid number {self.number}", fix=f"Use {_NUMBERS[self.kind]}"
            )

    def __str__(self) -> str:
        if self.number is None:
            return self.kind
        whole = self.number == int(self.number)
        return f"{self.kind}:{int(self.number) if whole else repr(self.number)}"


def _fits(kind: str, number: float) -> bool:
    if kind == "dirichlet":
        return LEAST_ALPHA <= number <= MOST_ALPHA
    if kind == "labels":
        return 1 <= number <= MOST_CLASSES and number == int(number)
    return 0 < number <= 1


def parse_scheme(text: str) -> Scheme:
    """Parse a spec such as `iid` or `labels:3`."""
    kind, colon, value = text.strip().lower().partition(":")
    try:
        number = float(value) if colon else None
    except ValueError as error:
        raise DataError(
            f"{value!r} in the scheme {text!r} is not a number",
            fix="Use " + _NUMBERS.get(kind, f"one of: {', '.join(SCHEMES)}"),
        ) from error
    return Scheme(kind, number)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The sorted indices of each client's training samples; together they cover every sample exactly once."""

    scheme: str
    seed: int
    clients: tuple[NDArray[np.int64], ...]

    def __post_init__(self) -> None:
        clients = tuple(frozen(np.sort(np.asarray(client, dtype=np.int64))) for client in self.clients)
        if not clients or not all(len(client) for client in clients):
            raise DataError(
                "A partition has no clients, or a client without samples", fix="Give every client at least one sample"
            )
        together = np.sort(np.concatenate(clients))
        if not np.array_equal(together, np.arange(len(together))):
            raise DataError(
                "The clients of a partition do not have every sample exactly once",
                fix=f"Assign each of the indices 0 to {len(together) - 1} to one client",
            )
        object.__setattr__(self, "clients", clients)

    def __len__(self) -> int:
        return len(self.clients)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of samples of each client."""
        return np.array([len(client) for client in self.clients], dtype=np.int64)

    def label_counts(self, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
        """Return the number of samples by client (rows) and class (columns)."""
        total = int(self.sizes.sum())
        if len(labels) != total or int(labels.max()) >= classes:
            raise DataError(
                f"A partition of {total} samples does not match {len(labels)} labels up to "
                f"{labels.max(initial=0)}, counted as {classes} classes",
                fix="Pass the labels of the partitioned training samples, and their number of classes",
            )
        return np.stack([np.bincount(labels[client], minlength=classes) for client in self.clients])

    def digest(self) -> str:
        """Return a hash of the partition: equal on two machines exactly if their clients are."""
        state = hashlib.sha256()
        for client in self.clients:
            state.update(len(client).to_bytes(8, "little"))
            state.update(client.astype("<i8").tobytes())
        return state.hexdigest()


def partition(
    samples: Samples,
    scheme: str | Scheme = "iid",
    *,
    clients: int | None = None,
    seed: int = 0,
    minimum: int | None = None,
) -> Partition:
    """Divide training samples among clients; equal arguments give equal clients (see `schemes.apportionment`).

    The default number of clients is the number of owners for `owner`, and 10 otherwise. `minimum` is the least number
    of samples of a client under `dirichlet` (by default a tenth of the average client, from 1 to 10).
    """
    wanted = parse_scheme(scheme) if isinstance(scheme, str) else scheme
    if clients is None and wanted.kind != "owner":
        clients = DEFAULT_CLIENTS
    if clients is not None:
        _check_clients(clients, len(samples))
    client_of = _assignment(samples, wanted, clients, generator(seed), minimum)
    order = np.argsort(client_of, kind="stable")
    borders = np.cumsum(np.bincount(client_of))[:-1]
    return Partition(str(wanted), seed, tuple(np.split(order, borders)))


def _check_clients(clients: int, samples: int) -> None:
    try:
        possible = 1 <= operator.index(clients) <= samples
    except TypeError:
        possible = False
    if not possible:
        raise DataError(
            f"{samples} samples cannot be divided among {clients!r} clients",
            fix=f"Use a whole number from 1 to {samples}",
        )


def _assignment(
    samples: Samples, scheme: Scheme, clients: int | None, rng: np.random.Generator, minimum: int | None
) -> NDArray[np.int64]:
    """Return the client of every sample."""
    if scheme.kind == "owner" or clients is None:
        return by_owner(samples.owners, clients, rng)
    if scheme.kind == "iid" or scheme.number is None:
        return iid(len(samples), clients, rng)
    if scheme.kind == "dirichlet":
        return dirichlet(samples.labels, clients, scheme.number, rng, minimum)
    if scheme.kind == "labels":
        return few_labels(samples.labels, clients, int(scheme.number), rng)
    return two_class(samples.labels, clients, scheme.number, rng)

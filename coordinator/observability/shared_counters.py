"""Counters that all workers of a coordinator share, in one folder.

Prometheus asks one worker, whichever accepts the connection, and must get the sum over all of them. Every process has
files of its own, and whoever is asked adds them up:

    counted-PID    counters and histograms
    present-PID    numbers of the moment, which end with the process
    lock           held by readers together, and by whoever folds files alone
    owner          held by the first process, so that others can tell whether the folder is in use

prometheus_client's own multiprocess mode is switched on for a whole process by a variable that must be set before it is
imported, and keeps the files of dead processes for ever. Here the files of a worker that died are folded into those of
the first process, in one step for all readers, so no sum goes back while the coordinator runs.
"""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from prometheus_client.core import Metric

from coordinator.observability.counter_file import CounterFile, read_counters

__all__ = ["Add", "SharedCounters", "counters_folder"]

_COUNTED, _PRESENT = "counted", "present"
_SIZES = {_COUNTED: 1024 * 1024, _PRESENT: 64 * 1024}
"""Bytes of the files: more than all labels of all routes need."""

Add = Callable[[float], None]


@contextlib.contextmanager
def counters_folder(state: Path) -> Iterator[Path]:
    """Make a folder for the counters of a coordinator in its state folder, and remove it in the end. What a coordinator
    that was killed left behind is removed too."""
    for old in state.glob("metrics-*"):
        _remove_unless_used(old)
    folder = Path(tempfile.mkdtemp(prefix="metrics-", dir=state))
    try:
        with (folder / "owner").open("ab") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_unless_used(folder: Path) -> None:
    with (
        contextlib.suppress(FileNotFoundError, BlockingIOError, NotADirectoryError),
        (folder / "owner").open("rb") as owner,
    ):
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


class SharedCounters:
    """The numbers of this process, and the sums over all processes of its coordinator."""

    def __init__(self, folder: Path, process: int | None = None) -> None:
        self._folder, process = folder, os.getpid() if process is None else process
        self._files = {kind: CounterFile(self._path(kind, process), size) for kind, size in _SIZES.items()}

    def counter(self, name: str, text: str, labels: Mapping[str, str]) -> Add:
        """Return a function that adds to a counter."""
        return self._adder(_name("counter", name, text, f"{name}_total", labels))

    def histogram(self, name: str, text: str, labels: Mapping[str, str], bounds: Sequence[float]) -> Add:
        """Return a function that adds a value to a histogram, whose buckets have these upper bounds."""

        def add_to(part: str, more: Mapping[str, str]) -> Add:
            return self._adder(_name("histogram", name, text, f"{name}_{part}", {**labels, **more}))

        total = add_to("sum", {})
        buckets = [(bound, add_to("bucket", {"le": str(float(bound))})) for bound in bounds]
        rest = add_to("bucket", {"le": "+Inf"})

        def observe(value: float) -> None:
            total(value)
            next((add for bound, add in buckets if value <= bound), rest)(1)

        return observe

    def set_present(self, name: str, text: str, value: float) -> None:
        """Set a number of the moment; the sum over all living processes is what is read."""
        file = self._files[_PRESENT]
        file.set(file.place(_name("gauge", name, text, name, {})), value)

    def collect(self) -> list[Metric]:
        """Return the sums over all processes."""
        sums: defaultdict[str, float] = defaultdict(float)
        with self._held(fcntl.LOCK_SH):
            for kind in _SIZES:
                for path in sorted(self._folder.glob(f"{kind}-*")):
                    for name, value in read_counters(path).items():
                        sums[name] += value
        return _metrics(sums)

    def fold(self, process: int) -> None:
        """Take over what a process that has ended had counted, and forget its numbers of the moment."""
        with self._held(fcntl.LOCK_EX):
            path, own = self._path(_COUNTED, process), self._files[_COUNTED]
            for name, value in read_counters(path).items() if path.exists() else ():
                own.add(own.place(name), value)
            for kind in _SIZES:
                self._path(kind, process).unlink(missing_ok=True)

    def _adder(self, name: str) -> Add:
        file = self._files[_COUNTED]
        place = file.place(name)
        return lambda amount: file.add(place, amount)

    def _path(self, kind: str, process: int) -> Path:
        return self._folder / f"{kind}-{process}"

    @contextlib.contextmanager
    def _held(self, how: int) -> Iterator[None]:
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)


def _name(kind: str, family: str, text: str, sample: str, labels: Mapping[str, str]) -> str:
    """Return the name of a number in a file: everything that Prometheus is told about it."""
    return json.dumps([kind, family, text, sample, dict(labels)])


def _metrics(sums: Mapping[str, float]) -> list[Metric]:
    """Return numbers as metrics. The buckets of a histogram are counted separately, and added up here."""
    found: dict[str, Metric] = {}
    below: defaultdict[str, float] = defaultdict(float)
    for name, value in sums.items():
        kind, family, text, sample, labels = json.loads(name)
        metric = found.setdefault(family, Metric(family, text, kind))
        if sample.endswith("_bucket"):
            series = json.dumps([family, {key: labels[key] for key in labels if key != "le"}])
            below[series] += value
            value = below[series]
        metric.add_sample(sample, labels, value)
        if labels.get("le") == "+Inf":
            rest = {key: labels[key] for key in labels if key != "le"}
            metric.add_sample(f"{family}_count", rest, value)
    return list(found.values())

"""The metrics that Prometheus reads at /metrics.

What processes count is summed over all workers of the coordinator; the numbers of federations are read from the
database, and the free space from the disk, by whichever worker Prometheus asks. Every app has its own folder of
counters, so two in one process do not mix.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator.federations.overview import Overview, overview_of
from coordinator.observability.shared_counters import Add, SharedCounters
from coordinator.rounds.context import Context

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The metrics of one app. `folder` is where the workers of a coordinator share their counters, and `state` the
    folder whose disk must not become full."""

    def __init__(self, context: Context, folder: Path | None = None, state: Path | None = None) -> None:
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="edgefl-metrics-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._counters = SharedCounters(folder)
        self._requests: dict[tuple[str, str, int], tuple[Add, Add]] = {}
        self._updates: dict[str, Add] = {}
        self._in, self._out = (
            self._counters.counter("edgefl_body_bytes", "Bytes of bodies.", {"direction": direction})
            for direction in ("in", "out")
        )
        self._watched: dict[str, tuple[str, Callable[[], float]]] = {}
        self.watch("edgefl_workers", "Processes that serve.", lambda: 1)
        self._registry = CollectorRegistry()
        self._registry.register(_Counted(self._counters))
        self._registry.register(_Federations(context))
        if state is not None:
            self._registry.register(_FreeSpace(state))

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Add a present number of this process, which `refresh` reads; Prometheus gets the sum over all processes."""
        self._watched[name] = (text, value)

    def refresh(self) -> None:
        """Read the present numbers of this process, for all who are asked."""
        for name, (text, value) in self._watched.items():
            self._counters.set_present(name, text, value())

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        known = self._requests.get((route, method, status))
        if known is None:
            known = self._requests[route, method, status] = self._new_request(route, method, status)
        known[0](1)
        known[1](seconds)

    def traffic(self, received: int, sent: int) -> None:
        """Count bytes of bodies."""
        self._in(received)
        self._out(sent)

    def update(self, outcome: str) -> None:
        """Count an update."""
        if outcome not in self._updates:
            add = self._counters.counter("edgefl_updates", "Updates by outcome.", {"outcome": outcome})
            self._updates[outcome] = add
        self._updates[outcome](1)

    def text(self) -> bytes:
        """Return everything in Prometheus' text form."""
        self.refresh()
        return generate_latest(self._registry)

    def fold(self, process: int) -> None:
        """Take over what a worker that has ended had counted."""
        self._counters.fold(process)

    def _new_request(self, route: str, method: str, status: int) -> tuple[Add, Add]:
        labels = {"route": route, "method": method}
        text = "Seconds until a request was answered, including waiting."
        return (
            self._counters.counter("edgefl_requests", "Requests answered.", labels | {"status": str(status)}),
            self._counters.histogram("edgefl_request_seconds", text, labels, _SECONDS),
        )


_NUMBERS: tuple[tuple[str, str, Callable[[Overview], float | None]], ...] = (
    ("edgefl_rounds_done", "Rounds that a federation has done.", lambda one: one.rounds_done),
    ("edgefl_rounds_wanted", "Rounds that a federation is configured to have.", lambda one: one.rounds),
    ("edgefl_round_updates", "Updates that count in the latest round.", lambda one: one.updates),
    ("edgefl_devices", "Devices of a federation.", lambda one: one.devices),
    (
        "edgefl_aggregation_seconds",
        "Seconds that the aggregation of the last round took.",
        lambda one: (one.report or {}).get("combine_seconds"),
    ),
    (
        "edgefl_accuracy",
        "Accuracy of the part of the global model that devices hold.",
        lambda one: (one.report or {}).get("accuracy"),
    ),
    (
        "edgefl_judged_fraction",
        "Share of the model's parameters in the part that the accuracy is of.",
        lambda one: (one.report or {}).get("judged_fraction"),
    ),
)


class _Counted(Collector):
    def __init__(self, counters: SharedCounters) -> None:
        self._counters = counters

    def describe(self) -> list[Metric]:
        """Return nothing, so that creating a registry reads no files."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Add up what the workers counted."""
        yield from self._counters.collect()


class _FreeSpace(Collector):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """Read the free space of the disk."""
        free = shutil.disk_usage(self._folder).free
        yield GaugeMetricFamily("edgefl_state_free_bytes", "Free bytes on the disk of the state folder.", free)


class _Federations(Collector):
    def __init__(self, context: Context) -> None:
        self._context = context

    def describe(self) -> list[Metric]:
        """Return nothing, so that creating a registry does not read the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the federations."""
        overviews = [overview_of(self._context, one) for one in self._context.store.federations.all()]
        states = GaugeMetricFamily(
            "edgefl_federation", "Federations, each 1, by state.", labels=("federation", "state")
        )
        for one in overviews:
            states.add_metric((one.name, str(one.state)), 1)
        yield states
        for name, text, number in _NUMBERS:
            family = GaugeMetricFamily(name, text, labels=("federation",))
            for one in overviews:
                value = number(one)
                if value is not None:
                    family.add_metric((one.name,), value)
            yield family

"""The metrics that Prometheus reads at /metrics. Every app has its own registry, so two in one process do not mix.

Requests are counted per process; the numbers of federations are read from the database when Prometheus asks.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator.federations.overview import Overview, overview_of
from coordinator.rounds.context import Context

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The metrics of one app."""

    def __init__(self, context: Context) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "edgefl_requests", "Requests answered.", ("route", "method", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "edgefl_request_seconds",
            "Seconds until a request was answered, including waiting.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._updates = Counter("edgefl_updates", "Updates by outcome.", ("outcome",), registry=self.registry)
        self._bytes = Counter("edgefl_body_bytes", "Bytes of bodies.", ("direction",), registry=self.registry)
        self._in, self._out = self._bytes.labels("in"), self._bytes.labels("out")
        self.registry.register(_Federations(context))

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Add a number that is read whenever Prometheus asks."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        known = self._known.get((route, method, status))
        if known is None:
            known = self._requests.labels(route, method, str(status)), self._seconds.labels(route, method)
            self._known[route, method, status] = known
        known[0].inc()
        known[1].observe(seconds)

    def traffic(self, received: int, sent: int) -> None:
        """Count bytes of bodies."""
        self._in.inc(received)
        self._out.inc(sent)

    def update(self, outcome: str) -> None:
        """Count an update."""
        self._updates.labels(outcome).inc()

    def text(self) -> bytes:
        """Return everything in Prometheus' text form."""
        return generate_latest(self.registry)


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
    ("edgefl_accuracy", "Accuracy of the global model.", lambda one: (one.report or {}).get("accuracy")),
)


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

"""From a strategy's orders to what devices download, as `coordinator.orders` does it: plans, and the bodies they name.

Devices with the same mask share its bodies. What a device has downloaded before, it has: a mask that stays and a graph
that is known cost nothing again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from edgefl.artifacts.bundle import GRAPH, INFER, Bundle
from edgefl.artifacts.submodel import training_graph
from edgefl.local_rules import LocalTraining
from edgefl.masks import gather
from edgefl.simulation.jobs import Training
from edgefl.simulation.settings import FederationSettings
from edgefl.strategies import Model, Order
from edgefl.strategies.chance import task_seed
from edgefl.values import ClientPlan, Digest, digest_of, dumps
from edgefl.wire import encode_mask, encode_weights

__all__ = ["Handed", "Handout"]


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """A task, and what it was made from."""

    device_id: str
    order: Order
    plan: ClientPlan
    job: Training
    setup_bytes: int
    """Bytes of the graphs that the device had not had."""


@dataclass(slots=True, eq=False)
class Handout:
    """Hands out tasks, and knows what every device has."""

    bundle: Bundle
    settings: FederationSettings
    places: Mapping[str, int]
    """The place of each device in the fleet."""
    _graphs: dict[frozenset[str], tuple[Digest, int]] = field(default_factory=dict)
    _has: dict[str, set[Digest]] = field(default_factory=dict)

    def tasks(self, model: Model, orders: Mapping[str, Order], number: int) -> list[Handed]:
        """Return the tasks of a round, in the order of their devices."""
        bodies = _Bodies(model)
        return [self._task(bodies, device, order, number) for device, order in sorted(orders.items())]

    def _task(self, bodies: "_Bodies", device: str, order: Order, number: int) -> Handed:
        mask, weights, extras = bodies.of(order)
        graph = self._graph(order)
        files = self.bundle.manifest.files
        plan = ClientPlan(
            task_id=f"{number}-{device}",
            device_id=device,
            round=number,
            rounds=self.settings.rounds,
            rule=order.rule,
            work=order.work,
            deadline_seconds=self.settings.deadline,
            seed=task_seed(self.settings.seed, number, device),
            predicted=order.predicted,
            mask=order.mask.digest,
            mask_body=mask.digest,
            weights=weights.digest,
            graph=graph[0],
            extras=None if extras is None else extras.digest,
            model=files[GRAPH],
            inference=files[INFER],
        )
        text = dumps(plan).encode()
        sent = [body for body in (mask, weights, extras) if body is not None]
        down = len(text) + self._downloads(device, [(body.digest, len(body.data)) for body in sent])
        graphs = [graph, *((files[name], len(self.bundle.files[name])) for name in (GRAPH, INFER))]
        setup = self._downloads(device, graphs)
        extra = None if extras is None else extras.data
        own = order.rule.name == LocalTraining.name
        job = Training(self.places[device], text, mask.data, weights.data, extra, down + setup, own)
        return Handed(device, order, plan, job, setup)

    def _graph(self, order: Order) -> tuple[Digest, int]:
        trained = order.mask.trained
        if trained not in self._graphs:
            data = training_graph(self.bundle, order.mask)
            self._graphs[trained] = digest_of(data), len(data)
        return self._graphs[trained]

    def _downloads(self, device: str, wanted: list[tuple[Digest, int]]) -> int:
        """Return the bytes that a device lacks, and note that it has them now."""
        has = self._has.setdefault(device, set())
        lacking = {digest: size for digest, size in wanted if digest not in has}
        has.update(lacking)
        return sum(lacking.values())


@dataclass(frozen=True, slots=True)
class _Sent:
    data: bytes
    digest: Digest


class _Bodies:
    """The bodies of one round's orders, each made once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._made: dict[tuple[str, str], _Sent] = {}

    def of(self, order: Order) -> tuple[_Sent, _Sent, _Sent | None]:
        """Return mask, weights and extras of an order."""
        mask, about = order.mask, {"model": order.mask.graph.digest, "mask": order.mask.digest}
        extras = None
        if order.extras:
            # Orders that share their arrays share the body; the arrays live as long as the orders do.
            key = ",".join(f"{name}:{id(array)}" for name, array in sorted(order.extras.items()))
            extras = self._make("extras", key, lambda: encode_weights(order.extras, about))
        return (
            self._make("mask", mask.digest, lambda: encode_mask(mask)),
            self._make("weights", mask.digest, lambda: encode_weights(gather(mask, self._model.weights), about)),
            extras,
        )

    def _make(self, kind: str, name: str, make: Callable[[], bytes]) -> _Sent:
        if (kind, name) not in self._made:
            data = make()
            self._made[kind, name] = _Sent(data, digest_of(data))
        return self._made[kind, name]

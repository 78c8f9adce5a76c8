"""From planned tasks to what devices download: plans, and the bodies that they name.

Devices with the same mask share its bodies. What a device has downloaded before, it has: a mask that stays and a graph
that is known cost nothing again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from edgefl.artifacts.bundle import GRAPH, INFER, TRAIN, Bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.federation.seeds import task_seed
from edgefl.local_rules import LocalTraining
from edgefl.masks import gather
from edgefl.simulation.jobs import TrainingJob
from edgefl.simulation.settings import FederationSettings
from edgefl.strategies import Model, PlannedTask
from edgefl.values import ClientPlan, Digest, digest_of, dumps
from edgefl.wire import encode_mask, encode_weights

__all__ = ["Handed", "Handout"]


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """A task, and what it was made from."""

    device_id: str
    planned: PlannedTask
    plan: ClientPlan
    job: TrainingJob
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

    def tasks(self, model: Model, planned_tasks: Mapping[str, PlannedTask], number: int) -> list[Handed]:
        """Return the tasks of a round, in the order of their devices."""
        bodies = _Bodies(model)
        return [self._task(bodies, device, planned, number) for device, planned in sorted(planned_tasks.items())]

    def _task(self, bodies: "_Bodies", device: str, planned: PlannedTask, number: int) -> Handed:
        mask, weights, extras = bodies.of(planned)
        graph = self._graph(planned)
        files = self.bundle.manifest.files
        plan = ClientPlan(
            task_id=f"{number}-{device}",
            device_id=device,
            round=number,
            rounds=self.settings.rounds,
            rule=planned.rule,
            work=planned.work,
            deadline_seconds=self.settings.deadline,
            seed=task_seed(self.settings.seed, number, device),
            predicted=planned.predicted,
            mask=planned.mask.digest,
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
        own = planned.rule.name == LocalTraining.name
        job = TrainingJob(self.places[device], text, mask.data, weights.data, extra, down + setup, own)
        return Handed(device, planned, plan, job, setup)

    def _graph(self, planned: PlannedTask) -> tuple[Digest, int]:
        trained = planned.mask.trained
        if trained not in self._graphs:
            data = cut_training_graph(self.bundle.files[TRAIN], planned.mask)
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

    def of(self, planned: PlannedTask) -> tuple[_Sent, _Sent, _Sent | None]:
        """Return mask, weights and extras of an order."""
        mask, about = planned.mask, {"model": planned.mask.graph.digest, "mask": planned.mask.digest}
        extras = None
        if planned.extras:
            # Orders that share their arrays share the body; the arrays live as long as the orders do.
            key = ",".join(f"{name}:{id(array)}" for name, array in sorted(planned.extras.items()))
            extras = self._make("extras", key, lambda: encode_weights(planned.extras, about))
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

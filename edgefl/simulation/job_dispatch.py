"""Dispatch in a simulation: planned tasks become jobs for workers, with the bytes that each device downloads.

`edgefl.federation.dispatch` makes the plans and the bodies. A device keeps what it has downloaded: an unchanged mask or
graph costs nothing again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.artifacts.bundle import GRAPH, INFER, TRAIN, Bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.federation.dispatch import BodyRole, Dispatcher
from edgefl.federation.settings import FederationSettings
from edgefl.local_rules import continues_own
from edgefl.masks import Mask
from edgefl.simulation.jobs import TrainingJob
from edgefl.strategies import Model, PlannedTask
from edgefl.values import ClientPlan, Digest, digest_of, dumps

__all__ = ["DispatchedJob", "JobDispatcher"]


@dataclass(frozen=True, slots=True, eq=False)
class DispatchedJob:
    """A task, and what it was made from."""

    planned: PlannedTask
    plan: ClientPlan
    job: TrainingJob
    setup_bytes: int
    """Bytes of the graphs that the device did not have yet."""

    @property
    def device_id(self) -> str:
        """The device whose task it is."""
        return self.plan.device_id


class JobDispatcher:
    """Dispatches the rounds of one simulation, and knows what every device has downloaded."""

    def __init__(self, bundle: Bundle, settings: FederationSettings, places: Mapping[str, int]) -> None:
        """Take the model, the settings, and the place of each device in the fleet."""
        self._bundle, self._places = bundle, places
        self._graphs: dict[frozenset[str], bytes] = {}
        self._downloaded: dict[str, set[Digest]] = {}
        self._dispatcher = Dispatcher(
            settings=settings,
            bundle=bundle,
            training_graph=self._training_graph,
            task_id=lambda number, serial, device: (
                f"{number}-{device}" if serial == 1 else f"{number}-{serial}-{device}"
            ),
        )

    def dispatch(
        self, model: Model, planned_tasks: Mapping[str, PlannedTask], number: int, serial: int = 1
    ) -> list[DispatchedJob]:
        """Return the jobs of a round, in the order of their devices; `serial` tells several of one device apart."""
        bodies = _Memory()
        return [
            self._job(one.planned, one.plan, bodies)
            for one in self._dispatcher.dispatch(model, planned_tasks, bodies, number=number, serial=serial)
        ]

    def _job(self, planned: PlannedTask, plan: ClientPlan, bodies: "_Memory") -> DispatchedJob:
        text, stored = dumps(plan).encode(), bodies.by_digest
        mask, weights = stored[plan.mask_body or ""], stored[plan.weights or ""]
        extras = None if plan.extras is None else stored[plan.extras]
        named = [digest for digest in (plan.mask_body, plan.weights, plan.extras) if digest is not None]
        down = len(text) + self._download(plan.device_id, {digest: len(stored[digest]) for digest in named})
        files = self._bundle.manifest.files
        graphs = {files[name]: len(self._bundle.files[name]) for name in (GRAPH, INFER)}
        setup = self._download(
            plan.device_id, graphs | ({} if plan.graph is None else {plan.graph: len(stored[plan.graph])})
        )
        starts_from_own = continues_own(planned.rule)
        place = self._places[plan.device_id]
        graph = None if plan.graph is None or not planned.networks else stored[plan.graph]
        job = TrainingJob(place, text, mask, weights, extras, down + setup, starts_from_own, graph)
        return DispatchedJob(planned, plan, job, setup)

    def _training_graph(self, mask: Mask) -> bytes:
        if mask.trained not in self._graphs:
            self._graphs[mask.trained] = cut_training_graph(self._bundle.files[TRAIN], mask)
        return self._graphs[mask.trained]

    def _download(self, device: str, sizes: Mapping[Digest, int]) -> int:
        """Return the bytes that a device lacks, and note that it has them now."""
        downloaded = self._downloaded.setdefault(device, set())
        lacking = {digest: size for digest, size in sizes.items() if digest not in downloaded}
        downloaded.update(lacking)
        return sum(lacking.values())


@dataclass(frozen=True, slots=True)
class _Memory:
    """Keeps the bodies of one round in memory."""

    by_digest: dict[Digest, bytes] = field(default_factory=dict)

    def store(self, bodies: Sequence[tuple[BodyRole, bytes]]) -> Sequence[Digest]:
        digests = [digest_of(body) for _, body in bodies]
        self.by_digest.update(zip(digests, (body for _, body in bodies), strict=True))
        return digests

    def reuse(self, role: BodyRole, digest: Digest) -> bool:
        return digest in self.by_digest

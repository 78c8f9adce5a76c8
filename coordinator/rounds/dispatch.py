"""From a strategy's orders to tasks: plans, and the bodies that they name.

Called when a round opens or gets further devices. Devices with the same mask share its bodies, so what a round costs
here grows with its different masks, not with its devices.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from coordinator.rounds.context import Context
from coordinator.storage.records import Artifact, Federation, Task
from edgefl.artifacts.bundle import GRAPH, INFER
from edgefl.federation.seeds import task_seed
from edgefl.masks import Mask, gather
from edgefl.noise import derive
from edgefl.strategies import Model, PlannedTask
from edgefl.values import ClientPlan, dumps
from edgefl.wire import encode_mask, encode_weights

__all__ = ["DispatchedTasks", "prepare", "shared_artifacts"]

_GROUP_BYTES = 32 * 2**20
"""Bodies that wait for the disk together."""


@dataclass(frozen=True, slots=True)
class DispatchedTasks:
    """Tasks, and what their devices will download; the bodies are in the blob store already."""

    tasks: list[Task]
    artifacts: list[Artifact]


def prepare(
    context: Context,
    federation: Federation,
    model: Model,
    body: str,
    planned_tasks: Mapping[str, PlannedTask],
    *,
    number: int,
    serial: int,
    at: float,
) -> DispatchedTasks:
    """Make the tasks of some devices in one round; `serial` tells those of one device apart.

    `body` names the weights of the whole model in the blob store: who has all of it downloads just that.
    """
    bodies = _Bodies(context, federation, model, body, number)
    for planned in planned_tasks.values():
        bodies.add(planned)
    digests = bodies.keep()
    settings = context.library.settings(federation)
    # The same device may do two tasks of one buffered round, and shall not do the same thing twice.
    again = [serial] if settings.buffered else []
    tasks = []
    for device, planned in sorted(planned_tasks.items()):
        # The time of creation keeps the tasks of a federation apart from those of an earlier one with the same name.
        unique = derive(0, federation.id, repr(federation.created_at), number, serial, device)
        plan = ClientPlan(
            task_id=f"{number}-{serial}-{unique:016x}",
            device_id=device,
            round=number,
            rounds=settings.rounds.count,
            rule=planned.rule,
            work=planned.work,
            deadline_seconds=settings.rounds.deadline,
            seed=task_seed(settings.seed, number, device, *again),
            predicted=planned.predicted,
            mask=planned.mask.digest,
            mask_body=digests.by_key["mask", planned.mask.digest],
            weights=digests.by_key["weights", planned.mask.digest],
            graph=digests.by_key["graph", _trained(planned.mask)],
            extras=digests.by_key.get(("extras", _extras_key(planned))),
            model=digests.model_graph,
            inference=digests.inference,
        )
        cost, every = planned.mask.cost, max(planned.mask.graph.parameters, 1)
        task = Task(
            id=plan.task_id,
            federation=federation.id,
            round=number,
            device=device,
            plan=dumps(plan),
            created_at=at,
            kept_fraction=cost.parameters / every,
            trained_fraction=cost.trained_parameters / every,
        )
        context.library.remember_plan(task, plan)
        tasks.append(task)
    return DispatchedTasks(tasks, digests.artifacts)


def shared_artifacts(context: Context, federation: Federation) -> list[Artifact]:
    """Put what every round needs into the blob store: the model graph, and the graph that devices evaluate with."""
    files = context.library.bundle(federation).files
    kinds = {"model_graph": files[GRAPH], "inference": files[INFER]}
    digests = context.blobs.put_all(list(kinds.values()))
    return [
        Artifact(federation=federation.id, digest=digest, kind=kind, size=len(data))
        for (kind, data), digest in zip(kinds.items(), digests, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Digests:
    """What each order's bodies are called."""

    by_key: Mapping[tuple[str, str], str]
    artifacts: list[Artifact]
    model_graph: str
    inference: str


class _Bodies:
    """Collects the bodies of orders, each once; they go to the blob store in groups, and only digests are kept."""

    def __init__(self, context: Context, federation: Federation, model: Model, body: str, number: int) -> None:
        self._context, self._federation, self._model, self._number = context, federation, model, number
        self._whole, self._whole_mask = body, context.library.mask(model.graph, None).digest
        self._waiting: dict[tuple[str, str], bytes] = {}
        self._digests: dict[tuple[str, str], str] = {}
        self._artifacts: list[Artifact] = []

    def add(self, planned: PlannedTask) -> None:
        """Make the bodies of an order, unless they are there."""
        mask, about = planned.mask, {"model": planned.mask.graph.digest, "mask": planned.mask.digest}
        self._make("mask", mask.digest, lambda: encode_mask(mask))
        if mask.digest == self._whole_mask:
            self._find("weights", mask.digest, self._whole)
        self._make("weights", mask.digest, lambda: encode_weights(gather(mask, self._model.weights), about))
        self._make("graph", _trained(mask), lambda: self._context.library.training_graph(self._federation, mask))
        if planned.extras:
            self._make("extras", _extras_key(planned), lambda: encode_weights(planned.extras, about))

    def keep(self) -> _Digests:
        """Return what everything is called, once it is all stored."""
        self._store()
        files = self._context.library.bundle(self._federation).manifest.files
        return _Digests(self._digests, self._artifacts, model_graph=files[GRAPH], inference=files[INFER])

    def _make(self, kind: str, name: str, make: Callable[[], bytes]) -> None:
        if (kind, name) in self._digests or (kind, name) in self._waiting:
            return
        self._waiting[kind, name] = make()
        if sum(map(len, self._waiting.values())) > _GROUP_BYTES:
            self._store()

    def _find(self, kind: str, name: str, digest: str) -> None:
        """Take a body that is stored already, unless it is gone."""
        if (kind, name) in self._digests:
            return
        size = self._context.blobs.size(digest)
        if size is not None:
            self._note(kind, name, digest, size)

    def _store(self) -> None:
        digests = self._context.blobs.put_all(list(self._waiting.values()))
        for ((kind, name), body), digest in zip(self._waiting.items(), digests, strict=True):
            self._note(kind, name, digest, len(body))
        self._waiting.clear()

    def _note(self, kind: str, name: str, digest: str, size: int) -> None:
        self._digests[kind, name] = digest
        self._artifacts.append(
            Artifact(federation=self._federation.id, digest=digest, kind=kind, size=size, round=self._number)
        )


def _trained(mask: Mask) -> str:
    return "\n".join(sorted(mask.trained))


def _extras_key(planned: PlannedTask) -> str:
    """Orders that share their arrays share the body; the arrays live as long as the orders do."""
    return ",".join(f"{name}:{id(array)}" for name, array in sorted(planned.extras.items()))

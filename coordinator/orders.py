"""From a strategy's orders to tasks: plans, and the bodies that they name.

Called when a round opens or gets further devices. Devices with the same mask share its bodies, and the whole model is
the round's model itself, so a fleet without masks costs nothing here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.context import Context
from coordinator.library import encode_arrays
from coordinator.selection import seed_of
from coordinator.storage.records import Artifact, Federation, Task
from edgefl.artifacts.bundle import GRAPH, INFER
from edgefl.masks import Mask, gather
from edgefl.strategies import Model, Order
from edgefl.values import ClientPlan, dumps
from edgefl.wire import encode_mask

__all__ = ["Prepared", "prepare", "shared_artifacts"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Tasks, and what their devices will download; the bodies are in the blob store already."""

    tasks: list[Task]
    artifacts: list[Artifact]


def prepare(
    context: Context,
    federation: Federation,
    model: Model,
    orders: Mapping[str, Order],
    *,
    number: int,
    attempt: int,
    at: float,
) -> Prepared:
    """Make the tasks of some devices in one round."""
    bodies = _Bodies(context, federation, model, number)
    for order in orders.values():
        bodies.add(order)
    digests = bodies.keep()
    settings = context.library.settings(federation)
    tasks = []
    for device, order in sorted(orders.items()):
        # The time of creation keeps the tasks of a federation apart from those of an earlier one with the same name.
        unique = seed_of(federation.id, repr(federation.created_at), number, attempt, device)
        plan = ClientPlan(
            task_id=f"{number}-{attempt}-{unique:016x}",
            device_id=device,
            round=number,
            rounds=settings.rounds.count,
            rule=order.rule,
            work=order.work,
            deadline_seconds=settings.rounds.deadline,
            seed=seed_of(settings.seed, "task", number, device),
            predicted=order.predicted,
            mask=order.mask.digest,
            mask_body=digests.by_key["mask", order.mask.digest],
            weights=digests.by_key["weights", order.mask.digest],
            graph=digests.by_key["graph", _trained(order.mask)],
            extras=digests.by_key.get(("extras", _extras_key(order))),
            model=digests.model_graph,
            inference=digests.inference,
        )
        tasks.append(
            Task(
                id=plan.task_id,
                federation=federation.id,
                round=number,
                device=device,
                plan=dumps(plan),
                created_at=at,
            )
        )
    return Prepared(tasks, digests.artifacts)


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
    """Collects the bodies of orders, each once."""

    def __init__(self, context: Context, federation: Federation, model: Model, number: int) -> None:
        self._context, self._federation, self._model, self._number = context, federation, model, number
        self._bodies: dict[tuple[str, str], bytes] = {}

    def add(self, order: Order) -> None:
        mask, about = order.mask, {"model": order.mask.graph.digest, "mask": order.mask.digest}
        if ("mask", mask.digest) not in self._bodies:
            self._bodies["mask", mask.digest] = encode_mask(mask)
            self._bodies["weights", mask.digest] = encode_arrays(gather(mask, self._model.weights), about)
        graph = ("graph", _trained(mask))
        if graph not in self._bodies:
            self._bodies[graph] = self._context.library.training_graph(self._federation, mask)
        if order.extras:
            self._bodies["extras", _extras_key(order)] = encode_arrays(order.extras, about)

    def keep(self) -> _Digests:
        digests = self._context.blobs.put_all(list(self._bodies.values()))
        shared = shared_artifacts(self._context, self._federation)
        artifacts = [
            Artifact(federation=self._federation.id, digest=digest, kind=kind, size=len(body), round=self._number)
            for ((kind, _), body), digest in zip(self._bodies.items(), digests, strict=True)
        ]
        return _Digests(dict(zip(self._bodies, digests, strict=True)), artifacts, *(one.digest for one in shared))


def _trained(mask: Mask) -> str:
    return "\n".join(sorted(mask.trained))


def _extras_key(order: Order) -> str:
    """Orders that share their arrays share the body; the arrays live as long as the orders do."""
    return ",".join(f"{name}:{id(array)}" for name, array in sorted(order.extras.items()))

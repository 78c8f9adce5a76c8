"""Dispatch at the coordinator: planned tasks become task records, and their bodies go to the blob store.

Called when a round opens or gets further devices. `edgefl.federation.dispatch` makes the plans and the bodies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.rounds.context import Context
from coordinator.storage.records import Artifact, Federation, Task, name_of
from edgefl.artifacts.bundle import GRAPH, INFER
from edgefl.federation.dispatch import BodyRole, DispatchedTask, Dispatcher, StoredModel
from edgefl.federation.left_out import run_sound
from edgefl.noise import derive
from edgefl.planning import Ladder
from edgefl.strategies import Model, PlannedTask
from edgefl.values import Digest, dumps

__all__ = ["DispatchedRound", "dispatch_round", "shared_artifacts"]


@dataclass(frozen=True, slots=True)
class DispatchedRound:
    """Tasks, and the artifacts that their devices will download; the bodies are in the blob store already."""

    tasks: list[Task] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Why devices that were planned for got no task."""


def dispatch_round(
    context: Context,
    federation: Federation,
    model: Model,
    model_body: Digest,
    planned_tasks: Mapping[str, PlannedTask],
    *,
    number: int,
    serial: int = 1,
) -> DispatchedRound:
    """Make the tasks of some devices, by their ids, in one round; `serial` tells several tasks of one device apart.

    `model_body` is the digest of the whole model's weights in the blob store.
    """
    repository, now, programs = context.repository, context.now(), context.programs.of(federation)
    dispatcher = Dispatcher(
        settings=repository.settings(federation),
        bundle=repository.bundle(federation),
        training_graph=lambda mask: repository.training_graph(federation, mask),
        task_id=lambda *names: _task_id(federation, *names),
        programs=programs,
    )
    whole = StoredModel(repository.mask(model.graph, None).digest, model_body)
    devices = list(planned_tasks)

    def dispatch(places: Sequence[int]) -> tuple[list[DispatchedTask], list[Artifact]]:
        sink = _BlobSink(context, federation.id, number)
        some = {name_of(devices[place]): planned_tasks[devices[place]] for place in places}
        return dispatcher.dispatch(model, some, sink, number=number, serial=serial, stored_model=whole), sink.artifacts

    (made, artifacts), faults = run_sound(dispatch, len(devices))
    ids = {name_of(device): device for device in devices}
    tasks = [_task_record(federation, dispatched, ids, now, programs.ladder) for dispatched in made]
    for task, dispatched in zip(tasks, made, strict=True):
        repository.remember_plan(task, dispatched.plan)
    return DispatchedRound(tasks, artifacts, {devices[place]: reason for place, reason in faults.items()})


def shared_artifacts(context: Context, federation: Federation) -> list[Artifact]:
    """Put what every round needs into the blob store: the model graph, and the graph that devices evaluate with."""
    files = context.repository.bundle(federation).files
    kinds = {"model_graph": files[GRAPH], "inference": files[INFER]}
    digests = context.blobs.put_all(list(kinds.values()))
    return [
        Artifact(federation=federation.id, digest=digest, kind=kind, size=len(data))
        for (kind, data), digest in zip(kinds.items(), digests, strict=True)
    ]


def _task_id(federation: Federation, number: int, serial: int, device: str) -> str:
    # The time of creation keeps the tasks of a federation apart from those of an earlier one with the same name.
    unique = derive(0, federation.id, repr(federation.created_at), number, serial, device)
    return f"{number}-{serial}-{unique:016x}"


def _task_record(
    federation: Federation, dispatched: DispatchedTask, ids: Mapping[str, str], at: float, ladder: Ladder
) -> Task:
    plan, mask, program = dispatched.plan, dispatched.planned.mask, dispatched.planned.program
    parameters = max(mask.graph.parameters, 1)
    return Task(
        id=plan.task_id,
        federation=federation.id,
        round=plan.round,
        device=ids[plan.device_id],
        plan=dumps(plan),
        created_at=at,
        kept_fraction=mask.cost.parameters / parameters,
        trained_fraction=mask.cost.trained_parameters / parameters,
        rung=None if program is None else ladder.rung_of(program),
    )


@dataclass(frozen=True, slots=True)
class _BlobSink:
    """Puts bodies into the blob store, and notes them as artifacts of a round."""

    context: Context
    federation: str
    number: int
    artifacts: list[Artifact] = field(default_factory=list)

    def store(self, bodies: Sequence[tuple[BodyRole, bytes]]) -> Sequence[Digest]:
        digests = self.context.blobs.put_all([body for _, body in bodies])
        for (role, body), digest in zip(bodies, digests, strict=True):
            self._note(role, digest, len(body))
        return digests

    def reuse(self, role: BodyRole, digest: Digest) -> bool:
        size = self.context.blobs.size(digest)
        if size is not None:
            self._note(role, digest, size)
        return size is not None

    def _note(self, role: BodyRole, digest: Digest, size: int) -> None:
        self.artifacts.append(
            Artifact(federation=self.federation, digest=digest, kind=role.value, size=size, round=self.number)
        )

"""Updates in the blob store, decoded one after the other for a strategy to aggregate.

An update is decoded when it is reached and forgotten when the next one is, so a round of a thousand updates takes the
memory of one. They can be iterated over several times: a median needs that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coordinator.rounds.context import Context
from coordinator.storage.records import Federation, Task
from edgefl.federation.updates import client_update_of, staleness_weight
from edgefl.planning import Rungs
from edgefl.strategies import ClientUpdate
from edgefl.wire import ResultBody, decode_result

__all__ = ["StoredUpdates", "update_of_task"]


def update_of_task(
    context: Context,
    federation: Federation,
    task: Task,
    base: str,
    body: ResultBody,
    trust: float = 1.0,
    *,
    rungs: Rungs | None = None,
) -> ClientUpdate:
    """Return a decoded result as the update of its task. `base` is the digest of the model of the task's round.

    `rungs` are those of a device whose engine runs programs, if a mask is to be decided on.
    """
    repository, plan = context.repository, context.repository.plan(task)
    mask = repository.mask(repository.bundle(federation).graph, plan.mask_body)
    return client_update_of(plan, mask, repository.arrays(base), body, trust, rungs=rungs)


@dataclass(frozen=True, slots=True)
class StoredUpdates:
    """The updates that count in one round, in the order of their devices."""

    context: Context
    federation: Federation
    number: int
    tasks: Sequence[Task]

    def __len__(self) -> int:
        return len(self.tasks)

    def claimed_samples(self) -> list[int]:
        """Return the number of samples that each update claims; no update is loaded for that."""
        result = self.context.repository.result
        return [
            result(task.update, task.result).samples
            for task in self.tasks
            if task.update is not None and task.result is not None
        ]

    def __iter__(self) -> Iterator[ClientUpdate]:
        repository = self.context.repository
        settings, graph = repository.settings(self.federation), repository.bundle(self.federation).graph
        for task in self.tasks:
            base = repository.start_of(self.federation.id, task.round)
            if base is None or task.update is None or task.result is None:
                raise RuntimeError(f"task {task.id} counts, but its round or its update is missing")
            trust = staleness_weight(settings, self.number - task.round)
            with self.context.blobs.open(task.update) as data:
                known = repository.result(task.update, task.result)
                body = decode_result(data, graph, limit=len(data), known=known)
                yield update_of_task(self.context, self.federation, task, base, body, trust)

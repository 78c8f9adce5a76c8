"""From updates in the blob store to what a strategy combines.

An update is decoded when it is reached and forgotten when the next one is, so a round of a thousand updates takes the
memory of one. It can be gone through several times: a median needs that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coordinator.rounds.context import Context
from coordinator.storage.records import Federation, Task
from edgefl.strategies import ClientUpdate
from edgefl.wire import ResultBody, decode_result

__all__ = ["StoredUpdates", "client_update_of"]


def client_update_of(
    context: Context, federation: Federation, task: Task, base: str, report: ResultBody, trust: float = 1.0
) -> ClientUpdate:
    """Return a report together with what its task said. `base` is the digest of the model of the task's round."""
    plan = context.library.plan(task)
    graph = context.library.bundle(federation).graph
    return ClientUpdate(
        device_id=task.device,
        mask=context.library.mask(graph, plan.mask_body),
        rule=plan.rule,
        seed=plan.seed,
        base=context.library.arrays(base),
        result=report.result,
        tensors=report.tensors,
        next_mask=report.next_mask,
        trust=trust,
    )


@dataclass(frozen=True, slots=True)
class StoredUpdates:
    """The updates that count in one round, in the order of their devices."""

    context: Context
    federation: Federation
    number: int
    tasks: Sequence[Task]

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[ClientUpdate]:
        settings = self.context.library.settings(self.federation)
        graph = self.context.library.bundle(self.federation).graph
        for task in self.tasks:
            start = self.context.library.start_of(self.federation.id, task.round)
            if start is None or task.update is None or task.result is None:
                raise RuntimeError(f"task {task.id} counts, but its round or its update is not there")
            staleness = self.number - task.round
            trust = float((1 + staleness) ** -settings.buffering.staleness_exponent)
            with self.context.blobs.open(task.update) as data:
                known = self.context.library.result(task.update, task.result)
                report = decode_result(data, graph, limit=len(data), known=known)
                yield client_update_of(self.context, self.federation, task, start, report, trust)

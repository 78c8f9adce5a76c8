"""How large the update of a task may be: as much as its plan can need, and no more than its federation allows.

A route asks before it reads an upload, so what a device sends beyond that costs nothing.
"""

from coordinator.rounds.context import Context
from coordinator.rounds.upload_checks import unknown_task
from coordinator.storage.records import Task
from edgefl.errors import EdgeFLError
from edgefl.federation.cache import LruCache
from edgefl.local_rules import most_upload_bytes
from edgefl.values import RuleSettings

__all__ = ["UploadSizes"]

_Key = tuple[str, str, RuleSettings]


class UploadSizes:
    """The largest updates of tasks. Several threads may use it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._needed: LruCache[_Key, int] = LruCache(4096)
        """The most bytes that a plan can need, by federation, mask and rule."""

    def known(self, task: Task) -> int | None:
        """Return the most bytes of a task's update, if that is known already; None if it must be counted."""
        needed = self._needed.find(self._key(task))
        return None if needed is None else self._allowed(task, needed)

    def most_bytes(self, task: Task) -> int:
        """Return the most bytes of a task's update. This may read the model and a mask."""
        return self._allowed(task, self._needed.get(self._key(task), lambda: self._count(task)))

    def _key(self, task: Task) -> _Key:
        plan = self._context.repository.plan(task)
        return task.federation, plan.mask, plan.rule

    def _allowed(self, task: Task, needed: int) -> int:
        repository = self._context.repository
        federation = repository.federation(task.federation)
        if federation is None:
            raise unknown_task(task.id)
        return min(needed, repository.settings(federation).limits.most_bytes)

    def _count(self, task: Task) -> int:
        repository = self._context.repository
        federation = repository.federation(task.federation)
        if federation is None:
            raise unknown_task(task.id)
        plan, graph = repository.plan(task), repository.bundle(federation).graph
        try:
            mask = repository.mask(graph, plan.mask_body)
        except EdgeFLError:  # the task is so old that its mask is gone: what it sends is late, and only reported
            mask = repository.mask(graph, None)
        return most_upload_bytes(plan.rule, mask)

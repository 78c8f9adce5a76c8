"""The agent: polls, works, reports, and goes on after anything.

One turn of its loop does the next thing that its home says: deliver what waits to be acknowledged, go on with the task
at hand, or ask for another. Each thing is on disk before the next begins, so a turn may be cut off anywhere. Errors of
the network end a turn, and the loop waits before the next; errors of a task become a refusal.
"""

import errno
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from device_runtime.agent.backoff import Backoff
from device_runtime.agent.cache import ArtifactCache
from device_runtime.agent.client import BusyError, CoordinatorClient, RejectedError, UnknownDeviceError
from device_runtime.agent.clock import Clock
from device_runtime.agent.downloads import download_task
from device_runtime.agent.home import Home, Identity, OpenTask, Usage
from device_runtime.agent.policy import Conditions, Policy
from device_runtime.agent.transport import UnreachableError
from device_runtime.personal import PersonalModel, save_personal
from device_runtime.refusal import RefusalError
from device_runtime.trainer import Finished, StoppedError, Task, Trainer
from edgefl import __version__
from edgefl.errors import EdgeFLError
from edgefl.values import DeviceProfile, Enrolment, Outcome, Reason, Refusal, printable

__all__ = ["Agent", "Settings"]

Say = Callable[[str], None]

_WORTH_NOTING = 16_384
"""Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an agent behaves."""

    wait_seconds: float = 20.0
    """How long the coordinator may think about a poll."""
    policy: Policy = field(default_factory=Policy)
    cache_bytes: int = 2 * 2**30
    most_tasks: int | None = None
    """Stop after so many tasks; None goes on."""


class Agent:
    """One device of a federation."""

    def __init__(
        self,
        home: Home,
        client: CoordinatorClient,
        trainer: Callable[[str], Trainer],
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        conditions: Callable[[], Conditions] | None = None,
        backoff: Backoff | None = None,
        say: Say = lambda text: None,
    ) -> None:
        self._home, self._client, self._make_trainer = home, client, trainer
        self._settings = settings or Settings()
        self._clock = clock or Clock()
        self._conditions = conditions or (lambda: Conditions(self._clock.local()))
        self._backoff = backoff or Backoff()
        self._say = say
        self._cache = ArtifactCache(home.cache, most_bytes=self._settings.cache_bytes)
        self._counted = 0
        self.tasks = 0
        """Tasks that this process brought to their end."""

    def enrol(self, coordinator: str, profile: DeviceProfile, key: str | None) -> Identity:
        """Take part, unless this device does already."""
        identity = self._home.identity() or Identity(coordinator, uuid.uuid4().hex)
        if identity.coordinator != coordinator:
            raise EdgeFLError(
                f"{self._home.folder} belongs to the coordinator {identity.coordinator}",
                fix="Give another --home for this one.",
            )
        if identity.token is None:
            if key is None:
                raise EdgeFLError(f"this device has not joined {coordinator} yet", fix="Give the join key with --key.")
            self._home.save_identity(identity)  # before asking: who asks twice must say the same
            asked = Enrolment(enrolment_id=identity.enrolment_id, profile=profile, software=f"edgefl {__version__}")
            answer = self._client.enrol(asked, key)
            identity = Identity(coordinator, identity.enrolment_id, answer.device_id, answer.token)
            self._home.save_identity(identity)
            self._say(f"joined {coordinator} as {answer.device_id}")
        self._client.token = identity.token
        return identity

    def run(self, stop: threading.Event) -> None:
        """Work until stopped, or until the federation is over."""
        while not stop.is_set() and (self._settings.most_tasks is None or self.tasks < self._settings.most_tasks):
            try:
                wait = self.turn(stop)
                self._backoff.reset()
            except UnreachableError as error:
                wait = self._backoff.wait(error.retry_seconds if isinstance(error, BusyError) else None)
                self._say(f"{error.problem}; next try in {wait:.0f} s")
            except StoppedError:
                return
            if wait is None:
                return
            self._count_traffic()
            stop.wait(wait)

    def turn(self, stop: threading.Event) -> float | None:
        """Do the next thing; return how long to wait after it, or None if the federation is over."""
        task = self._home.open_task()
        if task is None:
            return self._ask()
        if self._home.result() is None and self._home.refusal() is None:
            self._work(task, stop)
        self._deliver(task)
        return 0.0

    def _ask(self) -> float | None:
        """Ask for a task, unless even asking is too much for today."""
        objection = self._settings.policy.objection(self._conditions(), self._home.usage())
        if objection is not None and objection.reason is Reason.TRAFFIC:
            self._say(objection.message)
            return 600.0
        assignment = self._client.poll(self._settings.wait_seconds)
        if assignment.plan is not None:
            self._begin(self._clock.opened(assignment.plan))
            return 0.0
        if assignment.finished:
            self._say("the federation is over")
            return None
        return assignment.retry_seconds

    def _begin(self, task: OpenTask) -> None:
        self._say(f"task {task.plan.task_id} of round {task.plan.round}")
        try:
            self._home.begin_task(task)
        except OSError as error:  # a full disk must not keep the coordinator waiting
            self._refuse_now(task, _refusal(Reason.STORAGE, error.strerror or str(error)))

    def _work(self, task: OpenTask, stop: threading.Event) -> None:
        """Do the task at hand; its end, a result or a refusal, is on disk afterwards."""
        try:
            self._check(task)
            ready = download_task(task.plan, self._cache, self._client)
            self._keep(ready, self._train(task, ready, stop))
        except RefusalError as error:
            self._refuse(task, error.reason, error.problem)
        except (UnreachableError, UnknownDeviceError, StoppedError):
            raise
        except MemoryError:
            self._refuse(task, Reason.MEMORY, "there was not enough memory")
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            self._refuse(task, Reason.STORAGE if full else Reason.BROKEN, error.strerror or str(error))
        except EdgeFLError as error:
            self._refuse(task, Reason.BROKEN, error.problem)

    def _check(self, task: OpenTask) -> None:
        if self._clock.remaining(task) <= 0:
            raise _late()
        peak = None if task.plan.predicted is None else task.plan.predicted.peak_bytes
        objection = self._settings.policy.objection(self._conditions(), self._home.usage(), peak_bytes=peak)
        if objection is not None:
            raise RefusalError(objection.reason, objection.message, fix="Ask again later.")

    def _train(self, task: OpenTask, ready: Task, stop: threading.Event) -> Finished:
        trainer = self._make_trainer(task.plan.device_id)
        try:
            return trainer.run(ready, _StopAtDeadline(stop, lambda: self._clock.remaining(task) <= 0))
        except StoppedError:
            if stop.is_set():
                raise
            raise _late() from None

    def _keep(self, ready: Task, finished: Finished) -> None:
        """Put a result on disk: first what will be sent, which ends the training, then the device's own model."""
        self._home.finish_task(finished.body)
        joules = 0.0 if finished.result.telemetry.energy is None else finished.result.telemetry.energy.joules
        self._spend(joules=joules)
        if ready.inference is not None:
            model = PersonalModel(finished.mask, finished.weights, ready.inference, ready.plan.round)
            save_personal(self._home.personal, model)

    def _refuse(self, task: OpenTask, reason: Reason, problem: str) -> None:
        refusal = _refusal(reason, problem)
        self._say(f"refused: {refusal.message}")
        try:
            self._home.refuse_task(refusal)
        except OSError:
            self._refuse_now(task, refusal)

    def _refuse_now(self, task: OpenTask, refusal: Refusal) -> None:
        """Tell the coordinator without a word on disk, where there may be no room for one."""
        self._client.refuse(task.plan, refusal)
        self._home.end_task()
        self.tasks += 1

    def _deliver(self, task: OpenTask) -> None:
        """Send the task's end until the coordinator has acknowledged it."""
        body, refusal = self._home.result(), self._home.refusal()
        try:
            if body is not None:
                receipt = self._client.upload(task.plan.task_id, body)
            elif refusal is not None:
                receipt = self._client.refuse(task.plan, refusal)
            else:
                return
            said = {Outcome.ACCEPTED: "accepted", Outcome.ALREADY: "it has it already", Outcome.LATE: "too late"}
            self._say(f"task {task.plan.task_id}: {said[receipt.outcome]}")
        except RejectedError as error:
            self._say(f"task {task.plan.task_id}: {error}")
        self._home.end_task()
        self.tasks += 1

    def _count_traffic(self) -> None:
        """Add what went over the network to today's use, not for every poll."""
        total = self._client.traffic.down + self._client.traffic.up
        if total - self._counted >= _WORTH_NOTING:
            self._spend(traffic_bytes=total - self._counted)
            self._counted = total

    def _spend(self, *, joules: float = 0.0, traffic_bytes: int = 0) -> None:
        day, spent = self._clock.local().date().isoformat(), self._home.usage()
        if spent.day != day:
            spent = Usage(day)
        self._home.save_usage(Usage(day, spent.joules + joules, spent.traffic_bytes + traffic_bytes))


class _StopAtDeadline(threading.Event):
    """Is set when another event is, or when a deadline is over."""

    def __init__(self, stop: threading.Event, is_over: Callable[[], bool]) -> None:
        super().__init__()
        self._stop, self._is_over = stop, is_over

    def is_set(self) -> bool:
        """Tell whether to stop."""
        return self._stop.is_set() or self._is_over()


def _refusal(reason: Reason, problem: str) -> Refusal:
    return Refusal(reason=reason, message=printable(problem).strip()[:200].strip() or reason.value)


def _late() -> RefusalError:
    return RefusalError(Reason.DEADLINE, "the task's deadline is over", fix="Plan a smaller part, or more time.")

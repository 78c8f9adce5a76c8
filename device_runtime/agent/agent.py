"""The agent: polls, works, reports, and recovers from any failure.

One turn of its loop does the next thing that its home folder calls for: deliver what is waiting to be acknowledged,
continue the open task, or ask for another. Each thing is on disk before the next begins, so a turn may be cut off
anywhere. Network errors end a turn, and the loop waits before the next; errors of a task become a refusal. Whatever the
coordinator answers, the loop asks neither all the time nor never again.
"""

import contextlib
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from device_runtime.agent.agent_home import AgentHome, Identity, OpenTask
from device_runtime.agent.artifact_cache import ArtifactCache
from device_runtime.agent.backoff import Backoff
from device_runtime.agent.client import BusyError, CoordinatorClient, RejectedError, UnknownDeviceError
from device_runtime.agent.device_clock import DeviceClock
from device_runtime.agent.device_limits import DeviceLimits
from device_runtime.agent.owner_policy import DeviceConditions, OwnerPolicy
from device_runtime.agent.patience import OWNER_REASONS, can_wait_for_owner, can_wait_for_turn
from device_runtime.agent.pin_refresh import PinRefresh
from device_runtime.agent.shared_device import SharedUsage, TrainingTurn
from device_runtime.agent.task_runner import TaskRunner
from device_runtime.agent.task_worker import MakeTrainer, TaskWorker, TrainerInProcess
from device_runtime.agent.traffic import TrafficSpentError
from device_runtime.agent.transport import UnreachableError, WrongServerError
from device_runtime.refusal import RefusalError
from device_runtime.trainer import StoppedError
from edgefl import __version__
from edgefl.errors import EdgeFLError
from edgefl.values import (
    Capabilities,
    DeviceProfile,
    Enrolled,
    Enrolment,
    Outcome,
    Reason,
    Receipt,
    Refusal,
    SampleCount,
    printable,
)

__all__ = ["Agent", "AgentSettings"]

Say = Callable[[str], None]

_TRAFFIC_STEP = 16_384
"""Bytes."""
_LONGEST_WAIT = 3600.0
"""Seconds. The agent asks again after this, whatever the coordinator asks for."""
_TRAFFIC_CHECK_SECONDS = 600.0
"""Seconds between checks whether a new day has brought a new traffic allowance."""
_FREE_REFUSALS = 3
"""Tasks in a row that may be refused without a wait: a coordinator may send what cannot be done again and again."""
_MOST_WRONG_SERVERS = 16
"""Tries in a row, which take about half an hour."""
_TURN_SECONDS = 1.0
"""Seconds between checks whether another federation's task has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """How an agent behaves."""

    wait_seconds: float = 20.0
    """How long the coordinator may hold a poll open."""
    least_wait: float = 1.0
    """Minimum seconds between two polls, whatever the coordinator asks for."""
    after_objection: float = 60.0
    """Seconds to wait after a task that the owner's limits forbade."""
    policy: OwnerPolicy = field(default_factory=OwnerPolicy)
    cache_bytes: int = 2 * 2**30
    most_tasks: int | None = None
    """Stop after this many tasks; None means never."""


class Agent:
    """One device of a federation."""

    def __init__(
        self,
        home: AgentHome,
        client: CoordinatorClient,
        trainer: MakeTrainer | TaskWorker,
        *,
        settings: AgentSettings | None = None,
        clock: DeviceClock | None = None,
        conditions: Callable[[], DeviceConditions] | None = None,
        backoff: Backoff | None = None,
        pins: PinRefresh | None = None,
        device: Path | None = None,
        say: Say = lambda text: None,
    ) -> None:
        """`device` is the folder that the homes of this device share; None means that it has no other."""
        self._home, self._client = home, client
        self._turn = None if device is None else TrainingTurn(device)
        self._settings = settings or AgentSettings()
        self._clock = clock or DeviceClock()
        self._conditions = conditions or (lambda: DeviceConditions(self._clock.local()))
        self._backoff = backoff or Backoff()
        self._say = say
        self._pins = pins
        self._has_connected = False
        self._wrong_servers = 0
        """Tries in a row at which somebody else answered."""
        self._is_waiting = False
        self._refusals = 0
        """Tasks that were refused in a row, but not by the owner's wish."""
        self._after_refusal = Backoff()
        self._limits = DeviceLimits(
            self._settings.policy, self._conditions, SharedUsage(device or home.folder), client.traffic
        )
        if not isinstance(trainer, TaskWorker):
            trainer = TrainerInProcess(trainer, home.cache, home.personal)
        cache = ArtifactCache(home.cache, most_bytes=self._settings.cache_bytes)
        self._runner = TaskRunner(client, cache, trainer, self._clock, self._limits)
        self.tasks = 0
        """Tasks that this process has completed or refused."""

    def enrol(
        self,
        coordinator: str,
        profile: DeviceProfile,
        key: str | None,
        *,
        name: str | None = None,
        capabilities: Capabilities | None = None,
        samples: int | None = None,
    ) -> Identity:
        """Join the federation, unless this device has joined already.

        Tell it what this software can run, and how many training samples this device has.
        """
        identity, asked = self._home.identity() or Identity(coordinator, uuid.uuid4().hex), None
        if identity.coordinator != coordinator:
            raise EdgeFLError(
                f"{self._home.folder} belongs to the coordinator {identity.coordinator}",
                fix="Give another --home for this one.",
            )
        if identity.token is None:
            if key is None:
                raise EdgeFLError(f"this device has not joined {coordinator} yet", fix="Give the join key with --key.")
            self._home.save_identity(identity)  # before asking: a repeated request must carry the same id
            software = f"edgefl {__version__}"
            asked = Enrolment(
                enrolment_id=identity.enrolment_id,
                profile=profile,
                software=software,
                name=name,
                capabilities=capabilities,
                samples=samples,
            )
            self._limits.allow_traffic()
            try:
                answer, asked = self._ask_to_join(asked, key)
            finally:
                self._limits.count()  # a refused device is started again and again
            identity = replace(identity, device_id=answer.device_id, token=answer.token)
            self._home.save_identity(identity)
            self._has_connected = True
            self._say(f"joined {coordinator} as {answer.device_id}")
        else:
            self._say(f"back at {coordinator} as {identity.device_id}")
        self._client.token = identity.token
        self._runner.profile = profile
        if capabilities is not None and capabilities.engines:
            self._runner.engine = capabilities.engines[0].format
        self._tell_capabilities(capabilities, profile)
        if samples is not None and (asked is None or asked.samples is None):
            self._tell_samples(samples)
        return identity

    def _ask_to_join(self, asked: Enrolment, key: str) -> tuple[Enrolled, Enrolment]:
        """Enrol; return the answer and to what.

        A coordinator from before samples or capabilities names the first field that it does not know. It gets an
        enrolment without it.
        """
        self._home.save_told_capabilities(None)
        while True:
            try:
                answer = self._client.enrol(asked, key)
            except RejectedError as error:
                if asked.samples is not None and "'samples'" in error.problem:
                    asked = replace(asked, samples=None)
                elif asked.capabilities is not None and "capabilities" in error.problem:
                    asked = replace(asked, capabilities=None)
                else:
                    raise
            else:
                self._home.save_told_capabilities(asked.capabilities)
                return answer, asked

    def _tell_samples(self, samples: int) -> None:
        """Tell the coordinator how many training samples this device has; if it fails, the next result says it.

        At every start: what the coordinator knows may be from a result of another number.
        """
        if self._limits.allow_traffic() is None:
            with contextlib.suppress(UnreachableError, UnknownDeviceError, TrafficSpentError, RejectedError):
                self._client.update_samples(SampleCount(samples=samples))

    def _tell_capabilities(self, capabilities: Capabilities | None, profile: DeviceProfile) -> None:
        """Tell the coordinator what this software can run, if that has changed; if it fails, at the next start.

        A device whose engine changed sends its profile first: the coordinator must not plan by that of the other one.
        """
        told = self._home.told_capabilities()
        if capabilities is None or capabilities == told:
            return
        if self._limits.allow_traffic() is not None:
            return
        with contextlib.suppress(UnreachableError, UnknownDeviceError, TrafficSpentError, RejectedError):
            if _engine_name(told) != _engine_name(capabilities):
                self._client.update_profile(profile)
            if self._client.update_capabilities(capabilities):
                self._home.save_told_capabilities(capabilities)

    def run(self, stop: threading.Event) -> None:
        """Work until stopped, or until the federation is over."""
        try:
            self._work(stop)
        finally:
            self._limits.count()

    def _work(self, stop: threading.Event) -> None:
        while not stop.is_set() and not self._has_done_enough:
            try:
                if self._pins is not None:
                    self._pins.refresh_if_due()
                wait = self.turn(stop)
                self._backoff.reset()
                self._has_connected, self._wrong_servers = True, 0
            except StoppedError:
                return
            except WrongServerError as error:
                wait = self._wait_after_wrong_server(error)
            except (UnreachableError, RejectedError) as error:
                wait = self._retry_wait(error)
                self._say(f"{error.problem}; next try in {wait:.0f} s")
            except TrafficSpentError as error:
                wait = _TRAFFIC_CHECK_SECONDS
                self._say(error.problem)
            if wait is None:
                return
            self._limits.count(least_bytes=_TRAFFIC_STEP)
            if self._has_done_enough:
                return
            stop.wait(min(wait, _LONGEST_WAIT))

    @property
    def _has_done_enough(self) -> bool:
        return self._settings.most_tasks is not None and self.tasks >= self._settings.most_tasks

    def turn(self, stop: threading.Event) -> float | None:
        """Do the next thing; return how long to wait after it, or None if the federation is over."""
        task = self._home.open_task()
        objection = self._limits.allow_traffic()
        if task is None:
            return self._ask(objection)
        body, refusal = self._home.result(), self._home.refusal()
        if body is None and refusal is None:
            try:
                if not self._takes_turn(task):
                    return _TURN_SECONDS
                body = self._store_result(task, self._do(task, stop))
            except RefusalError as error:
                refusal = _refusal(error.reason, error.problem)
                if can_wait_for_owner(task.plan, refusal.reason, self._runner.remaining(task)):
                    self._say(f"task {task.plan.task_id} waits: {refusal.message}")
                    return self._settings.after_objection
                if not self._refuse(task, refusal):
                    return self._pause(refusal)
        return self._deliver(task, body, refusal)

    def _takes_turn(self, task: OpenTask) -> bool:
        """Take the turn to train on this device; return False to wait for it. Raise a refusal if it comes too late.

        The device does not ask for tasks while it trains for another federation, so it gets here only if both gave it
        one at about the same time.
        """
        if self._turn is None or self._turn.take(self._client_name):
            return True
        if can_wait_for_turn(task.plan, self._runner.remaining(task)):
            return False
        raise RefusalError(Reason.DEADLINE, f"the device trains for {self._turn.holder()}", fix="Ask again later.")

    def _do(self, task: OpenTask, stop: threading.Event) -> bytes:
        try:
            return self._runner.do(task, stop)
        finally:
            if self._turn is not None:
                self._turn.release()

    @property
    def _client_name(self) -> str:
        identity = self._home.identity()
        return "another federation" if identity is None else identity.federation or identity.coordinator

    def _retry_wait(self, error: EdgeFLError) -> float:
        """Return how long to wait after a failure, but not beyond the deadline of the open task."""
        wait = self._backoff.wait(error.retry_seconds if isinstance(error, BusyError) else None)
        task = self._home.open_task()
        if task is None:
            return wait
        remaining = self._runner.remaining(task)
        if remaining < -max(_LONGEST_WAIT, self._settings.policy.task_seconds or task.plan.deadline_seconds):
            self._say(f"task {task.plan.task_id}: given up, its deadline is long over")
            self._home.end_task()
        return min(wait, remaining) if remaining > 0 else wait

    def _wait_after_wrong_server(self, error: WrongServerError) -> float:
        """Return how long to wait after somebody else has answered, but not for ever.

        A device that is on its way, or whose network is attacked, may soon reach its coordinator again. One that has
        never reached it since it was started, or not for about half an hour, needs its owner.
        """
        self._wrong_servers += 1
        if not self._has_connected or self._wrong_servers > _MOST_WRONG_SERVERS:
            raise error
        wait = self._backoff.wait()
        self._say(f"{error.problem}; nothing was sent; next try in {wait:.0f} s")
        return wait

    def _ask(self, objection: Refusal | None) -> float | None:
        """Ask for a task, unless today's traffic allowance is used up."""
        if objection is not None:
            self._say(objection.message)
            return _TRAFFIC_CHECK_SECONDS
        if self._turn is not None and not self._turn.is_free():  # whoever selects this device now would only wait
            if not self._is_waiting:
                self._say(f"waiting: the device trains for {self._turn.holder()}")
                self._is_waiting = True
            return _TURN_SECONDS
        assignment = self._client.poll(self._settings.wait_seconds)
        if assignment.plan is not None:
            self._begin(self._clock.opened(assignment.plan))
            return 0.0
        if assignment.finished:
            self._say("the federation is over")
            return None
        if not self._is_waiting:
            self._say("waiting for a task")
            self._is_waiting = True
        return max(assignment.retry_seconds, self._settings.least_wait)

    def _begin(self, task: OpenTask) -> None:
        self._is_waiting = False
        plan = task.plan
        self._say(f"task {plan.task_id} of {'personalisation' if plan.is_personal else f'round {plan.round + 1}'}")
        try:
            self._home.begin_task(task)
        except OSError as error:  # a full disk must not keep the coordinator waiting for a result
            self._refuse_now(task, _refusal(Reason.STORAGE, error.strerror or str(error)))

    def _store_result(self, task: OpenTask, body: bytes) -> bytes | None:
        """Put a result on disk and return it; None if the disk was full and it was sent at once."""
        self._refusals = 0
        self._after_refusal.reset()
        try:
            self._home.finish_task(body)
        except OSError:  # disk full: send it now; repeating the task from its last checkpoint is cheap
            self._acknowledge(task, self._client.upload(task.plan.task_id, body))
            return None
        return body

    def _refuse(self, task: OpenTask, refusal: Refusal) -> bool:
        """Put a refusal on disk; return False if the disk was full and it was sent at once."""
        self._say(f"refused: {refusal.message}")
        try:
            self._home.refuse_task(refusal)
        except OSError:
            self._refuse_now(task, refusal)
            return False
        return True

    def _refuse_now(self, task: OpenTask, refusal: Refusal) -> None:
        """Send a refusal to the coordinator without writing it to disk, which may be full."""
        self._acknowledge(task, self._client.refuse(task.plan, refusal))

    def _deliver(self, task: OpenTask, body: bytes | None, refusal: Refusal | None) -> float:
        """Send the result or refusal; return how long to wait before the next task."""
        try:
            if body is not None:
                receipt = self._client.upload(task.plan.task_id, body)
                self._acknowledge(task, receipt)
                return 0.0 if self._settings.wait_seconds else receipt.retry_seconds or 0.0
            if refusal is not None:
                self._acknowledge(task, self._client.refuse(task.plan, refusal))
        except RejectedError as error:
            self._say(f"task {task.plan.task_id}: {error}")
            if body is not None:
                self._withdraw(task, error)
            self._end()
        return 0.0 if refusal is None else self._pause(refusal)

    def _pause(self, refusal: Refusal) -> float:
        """Return how long to wait after a refusal.

        A device that refuses because of power or heat would refuse the next task too, and must not use up a round's
        tasks. Nor may a coordinator whose tasks all fail keep the device at work.
        """
        if refusal.reason in OWNER_REASONS:
            return self._settings.after_objection if self._limits.objection() is not None else 0.0
        self._refusals += 1
        return 0.0 if self._refusals <= _FREE_REFUSALS else self._after_refusal.wait()

    def _withdraw(self, task: OpenTask, error: RejectedError) -> None:
        """Report that no other result will come; otherwise the coordinator waits, and this device trains it again."""
        with contextlib.suppress(RejectedError):  # the task has ended there, too
            self._client.refuse(task.plan, _refusal(Reason.BROKEN, f"the result was rejected: {error.problem}"))

    def _acknowledge(self, task: OpenTask, receipt: Receipt) -> None:
        """End a task that the coordinator has acknowledged."""
        said = {Outcome.ACCEPTED: "accepted", Outcome.ALREADY: "it has it already", Outcome.LATE: "too late"}
        self._say(f"task {task.plan.task_id}: {said[receipt.outcome]}")
        self._end()

    def _end(self) -> None:
        self._home.end_task()
        self.tasks += 1


def _refusal(reason: Reason, problem: str) -> Refusal:
    return Refusal(reason=reason, message=printable(problem).strip()[:200].strip() or reason.value)


def _engine_name(capabilities: Capabilities | None) -> str | None:
    """Return the engine that a device uses first; one that never told had onnxruntime."""
    if capabilities is None:
        return "onnxruntime"
    return capabilities.engines[0].name if capabilities.engines else None

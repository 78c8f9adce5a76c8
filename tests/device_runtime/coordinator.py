"""A coordinator for device tests: the protocol of `device_runtime.agent.client`, its state in memory, no strategy.

It hands out prepared plans one after the other, keeps what comes back, and notes everything that must not happen.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from device_runtime.agent.transport import Reply, Request
from edgefl.artifacts.bundle import GRAPH, INFER
from edgefl.artifacts.submodel import make_submodel
from edgefl.masks import Mask
from edgefl.values import (
    Assignment,
    Capabilities,
    ClientPlan,
    DeviceProfile,
    Enrolled,
    Enrolment,
    Outcome,
    Receipt,
    Refusal,
    SampleCount,
    digest_of,
    dumps,
    loads,
)
from edgefl.wire import decode_result, encode_mask
from tests.device_runtime.federation import bundle, plan_of

KEY, TOKEN, DEVICE = "join-key", "secret-token", "pi-1"


@dataclass
class Coordinator:
    """Answers requests."""

    plans: list[ClientPlan] = field(default_factory=list)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    enrolments: dict[str, Enrolment] = field(default_factory=dict)
    results: dict[str, bytes] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    """Tasks that were answered in two ways."""
    uploads: int = 0
    downloaded: int = 0
    retry_seconds: float | None = None
    """What a receipt says about the next poll."""
    sample: Any = None
    """What it says about samples, or a reply; None if it is from before that question."""
    is_old: bool = False
    """Whether it is from before capabilities and numbers of samples."""
    samples: list[int] = field(default_factory=list)
    """Numbers of samples that it was told after the enrolment."""
    capabilities: list[Capabilities] = field(default_factory=list)
    """What it was told after the enrolment."""
    profiles: list[DeviceProfile] = field(default_factory=list)
    """Profiles that came after the enrolment."""

    def offer(self, mask: Mask, **changes: Any) -> ClientPlan:
        """Prepare a plan and everything that it names."""
        submodel = make_submodel(bundle(), mask)
        names = {
            "model": bundle().files[GRAPH],
            "mask_body": encode_mask(mask),
            "graph": submodel.training_graph,
            "weights": submodel.weights,
            "inference": bundle().files[INFER],
        }
        digests = {name: self.keep(content) for name, content in names.items()}
        plan = plan_of(mask, **(digests | changes))
        self.plans.append(plan)
        return plan

    def keep(self, content: bytes) -> str:
        """Serve some bytes by their digest."""
        digest = digest_of(content)
        self.artifacts[digest] = content
        return digest

    @property
    def open_plans(self) -> list[ClientPlan]:
        return [plan for plan in self.plans if plan.task_id not in self.results.keys() | self.refusals.keys()]

    def answer(self, request: Request) -> Reply:
        """Answer as the real one would."""
        self.requests.append(request)
        path = request.path.partition("?")[0]
        if path == "/v1/devices":
            return self._enrol(request)
        if path == "/v1/sample" and self.sample is None:
            return _error(404, "there is nothing at /v1/sample", "Look the path up at /openapi.json.")
        if path == "/v1/sample" and request.token in (KEY, TOKEN):
            return self.sample if isinstance(self.sample, Reply) else _json(self.sample)
        if request.token != TOKEN:
            return _error(401, "the token is not known", "Join again.")
        if path == "/v1/tasks/next":
            return self._next()
        if path.startswith("/v1/devices/me/"):
            return self._update(path.rpartition("/")[2], request.body)
        found = re.fullmatch(r"/v1/(artifacts|tasks)/([^/]+)(?:/(result|refusal))?", path)
        if found is None:
            return _error(404, f"there is no {path}", "Ask for something else.")
        if found[1] == "artifacts":
            return self._artifact(found[2], request.start)
        return self._end(found[2], found[3], request.body)

    def _update(self, what: str, body: bytes) -> Reply:
        if what == "profile":
            self.profiles.append(loads(DeviceProfile, body))
        elif what == "capabilities" and not self.is_old:
            self.capabilities.append(loads(Capabilities, body))
        elif what == "samples" and not self.is_old:
            self.samples.append(loads(SampleCount, body).samples)
        else:
            return _error(404, f"there is no {what}", "Look at the documents.")
        return Reply(204)

    def _enrol(self, request: Request) -> Reply:
        if request.token != KEY:
            return _error(403, "the join key is not known", "Ask the operator for one.")
        for added in ("samples", "capabilities"):
            if self.is_old and f'"{added}"'.encode() in request.body:
                return _error(422, f"field '{added}' is not a known field", "Known fields: enrolment_id, ...")
        enrolment = loads(Enrolment, request.body)
        self.enrolments[enrolment.enrolment_id] = enrolment
        return _json(Enrolled(device_id=DEVICE, token=TOKEN))

    def _next(self) -> Reply:
        if self.open_plans:
            return _json(Assignment(retry_seconds=0, plan=self.open_plans[0]))
        return _json(Assignment(retry_seconds=0.01, finished=True))

    def _artifact(self, digest: str, start: int) -> Reply:
        content = self.artifacts.get(digest)
        if content is None:
            return _error(404, f"there is no artifact {digest}", "Ask for a new task.")
        if start >= len(content) and start:
            return _error(416, "the range begins after the end", "Ask from the beginning.")
        self.downloaded += len(content) - start
        return Reply(206 if start else 200, {}, content[start:])

    def _end(self, task_id: str, end: str, body: bytes) -> Reply:
        if task_id not in {plan.task_id for plan in self.plans}:
            return _error(404, f"there is no task {task_id}", "Ask for a new task.")
        known = self.results.get(task_id) or self.refusals.get(task_id)
        if end == "result":
            decode_result(body, bundle().graph)
            self.uploads += 1
            if known is None:
                self.results[task_id] = body
        elif known is None:
            self.refusals[task_id] = loads(Refusal, body)
        elif task_id in self.results:
            self.conflicts.append(task_id)
        if end == "result" and known is not None and known != body:
            self.conflicts.append(task_id)
            return _error(409, "another result came before", "Drop this one.")
        outcome = Outcome.ACCEPTED if known is None else Outcome.ALREADY
        return _json(Receipt(task_id=task_id, outcome=outcome, retry_seconds=self.retry_seconds))


def tasks(coordinator: Coordinator, masks: Iterable[Mask], **changes: Any) -> None:
    """Prepare a task for every mask."""
    for number, mask in enumerate(masks, start=1):
        coordinator.offer(mask, task_id=f"task-{number}", round=number, seed=number, **changes)


def _json(value: Any) -> Reply:
    return Reply(200, {}, dumps(value).encode())


def _error(status: int, problem: str, fix: str) -> Reply:
    return Reply(status, {}, json.dumps({"error": {"problem": problem, "fix": fix}}).encode())

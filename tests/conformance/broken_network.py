"""Clients that are broken on purpose: the agent with one mistake each in what it sends, believes and repeats."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from device_runtime.agent.agent import Agent, AgentSettings
from device_runtime.agent.agent_home import AgentHome, Identity, OpenTask
from device_runtime.agent.artifact_cache import ArtifactCache, Fetch
from device_runtime.agent.backoff import Backoff
from device_runtime.agent.client import BusyError, CoordinatorClient, RejectedError, UnknownDeviceError
from device_runtime.agent.compression import compressed
from device_runtime.agent.transport import HttpTransport, Reply, Request, Sink
from edgefl.conformance.client_starts import Invitation
from edgefl.errors import EdgeFLError
from edgefl.values import Assignment, ClientPlan, Enrolled, Enrolment, Outcome, Reason, Receipt, Refusal, loads
from edgefl.wire import decode, encode
from tests.conformance.agent_client import AgentClient

_AGAIN = "Ask again."


class _Client(CoordinatorClient):
    """A client with a second thought about what it got."""

    def _send(self, request: Request, sink: Any = None) -> Reply:
        return CoordinatorClient._send(self, request, sink)


class SendsTheKeyAgain(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        key = ""

        def send(self, request: Request, sink: Sink | None = None) -> Reply:
            if request.path == "/v1/devices":
                self.key = request.token or ""
            elif "?" in request.path:
                request = replace(request, path=f"{request.path}&key={self.key}")
            return HttpTransport.send(self, request, sink)


class ForgetsItsToken(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        def send(self, request: Request, sink: Sink | None = None) -> Reply:
            return HttpTransport.send(self, replace(request, token=None) if sink is not None else request, sink)


class ForgetsItsEnrolmentId(AgentClient):
    def made(self) -> Agent:
        (self._invitation.home / "identity.json").unlink(missing_ok=True)
        return AgentClient.made(self)


class KeepsEnrolling(AgentClient):
    def _run(self) -> None:
        for _ in range(3):
            AgentClient._run(self)


class _IgnoresRetryAfter(Backoff):
    def wait(self, asked: float | None = None) -> float:
        return Backoff.wait(self)


class InsistsOnItsSamples(AgentClient):
    class agent(Agent):  # noqa: N801
        def _ask_to_join(self, asked: Enrolment, key: str) -> tuple[Enrolled, Enrolment]:
            return self._client.enrol(asked, key), asked


class SaysNothingOfItself(AgentClient):
    class agent(Agent):  # noqa: N801
        def enrol(self, *words: Any, **options: Any) -> Identity:
            return Agent.enrol(self, *words, **(options | {"capabilities": None}))


class NeverComparesItsData(AgentClient):
    def made(self) -> Agent:
        with patch("tests.conformance.agent_client.fitting", lambda dataset, sample: dataset):
            return AgentClient.made(self)


class IgnoresRetryAfter(AgentClient):
    backoff = staticmethod(lambda: _IgnoresRetryAfter(first=0.1))


class _NeverWaits(Backoff):
    def wait(self, asked: float | None = None) -> float:
        return asked or 0.0


class NeverBacksOff(AgentClient):
    backoff = staticmethod(lambda: _NeverWaits())


class BelievesGiantRetryAfter(AgentClient):
    def made(self) -> Agent:
        self._patch = patch("device_runtime.agent.client._retry_after", lambda reply: _seconds(reply))
        self._patch.start()
        return AgentClient.made(self)

    def stop(self) -> None:
        AgentClient.stop(self)
        self._patch.stop()


def _seconds(reply: Reply) -> float | None:
    text = reply.headers.get("retry-after", "")
    return float(text) if text.isdigit() else None


class PollsAllTheTime(AgentClient):
    class agent(Agent):  # noqa: N801
        def _ask(self, objection: Refusal | None) -> float | None:
            waits = Agent._ask(self, objection)
            return None if waits is None else 0.0


class WaitsTooLong(AgentClient):
    settings = AgentSettings(least_wait=0.1, wait_seconds=5000.0)


class RefusesUnknownFields(AgentClient):
    class client(_Client):  # noqa: N801
        def poll(self, wait_seconds: float) -> Assignment:
            reply = self._send(Request("POST", f"/v1/tasks/next?wait={wait_seconds:g}", self.token))
            try:
                return loads(Assignment, reply.body)
            except EdgeFLError as error:
                raise BusyError(error.problem, fix=error.fix) from None


class FollowsRedirects(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        def send(self, request: Request, sink: Sink | None = None) -> Reply:
            reply = HttpTransport.send(self, request, sink)
            if reply.status != 302:
                return reply
            location = urlsplit(reply.headers["location"])
            other = HttpTransport(f"{location.scheme}://{location.netloc}")
            try:
                other.send(request)
            finally:
                other.close()
            return reply


class _Strict(_Client):
    """Takes any 4xx for the coordinator's own."""

    def _send(self, request: Request, sink: Any = None) -> Reply:
        try:
            return CoordinatorClient._send(self, request, sink)
        except BusyError as error:
            if "status 404" in error.problem or "status 500" in error.problem:
                raise RejectedError(error.problem, fix=error.fix) from None
            if "status 401" in error.problem:
                raise UnknownDeviceError(error.problem, fix=error.fix) from None
            raise


class BelievesProxies(AgentClient):
    client = _Strict


class BelievesCaptivePortals(AgentClient):
    class client(_Client):  # noqa: N801
        def upload(self, task_id: str, body: bytes) -> Receipt:
            try:
                return CoordinatorClient.upload(self, task_id, body)
            except BusyError as error:
                if "not valid" not in error.problem:
                    raise
                return Receipt(task_id=task_id, outcome=Outcome.ACCEPTED)


class GoesOnAfterRevocation(AgentClient):
    class client(_Client):  # noqa: N801
        def _send(self, request: Request, sink: Any = None) -> Reply:
            try:
                return CoordinatorClient._send(self, request, sink)
            except UnknownDeviceError as error:
                raise BusyError(error.problem, fix=error.fix) from None


class StopsAtNothing(AgentClient):
    class agent(Agent):  # noqa: N801
        def _ask(self, objection: Refusal | None) -> float | None:
            waits = Agent._ask(self, objection)
            return 0.1 if waits is None else waits


class DiesOfDeepJson(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        def send(self, request: Request, sink: Sink | None = None) -> Reply:
            reply = HttpTransport.send(self, request, sink)
            if b"[[[" in reply.body:
                json.loads(reply.body)
            return reply


class ReadsWhateverComes(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        def _read(self, status: int, coding: str | None, pieces: Iterable[bytes], sink: Sink | None) -> bytes:
            self._network.reply_bytes = None
            return HttpTransport._read(self, status, coding, pieces, sink) if sink else b"".join(pieces)


class _Cached(AgentClient):
    """An agent with another cache."""

    cache: type[ArtifactCache] = ArtifactCache

    def made(self) -> Agent:
        agent = AgentClient.made(self)
        agent._runner.cache = self.cache(AgentHome(self._invitation.home).cache)
        return agent


class NeverChecksDigests(AgentClient):
    def __init__(self, invitation: Invitation) -> None:
        self._patch = patch("device_runtime.agent.artifact_cache._matches", lambda path, digest: path.exists())
        self._patch.start()
        AgentClient.__init__(self, invitation)

    def stop(self) -> None:
        AgentClient.stop(self)
        self._patch.stop()


class DownloadsEverythingAgain(_Cached):
    class cache(ArtifactCache):  # noqa: N801
        def download(self, digest: str, fetch: Fetch) -> None:
            self._store.path_of(digest).unlink(missing_ok=True)
            ArtifactCache.download(self, digest, fetch)


class NeverResumes(_Cached):
    class cache(ArtifactCache):  # noqa: N801
        def download(self, digest: str, fetch: Fetch) -> None:
            (self._parts / digest.removeprefix("sha256:")).unlink(missing_ok=True)
            ArtifactCache.download(self, digest, fetch)


class NeverGivesUpADownload(AgentClient):
    def made(self) -> Agent:
        agent = AgentClient.made(self)
        agent._runner._damaged = _Forgetful()
        return agent


class _Forgetful(dict[str, int]):
    def __setitem__(self, key: str, value: int) -> None:
        pass


class SendsRejectedResultsAgain(AgentClient):
    class client(_Client):  # noqa: N801
        def upload(self, task_id: str, body: bytes) -> Receipt:
            try:
                return CoordinatorClient.upload(self, task_id, body)
            except RejectedError as error:
                raise BusyError(error.problem, fix=error.fix) from None


class SendsLateResultsAgain(AgentClient):
    class client(_Client):  # noqa: N801
        def upload(self, task_id: str, body: bytes) -> Receipt:
            receipt = CoordinatorClient.upload(self, task_id, body)
            if receipt.outcome is Outcome.LATE:
                raise BusyError("it was late", fix=_AGAIN)
            return receipt


class ChangesItsResult(AgentClient):
    class client(_Client):  # noqa: N801
        count = 0

        def upload(self, task_id: str, body: bytes) -> Receipt:
            self.count += 1
            parsed = decode(body)
            changed = replace(parsed, about={**parsed.about, "try": str(self.count)})
            return CoordinatorClient.upload(self, task_id, encode(changed))


class NeverSendsUncompressed(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        def send(self, request: Request, sink: Sink | None = None) -> Reply:
            body, coding = compressed(request.body)
            return self._sent(request, sink, body, coding)


class ShufflesUnasked(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        def send(self, request: Request, sink: Sink | None = None) -> Reply:
            self._accepts_byte_shuffle = True
            return HttpTransport.send(self, request, sink)


class SendsJsonForBodies(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        def send(self, request: Request, sink: Sink | None = None) -> Reply:
            return HttpTransport.send(self, replace(request, kind="application/octet-stream"), sink)


class CallsEverythingBroken(AgentClient):
    class client(_Client):  # noqa: N801
        def refuse(self, plan: ClientPlan, refusal: Refusal) -> Receipt:
            return CoordinatorClient.refuse(self, plan, replace(refusal, reason=Reason.BROKEN))


class TrainsAfterTheDeadline(AgentClient):
    class agent(Agent):  # noqa: N801
        def _begin(self, task: OpenTask) -> None:
            Agent._begin(self, replace(task, plan=replace(task.plan, deadline_seconds=60.0)))

"""The device's side of the protocol: one method per request, and one error per kind of failure.

    2xx                            done
    401, 403                       the coordinator does not know this device (any more): `UnknownDeviceError`
    any other 4xx                  it will never work: `RejectedError`, with the coordinator's explanation
    408, 425, 429, and all else    try again later: `BusyError`, with the seconds to wait; no reply: `UnreachableError`

A 4xx counts only if its body is a coordinator's error. A proxy, a captive portal or a redirect in between says nothing
about a device's work.

Nothing here sleeps or retries; the agent does. Every request may be repeated.
"""

import json
from collections.abc import Callable
from typing import TypeVar

from device_runtime.agent.traffic import Traffic
from device_runtime.agent.transport import BODY, GarbledError, Reply, Request, Transport, UnreachableError
from edgefl.errors import EdgeFLError, SchemaError
from edgefl.values import (
    Assignment,
    Capabilities,
    ClientPlan,
    DeviceProfile,
    Enrolled,
    Enrolment,
    GraphFormat,
    Measurement,
    Pins,
    Receipt,
    Refusal,
    SampleCount,
    SampleSpec,
    check_digest,
    digest_of,
    dumps,
    loads,
    printable,
)

__all__ = ["BusyError", "CoordinatorClient", "RejectedError", "Traffic", "UnknownDeviceError"]

Value = TypeVar("Value")
Content = Callable[[int, bytes], None]
"""Takes the pieces of a download, each with the status of its reply."""

_RETRY = frozenset({408, 425, 429})
_UNKNOWN_DEVICE = frozenset({401, 403})


class BusyError(UnreachableError):
    """The coordinator replied that it cannot answer now."""

    def __init__(self, problem: str, *, fix: str, retry_seconds: float | None = None) -> None:
        super().__init__(problem, fix=fix)
        self.retry_seconds = retry_seconds


class RejectedError(EdgeFLError):
    """The coordinator says that this request is wrong and always will be."""


class UnknownDeviceError(EdgeFLError):
    """The coordinator does not know the key or token."""


class CoordinatorClient:
    """One device's requests to one coordinator."""

    def __init__(self, transport: Transport, token: str | None = None) -> None:
        self._transport = transport
        self.token = token
        counted: Traffic | None = getattr(transport, "traffic", None)
        self.traffic = Traffic() if counted is None else counted
        self._counts = counted is None
        """Whether traffic is counted here, because the transport does not count it."""

    def enrol(self, enrolment: Enrolment, key: str) -> Enrolled:
        """Ask to join the federation."""
        return _read(Enrolled, self._send(Request("POST", "/v1/devices", key, dumps(enrolment).encode())))

    def sample(self, secret: str | None = None) -> SampleSpec | None:
        """Ask what a sample of the federation is, with a join key or the device's token.

        None if the coordinator is from before this question.
        """
        try:
            reply = self._send(Request("GET", "/v1/sample", self.token if secret is None else secret))
        except RejectedError:
            return None
        return _read(SampleSpec, reply)

    def measurement(
        self, secret: str | None = None, form: GraphFormat = GraphFormat.ONNX, *, seconds: float = 120.0
    ) -> Measurement | None:
        """Ask for the steps of the federation's own model that devices measure; None if the coordinator has none.

        One from before programs answers with graphs, whatever the format.
        """
        path = "/v1/measurement" if form is GraphFormat.ONNX else f"/v1/measurement?format={form.value}"
        token = self.token if secret is None else secret
        try:
            reply = self._send(Request("GET", path, token, reply_seconds=seconds))
        except RejectedError:
            return None
        return _read(Measurement, reply)

    def measurement_artifact(self, digest: str, secret: str | None = None, *, most_bytes: int, seconds: float) -> bytes:
        """Return what a measurement names, of at most this many bytes, if it comes within these seconds."""
        body = bytearray()

        def keep(status: int, piece: bytes) -> None:
            body.extend(piece)
            if len(body) > most_bytes:
                raise RejectedError(
                    f"{digest} has more than {most_bytes:,} bytes", fix="Measure with the built-in models."
                )

        path, token = f"/v1/measurement/{check_digest(digest)}", self.token if secret is None else secret
        with self.traffic.downloading():
            self._send(Request("GET", path, token, reply_seconds=seconds), keep)
        if digest_of(bytes(body)) != digest:
            raise GarbledError(f"what the coordinator sent is not {digest}", fix="Ask again.")
        return bytes(body)

    def update_capabilities(self, capabilities: Capabilities) -> bool:
        """Send what the device's software can run; return False if the coordinator is from before this question."""
        try:
            self._send(Request("PUT", "/v1/devices/me/capabilities", self.token, dumps(capabilities).encode()))
        except RejectedError:
            return False
        return True

    def update_samples(self, count: SampleCount) -> None:
        """Send the device's number of training samples; a coordinator from before this question rejects it."""
        self._send(Request("PUT", "/v1/devices/me/samples", self.token, dumps(count).encode()))

    def update_profile(self, profile: DeviceProfile) -> None:
        """Send the device's current profile."""
        self._send(Request("PUT", "/v1/devices/me/profile", self.token, dumps(profile).encode()))

    def pins(self) -> tuple[str, ...]:
        """Ask for the pins of the coordinator's current and next key."""
        return _read(Pins, self._send(Request("GET", "/v1/pins", self.token))).pins

    def poll(self, wait_seconds: float) -> Assignment:
        """Ask for a task; the coordinator may hold the request open for a while."""
        return _read(Assignment, self._send(Request("POST", f"/v1/tasks/next?wait={wait_seconds:g}", self.token)))

    def download(self, digest: str, sink: Content, start: int = 0, *, seconds: float | None = None) -> int:
        """Pass an artifact to a sink, from a byte on, and return the status: 206 if it begins there.

        It must be complete after this many seconds; None means no limit.
        """
        path = f"/v1/artifacts/{check_digest(digest)}"
        with self.traffic.downloading():
            return self._send(Request("GET", path, self.token, start=start, reply_seconds=seconds), sink).status

    def upload(self, task_id: str, body: bytes) -> Receipt:
        """Send a result."""
        return _read(Receipt, self._send(Request("PUT", f"/v1/tasks/{task_id}/result", self.token, body, BODY)))

    def refuse(self, plan: ClientPlan, refusal: Refusal) -> Receipt:
        """Report that a task is refused, and why."""
        path = f"/v1/tasks/{plan.task_id}/refusal"
        return _read(Receipt, self._send(Request("PUT", path, self.token, dumps(refusal).encode())))

    def _send(self, request: Request, sink: Content | None = None) -> Reply:
        streamed = 0
        self.traffic.check()

        def counting(status: int, piece: bytes, came: int) -> None:
            nonlocal streamed
            streamed += came
            self._count(came, 0)  # at once: an interrupted download is traffic too
            self.traffic.check(0)
            if piece and sink is not None:
                sink(status, piece)

        reply = self._transport.send(request, None if sink is None else counting)
        self._count(reply.down_bytes - streamed, reply.up_bytes)
        if 200 <= reply.status < 300:
            return reply
        said = _coordinator_error(reply) if 400 <= reply.status < 500 and reply.status not in _RETRY else None
        if said is None:
            problem = f"the coordinator answered with status {reply.status}"
            raise BusyError(problem, fix="Look at the coordinator's log.", retry_seconds=_retry_after(reply))
        problem, fix = said
        raise (UnknownDeviceError if reply.status in _UNKNOWN_DEVICE else RejectedError)(problem, fix=fix)

    def _count(self, down: int, up: int) -> None:
        if self._counts:
            self.traffic.count(down=down, up=up)


def _read(kind: type[Value], reply: Reply) -> Value:
    try:
        return loads(kind, reply.body, tolerant=True)  # a newer coordinator may say more
    except SchemaError as error:
        # Half a reply, or a proxy's page: it did not come from a coordinator, so the next try may succeed.
        raise BusyError(f"the coordinator's answer is not valid: {error.problem}", fix="Check its address.") from None


def _coordinator_error(reply: Reply) -> tuple[str, str] | None:
    """Return a coordinator's error, made safe to print; None if it is not a coordinator's error."""
    try:
        error = json.loads(reply.body)["error"]
        problem, fix = error["problem"], error["fix"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(problem, str) or not isinstance(fix, str):
        return None
    return printable(problem)[:500], printable(fix)[:500]


def _retry_after(reply: Reply) -> float | None:
    try:
        seconds = float(reply.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86400 else None

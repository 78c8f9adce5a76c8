"""The coordinator that the suite plays, where no situation asks for anything else: it answers as the protocol says.

It knows one device, the client under test. Tasks and what goes wrong are the business of situations.
"""

import gzip
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.samples import CLASSES, SAMPLE_SHAPE
from edgefl.conformance.tasks import conformance_measurement
from edgefl.errors import EdgeFLError
from edgefl.values import (
    Enrolled,
    Enrolment,
    Outcome,
    RawDtype,
    SampleDtype,
    SampleKind,
    SampleSpec,
    loads,
    to_json,
)
from edgefl.wire import byte_shuffle

__all__ = [
    "HTML_PAGE",
    "SAMPLE",
    "Stage",
    "accepted_codings",
    "html",
    "json_answer",
    "packed_artifact",
    "problem",
    "receipt",
]

HTML_PAGE = b"<!doctype html><html><head><title>Sign in</title></head><body>Please accept the terms.</body></html>"
SAMPLE = SampleSpec(
    shape=SAMPLE_SHAPE,
    dtype=SampleDtype.FLOAT32,
    kind=SampleKind.IMAGE,
    layout="CHW",
    raw_dtype=RawDtype.FLOAT32,
    classes=CLASSES,
)
"""What a sample of the suite's federation is."""
_JSON = {"Content-Type": "application/json"}
_BYTES = {"Content-Type": "application/octet-stream"}
_WEIGHTS = rb"\"kind\":\"weights\""
"""Part of the header of every body of weights."""
_BY_KEY = (Route.ENROL, Route.SAMPLE, Route.SIDE)
"""Routes that a joiner's key opens."""


@dataclass(slots=True, eq=False)
class Stage:
    """The ordinary coordinator, and what situations know about the run."""

    least_backoff: float = 0.45
    """Seconds that a client waits at the least before it repeats a request that failed: half of a second, nearly."""
    quiet_seconds: float = 1.5
    """A client that sends nothing for so long has stopped."""
    key: str = ""
    token: str = ""
    """The device's token; a repeated enrolment replaces it."""
    device_id: str = ""
    enrolments: dict[str, int] = field(default_factory=dict)
    """How often each enrolment id came."""
    rules: frozenset[str] = frozenset()
    """The rules that the client says it has, and settings that were added to them."""
    artifacts: dict[str, bytes] = field(default_factory=dict)
    elsewhere: str = ""
    """The address of another origin."""
    pause: Callable[[float], None] = lambda seconds: None
    """Closes the coordinator's port for some seconds."""
    use_next_key: Callable[[], None] = lambda: None
    """Serves with the next key from now on."""
    impersonate: Callable[[float], None] = lambda seconds: None
    """Lets somebody else answer at the coordinator's port for some seconds."""
    pins: tuple[str, ...] = ()

    def begin_act(self, name: str) -> None:
        """Forget the last client: another one will join."""
        self.key = f"edgefl-key-{secrets.token_hex(16)}"
        self.token, self.device_id = "", f"{name}-{secrets.token_hex(3)}"
        self.enrolments.clear()
        self.rules = frozenset()

    def answer(self, exchange: Exchange) -> ScriptedAnswer:
        """Return the ordinary answer to what does not concern a task."""
        allowed = {self.key} if exchange.route is Route.ENROL else {self.token} - {""}
        if exchange.route in _BY_KEY:
            allowed.add(self.key)
        if exchange.secret not in allowed:
            return problem(401, "the key or token is not known", "Send the device's token.")
        match exchange.route:
            case Route.ENROL:
                return self._enrol(exchange)
            case Route.ARTIFACT:
                return self.artifact(exchange)
            case Route.SAMPLE:
                return json_answer(to_json(SAMPLE))
            case Route.SIDE if exchange.path == "/v1/pins":
                return json_answer({"schema": "edgefl.pins/1", "pins": list(self.pins)})
            case Route.SIDE if exchange.path == "/v1/measurement":
                return json_answer(to_json(conformance_measurement().measurement))
            case Route.SIDE if exchange.name:
                _, content = conformance_measurement().bodies.get(exchange.name, ("", None))
                return _download(exchange, content)
            case Route.PROFILE | Route.CAPABILITIES | Route.SAMPLES:
                return ScriptedAnswer(status=204)
        return problem(404, f"there is no {exchange.method} {exchange.path}", "Ask for something else.")

    def is_allowed(self, exchange: Exchange) -> bool:
        """Return whether a request has the device's token."""
        return bool(self.token) and exchange.secret == self.token

    def artifact(self, exchange: Exchange) -> ScriptedAnswer:
        """Return an artifact, or the range of it that is asked for, compressed as the client allows."""
        return _download(exchange, self.artifacts.get(exchange.name))

    def _enrol(self, exchange: Exchange) -> ScriptedAnswer:
        content = exchange.content
        try:
            asked = loads(Enrolment, b"" if content is None else content)
        except EdgeFLError as error:
            return problem(422, error.problem, error.fix)
        self.enrolments[asked.enrolment_id] = self.enrolments.get(asked.enrolment_id, 0) + 1
        if asked.capabilities is not None:
            self.rules = frozenset(asked.capabilities.rules)
        self.token = f"edgefl-device-{secrets.token_hex(16)}"
        return json_answer(to_json(Enrolled(device_id=self.device_id, token=self.token)), status=201)


def _download(exchange: Exchange, content: bytes | None) -> ScriptedAnswer:
    if content is None:
        return problem(404, f"there is no artifact {exchange.name}", "Ask for the next task.")
    if exchange.name in exchange.headers.get("if-none-match", ""):
        return ScriptedAnswer(status=304, headers={"ETag": f'"{exchange.name}"'})
    start, size = exchange.start, len(content)
    if start is not None and start >= size:
        return problem(416, "the range begins after the end", "Begin again.", Content_Range=f"bytes */{size}")
    if start is not None:
        headers = {"ETag": f'"{exchange.name}"', "Content-Range": f"bytes {start}-{size - 1}/{size}", **_BYTES}
        return ScriptedAnswer(status=206, headers=headers, body=content[start:])
    return packed_artifact(exchange, content)


def packed_artifact(exchange: Exchange, content: bytes) -> ScriptedAnswer:
    """Return a whole artifact, compressed as a coordinator does that, if the client allows it."""
    codings, is_weights = accepted_codings(exchange), _WEIGHTS in content[:512]
    if is_weights and {byte_shuffle.CODING, "gzip"} <= set(codings):
        body, coding, tag = byte_shuffle.pack(content), byte_shuffle.CODINGS, "-planes"
    elif not is_weights and "gzip" in codings:
        body, coding, tag = gzip.compress(content, mtime=0), "gzip", "-gzip"
    else:
        return ScriptedAnswer(headers={"ETag": f'"{exchange.name}"', **_BYTES}, body=content)
    return ScriptedAnswer(headers={"ETag": f'"{exchange.name}{tag}"', "Content-Encoding": coding, **_BYTES}, body=body)


def accepted_codings(exchange: Exchange) -> list[str]:
    """Return the compressions that a client accepts, without their weights."""
    codings = byte_shuffle.codings_in(exchange.headers.get("accept-encoding", ""))
    return [coding.partition(";")[0].strip() for coding in codings]


def json_answer(
    document: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> ScriptedAnswer:
    """Return an answer of JSON."""
    return ScriptedAnswer(status=status, headers={**_JSON, **(headers or {})}, body=json.dumps(document).encode())


def problem(status: int, said: str, fix: str, **headers: str) -> ScriptedAnswer:
    """Return a coordinator's error; an underscore in the name of a header is a hyphen."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return json_answer({"error": {"problem": said, "fix": fix}}, status=status, headers=named)


def html(status: int, **headers: str) -> ScriptedAnswer:
    """Return the page of a proxy or a captive portal."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ScriptedAnswer(status=status, headers={"Content-Type": "text/html", **named}, body=HTML_PAGE)


def receipt(task_id: str, outcome: Outcome = Outcome.ACCEPTED, **more: Any) -> ScriptedAnswer:
    """Return a receipt."""
    return json_answer(
        {"schema": "edgefl.receipt/1", "task_id": task_id, "outcome": outcome.value, "retry_seconds": None, **more}
    )

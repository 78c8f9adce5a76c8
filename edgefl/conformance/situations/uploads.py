"""Uploads: a result is kept until it is acknowledged or rejected, and what is rejected is never sent again."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Row, Situation, TaskSituation
from edgefl.conformance.stage import html, problem, receipt
from edgefl.values import Outcome
from edgefl.wire import byte_shuffle

__all__ = ["ROWS"]

_RESULT = "protocol.md#put-v1taskstask_idresult-send-the-result"
_RETRY = "protocol.md#when-to-retry"
_LOST = "protocol.md#an-update-is-never-lost"
_CLOCK = 0.98
_ENOUGH = 2
"""Uploads of a result that has ended, after which it is clear that it comes again."""
_CONTENT_TYPE = "application/vnd.safetensors"

Fault = Callable[["_KeptResult"], ScriptedAnswer]


@dataclass(eq=False)
class _KeptResult(TaskSituation):
    """The first upload fails. The same bytes must come again, and not too soon."""

    fault: Fault = lambda situation: html(500)
    least_seconds: float = 0.0
    cuts_request: bool = False
    """Whether the connection ends in the middle of the request."""

    def interrupt(self, exchange: Exchange) -> int | None:
        """Cut the first upload off, if that is the situation."""
        is_first = exchange.route is Route.RESULT and len(self.of(Route.RESULT)) == 1
        length = int(exchange.headers.get("content-length", "0"))
        return max(1, length // 2) if self.cuts_request and is_first else None

    def on_result(self, exchange: Exchange) -> ScriptedAnswer:
        """Fail at first."""
        is_first = exchange is self.of(Route.RESULT)[0]
        return self.fault(self) if is_first else self.accept(exchange)

    def problems(self) -> list[str]:
        """Return whether the same came again, and when."""
        sent = self.of(Route.RESULT)
        if not sent:
            return ["sent no result"]
        if len(sent) == 1:
            return ["did not send the result again"]
        found = [f"sent the result {len(sent)} times"] if len(sent) > 2 else []
        if sent[0].is_complete and sent[0].content != sent[1].content:
            found.append("sent other bytes the second time")
        waited = self.waits_after(sent[0], Route.RESULT) or 0.0
        least = self.least_seconds or self.stage.least_backoff
        if waited < _CLOCK * least:
            found.append(f"sent it again after {waited:.2f} s, and {least:.2f} s is the least")
        leaked = [
            one for one in self.exchanges if one.is_elsewhere and (self.stage.token in str(one.headers) or one.body)
        ]
        return [*found, *(["sent its token or its result to another origin"] if leaked else [])]


def _lost(situation: _KeptResult) -> ScriptedAnswer:
    """Take the result, and reset the connection."""
    return ScriptedAnswer(no_answer=True)


def _half_an_answer(situation: _KeptResult) -> ScriptedAnswer:
    whole = receipt(situation.task_id)
    return ScriptedAnswer(headers=whole.headers, body=whole.body, cut_after=len(whole.body) // 2)


@dataclass(eq=False)
class _Ended(TaskSituation):
    """The first answer is the last word about a result: it is not sent again."""

    final: Callable[["_Ended"], ScriptedAnswer] = lambda situation: receipt(situation.task_id)

    def on_result(self, exchange: Exchange) -> ScriptedAnswer:
        """Say it; to one that comes again and again, say what ends that."""
        self.is_over = True
        is_endless = len(self.of(Route.RESULT)) > _ENOUGH
        return receipt(self.task_id, Outcome.ALREADY) if is_endless else self.final(self)

    def problems(self) -> list[str]:
        """Return whether it came again."""
        sent = self.results()
        if not sent:
            return ["sent no result"]
        return [f"sent the result {len(sent)} times"] if len(sent) > 1 else []


class _Uncompressed(TaskSituation):
    """A compressed result is not accepted: it comes again without compression."""

    def on_result(self, exchange: Exchange) -> ScriptedAnswer:
        if exchange.codings:
            return problem(415, "this coordinator does not read compressed results", "Send it uncompressed.")
        return self.accept(exchange)

    def problems(self) -> list[str]:
        sent = self.results()
        if not sent:
            return ["sent no result"]
        packed = [one for one in sent if one.codings]
        if len(packed) == len(sent):
            return ["did not send it uncompressed"]
        found = [f"sent it compressed {len(packed)} times"] if len(packed) > 1 else []
        return found if not packed or packed[0].content == sent[-1].content else [*found, "sent another result"]

    def is_asked(self) -> bool:
        return any(one.codings for one in self.results())


class _Form(Situation):
    """Every upload says what it is, and uses no coding that was not offered."""

    def problems(self) -> list[str]:
        found, offers_planes = set(), False
        for one in self.exchanges:
            if one.route is Route.POLL and one.answer is not None:
                offers_planes = byte_shuffle.CODING in one.answer.headers.get("Accept-Encoding", "")
            if one.route is not Route.RESULT:
                continue
            if one.headers.get("content-type", "").partition(";")[0] != _CONTENT_TYPE:
                found.add(f"sent a result as {one.headers.get('content-type')!r}")
            if one.codings not in ([], ["gzip"]) and not offers_planes:
                found.add(f"compressed a result with {', '.join(one.codings)}, which was not offered")
        return sorted(found)

    def is_asked(self) -> bool:
        return bool(self.of(Route.RESULT))

    def did(self) -> str:
        sizes = [len(one.body) for one in self.of(Route.RESULT)]
        return f"sent {len(sizes)} results of {min(sizes):,} to {max(sizes):,} bytes"


class _Planes(TaskSituation):
    """The answer with the plan offers edgefl-planes: a client may use it, and must then do so correctly."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        answer = self.send_plan()
        return ScriptedAnswer(headers={**answer.headers, "Accept-Encoding": byte_shuffle.CODINGS}, body=answer.body)

    def problems(self) -> list[str]:
        sent = self.results()
        if not sent:
            return ["sent no result"]
        return [] if sent[0].content is not None else ["the result cannot be decompressed"]

    def is_asked(self) -> bool:
        return any(byte_shuffle.CODING in one.codings for one in self.results())


def _kept(name: str, asks: str, fault: Fault, section: str = _RETRY, **more: object) -> Row:
    return Row(f"uploads/{name}", asks, section, partial(_KeptResult, fault=fault, **more))  # type: ignore[arg-type]


def _ended(name: str, asks: str, final: Callable[[_Ended], ScriptedAnswer], section: str = _RESULT) -> Row:
    return Row(f"uploads/{name}", asks, section, partial(_Ended, final=final))


def _problem(status: int, said: str) -> Callable[[object], ScriptedAnswer]:
    return lambda situation: problem(status, said, "Drop it, and ask for the next task.")


ROWS = (
    Row("uploads/form", "send application/vnd.safetensors, with no compression but gzip", _RESULT, _Form),
    Row("uploads/planes", "use edgefl-planes where it is offered, or not at all", "wire.md#on-the-network", _Planes),
    _ended("accepted", "send an accepted result once", lambda s: receipt(s.task_id)),
    _ended("already-have-it", "drop a result that is already there", lambda s: receipt(s.task_id, Outcome.ALREADY)),
    _ended("late", "drop a result that is late", lambda s: receipt(s.task_id, Outcome.LATE)),
    _kept("lost-answer", "send the same bytes again if no answer came", _lost, _LOST),
    _kept("half-an-answer", "send the same bytes again after half a receipt", _half_an_answer, _LOST),
    _kept(
        "half-a-request",
        "send the same bytes again if the connection broke in the middle",
        _lost,
        _LOST,
        cuts_request=True,
    ),
    _kept(
        "too-many",
        "wait as long as Retry-After says after a 429",
        lambda s: problem(429, "too many requests", "Wait.", Retry_After="1"),
        least_seconds=1.0,
    ),
    _kept(
        "no-room",
        "wait as long as Retry-After says after a 503",
        lambda s: problem(503, "the disk is full", "Wait.", Retry_After="1"),
        least_seconds=1.0,
    ),
    _kept("server-error", "keep the result after a 500 with a proxy's page", lambda s: html(500)),
    _kept("proxy-404", "keep the result after a proxy's 404", lambda s: html(404)),
    _kept("proxy-401", "keep the result, and go on, after a proxy's 401", lambda s: html(401)),
    _kept("captive-portal", "take the 200 of a captive portal for no receipt", lambda s: html(200)),
    _kept(
        "redirect",
        "send neither token nor result to another origin",
        lambda s: html(302, Location=f"{s.stage.elsewhere}/v1/tasks/{s.task_id}/result"),
        _RETRY,
    ),
    _ended(
        "no-such-task", "drop the result after a 404 of the coordinator", _problem(404, "this device has no such task")
    ),
    _ended("conflict", "drop the result after a 409", _problem(409, "this task has already ended in another way")),
    _ended("too-large", "drop the result after a 413", _problem(413, "the update is larger than its plan can need")),
    _ended("invalid", "never send a result again that got a 422", _problem(422, "the update has an unexpected tensor")),
    Row("uploads/uncompressed", "send the result uncompressed after a 415", _RESULT, _Uncompressed),
)

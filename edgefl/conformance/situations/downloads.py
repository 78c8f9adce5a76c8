"""Downloads: nothing is trained on that does not match its digest, and what has arrived is not fetched again."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Row, Situation, TaskSituation
from edgefl.conformance.stage import accepted_codings, html, problem
from edgefl.conformance.tasks import OfferedTask, offer
from edgefl.conformance.update_check import update_problems
from edgefl.values import Reason
from edgefl.wire import byte_shuffle

__all__ = ["ROWS"]

_SECTION = "protocol.md#get-v1artifactsdigest-download"
_RETRY = "protocol.md#when-to-retry"
_CLOCK = 0.98
_MOST_DOWNLOADS = 4

Script = Callable[["_Download", Exchange, int], ScriptedAnswer | None]
"""Answers a request for the weights, by its number from 0; None for the ordinary answer."""


@dataclass(eq=False)
class _Download(TaskSituation):
    """A task with weights of its own, whose download goes wrong. Its update must be right nevertheless."""

    script: Script = lambda situation, exchange, number: None
    judge: "Callable[[_Download], list[str]]" = lambda situation: []
    asked: "Callable[[_Download], bool]" = lambda situation: True

    def make_task(self) -> OfferedTask:
        return offer(self.row.name, self.stage.device_id, fresh=True)

    @property
    def target(self) -> str:
        """The digest of the weights."""
        return str(self.offered.plan.weights)

    @property
    def content(self) -> bytes:
        """The weights."""
        return self.offered.artifacts[self.target]

    @property
    def fetches(self) -> list[Exchange]:
        """The requests for the weights."""
        return [one for one in self.of(Route.ARTIFACT) if one.name == self.target]

    def on_artifact(self, exchange: Exchange) -> ScriptedAnswer | None:
        """Answer by the script, for a client with a token."""
        if exchange.name != self.target or not self.stage.is_allowed(exchange):
            return None
        return self.script(self, exchange, len(self.fetches) - 1)

    def problems(self) -> list[str]:
        """Return what is wrong with the downloads, and with the update."""
        sent = self.results()
        if not sent:
            return [*self.judge(self), "sent no result"]
        return [*self.judge(self), *update_problems(sent[0].content, self.offered)]

    def is_asked(self) -> bool:
        """Return whether the client did what the row is about."""
        return self.asked(self)

    def whole(self, body: bytes | None = None, **changes: object) -> ScriptedAnswer:
        """Return the weights uncompressed, or other bytes in their place."""
        headers = {"ETag": f'"{self.target}"', "Content-Type": "application/octet-stream"}
        answer = ScriptedAnswer(headers=headers, body=self.content if body is None else body)
        return replace(answer, **changes)  # type: ignore[arg-type]


def _at_first(make: Callable[[_Download, Exchange], ScriptedAnswer | None]) -> Script:
    """Answer the first request for the weights in this way."""
    return lambda situation, exchange, number: make(situation, exchange) if number == 0 else None


def _flipped(content: bytes) -> bytes:
    at = len(content) - 100
    return content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :]


def _half(situation: _Download) -> ScriptedAnswer:
    return situation.whole(cut_after=len(situation.content) // 2)


def _fetched_again(situation: _Download) -> list[str]:
    return [] if len(situation.fetches) > 1 else ["did not download it again"]


def _resumed(situation: _Download) -> list[str]:
    starts = [one.start for one in situation.fetches[1:2]]
    if not starts:
        return ["did not download it again"]
    if starts[0] is None:
        return ["began again, and did not resume with a Range"]
    most = situation.fetches[0].sent_bytes
    return [] if 0 < starts[0] <= most else [f"resumed at byte {starts[0]}, and got {most} before"]


def _after_half(make: Callable[[_Download, Exchange], ScriptedAnswer]) -> Script:
    """Break off the first answer, and answer the request for the rest in this way."""

    def script(situation: _Download, exchange: Exchange, number: int) -> ScriptedAnswer | None:
        if number == 0:
            return _half(situation)
        return make(situation, exchange) if number == 1 and exchange.start is not None else None

    return script


def _from_another_byte(situation: _Download, exchange: Exchange) -> ScriptedAnswer:
    size = len(situation.content)
    headers = {"Content-Range": f"bytes 0-{size - 1}/{size}", "Content-Type": "application/octet-stream"}
    return ScriptedAnswer(status=206, headers=headers, body=situation.content)


def _packed(coding: str, pack: Callable[[bytes], bytes]) -> Script:
    """Compress the weights, if the client accepts that."""

    def script(situation: _Download, exchange: Exchange, number: int) -> ScriptedAnswer | None:
        names = byte_shuffle.codings_in(coding)
        if exchange.start is not None or not set(names) <= set(accepted_codings(exchange)):
            return situation.whole() if exchange.start is None else None
        return situation.whole(
            pack(situation.content), headers={"Content-Encoding": coding, "ETag": f'"{situation.target}"'}
        )

    return script


def _was_packed(situation: _Download) -> bool:
    return any("Content-Encoding" in one.answer.headers for one in situation.fetches if one.answer is not None)


def _truncated_gzip(situation: _Download, exchange: Exchange) -> ScriptedAnswer | None:
    if "gzip" not in accepted_codings(exchange):
        return None
    packed = gzip.compress(situation.content, mtime=0)
    return situation.whole(packed[: len(packed) // 2], headers={"Content-Encoding": "gzip"})


def _waited(situation: _Download) -> list[str]:
    waited = situation.waits_after(situation.fetches[0], Route.ARTIFACT)
    if waited is None:
        return ["did not download it again"]
    return [] if waited >= _CLOCK else [f"downloaded again after {waited:.2f} s, and Retry-After was 1"]


def _redirected(situation: _Download) -> list[str]:
    token = situation.stage.token
    leaked = any(one.is_elsewhere and token in str(one.headers) for one in situation.exchanges)
    return ["sent its token to another origin"] if leaked else []


class _Cached(_Download):
    """Two tasks with the same artifacts: the second needs no download."""

    def on_result(self, exchange: Exchange) -> ScriptedAnswer:
        first = self.task_id
        answer = self.accept(exchange)
        if exchange.name == first:
            self.task = self.offered.changed(task_id=f"{first}.again", seed=1)
            self.is_over = False
            self.plans_sent = 0
        return answer

    def owns(self, task_id: str) -> bool:
        return task_id in (self.task_id, f"{self.task_id}.again")

    def problems(self) -> list[str]:
        sent = self.results()
        if len(sent) < 2:
            return ["sent no result"]
        later = [one.name for one in self.of(Route.ARTIFACT) if one.arrived > sent[0].arrived]
        known = [name for name in later if name in self.offered.artifacts]
        return [f"downloaded {len(known)} artifacts again"] if known else []


class _Gone(_Download):
    """The weights are obsolete: the task is refused, so that nobody waits for it."""

    def on_artifact(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.name != self.target or not self.stage.is_allowed(exchange):
            return None
        return problem(404, "a later round has made this artifact obsolete", "Ask for the next task.")

    def problems(self) -> list[str]:
        again = len(self.fetches) - 1
        return [*_refused_as_broken(self), *([f"asked {again} more times for what is gone"] if again > 1 else [])]


class _Hopeless(_Download):
    """The weights never match their digest."""

    def on_artifact(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.name != self.target or not self.stage.is_allowed(exchange):
            return None
        if len(self.fetches) > _MOST_DOWNLOADS:
            self.give_up(f"downloaded it {len(self.fetches)} times")
            return None  # what it asks for, so that it goes on
        return self.whole(_flipped(self.content))

    def problems(self) -> list[str]:
        return [] if self.failures else _refused_as_broken(self)


def _refused_as_broken(situation: _Download) -> list[str]:
    """Return what is wrong with the refusal of a task whose weights cannot be had."""
    if situation.results():
        return ["sent a result without the weights"]
    said = [json.loads(one.content or b"{}").get("reason") for one in situation.refusals()]
    if not said:
        return [] if situation.failures else ["did not refuse the task"]
    return [] if said[0] == Reason.BROKEN.value else [f"its reason is {said[0]!r}, not broken"]


class _NotModified(Situation):
    """A client that has an artifact may ask whether it has changed, which it never has."""

    def problems(self) -> list[str]:
        fetches = self.of(Route.ARTIFACT)
        unchanged = [at for at, one in enumerate(fetches) if one.status == 304]
        again = [
            fetches[at].name for at in unchanged if any(later.name == fetches[at].name for later in fetches[at + 1 :])
        ]
        return ["downloaded again what has not changed"] if again else []

    def is_asked(self) -> bool:
        return any(one.status == 304 for one in self.of(Route.ARTIFACT))


def _row(name: str, asks: str, script: Script, section: str = _SECTION, **more: object) -> Row:
    return Row(f"downloads/{name}", asks, section, partial(_Download, script=script, **more))  # type: ignore[arg-type]


ROWS = (
    _row(
        "corrupt",
        "not train on a download that does not match its digest, and fetch it again",
        _at_first(lambda s, e: s.whole(_flipped(s.content))),
        judge=_fetched_again,
    ),
    _row(
        "resume", "resume a download at the byte where it broke off", _at_first(lambda s, e: _half(s)), judge=_resumed
    ),
    _row("range-ignored", "begin again if a Range is answered with 200", _after_half(lambda s, e: s.whole())),
    _row(
        "range-refused",
        "begin again if a Range is answered with 416",
        _after_half(lambda s, e: problem(416, "the range begins after the end", "Ask from the beginning.")),
    ),
    _row("range-moved", "notice a 206 that begins elsewhere", _after_half(_from_another_byte)),
    _row("chunked", "read chunks without a length", _at_first(lambda s, e: s.whole(is_chunked=True))),
    _row(
        "half-the-chunks",
        "take chunks without an end for half a download",
        _at_first(lambda s, e: s.whole(is_chunked=True, cut_after=len(s.content) // 2)),
        judge=_fetched_again,
    ),
    _row("gzip", "read gzip, if it accepts that", _packed("gzip", gzip.compress), asked=_was_packed),
    _row(
        "planes",
        "read edgefl-planes, if it accepts that",
        _packed(byte_shuffle.CODINGS, byte_shuffle.pack),
        "wire.md#on-the-network",
        asked=_was_packed,
    ),
    _row(
        "identity",
        "read what is not compressed, whatever it accepts",
        lambda s, e, number: s.whole() if e.start is None else None,
    ),
    _row(
        "truncated-gzip",
        "fetch again what ends in the middle of gzip",
        _at_first(_truncated_gzip),
        judge=_fetched_again,
        asked=_was_packed,
    ),
    _row(
        "captive-portal",
        "take the 200 of a captive portal for no artifact",
        _at_first(lambda s, e: html(200)),
        judge=_fetched_again,
    ),
    _row(
        "retry-after",
        "wait as long as Retry-After says",
        _at_first(lambda s, e: problem(503, "no room", "Ask again.", Retry_After="1")),
        _RETRY,
        judge=_waited,
    ),
    _row(
        "redirect",
        "never send the token to another origin",
        _at_first(lambda s, e: html(302, Location=f"{s.stage.elsewhere}{e.path}")),
        _RETRY,
        judge=_redirected,
    ),
    Row("downloads/cached", "not download again what it has", _SECTION, _Cached),
    Row(
        "downloads/hopeless",
        "refuse the task after four downloads that do not match",
        _SECTION,
        _Hopeless,
        is_refused=True,
    ),
    Row("downloads/gone", "refuse the task if an artifact is gone", _SECTION, _Gone, is_refused=True),
    Row("downloads/not-modified", "go on after a 304, if it sends If-None-Match", _SECTION, _NotModified),
)

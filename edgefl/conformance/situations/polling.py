"""Polls: how often a client asks, what it waits for, and what it takes for an answer."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Row, Situation, TaskSituation
from edgefl.conformance.stage import Stage, html, json_answer, problem
from edgefl.conformance.tasks import OfferedTask, offer
from edgefl.values import Assignment, to_json

__all__ = ["ROWS", "FaultyPoll", "faulty"]

_POLL = "protocol.md#post-v1tasksnextwait20-poll"
_RETRY = "protocol.md#when-to-retry"
_LONGEST_WAIT = 3600.0
_CLOCK = 0.98
"""A wait that is 2% too short is a matter of clocks."""


@dataclass(eq=False)
class FaultyPoll(TaskSituation):
    """The first poll gets an answer that is none; the next one gets a task, which a client that is alive can do."""

    fault: Callable[[Stage], ScriptedAnswer] = lambda stage: html(500)
    least_seconds: float = 0.0
    """Seconds to wait at the least, if the answer asks for a wait; otherwise the shortest backoff."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        """Answer the first poll."""
        return self.fault(self.stage) if len(self.of(Route.POLL)) == 1 else self.send_plan()

    def problems(self) -> list[str]:
        """Return whether it polled again, and not too soon."""
        first = self.of(Route.POLL)[0]
        waited, least = self.waits_after(first, Route.POLL), self.least_seconds or self.stage.least_backoff
        if waited is None:
            return [] if self.failures else ["did not poll again"]
        found = [] if self.results() else ["sent no result for the task after that"]
        if waited < _CLOCK * least:
            found.append(f"polled again after {waited:.2f} s, and {least:.2f} s is the least")
        leaked = [one for one in self.exchanges if one.is_elsewhere and self.stage.token in str(one.headers)]
        return [*found, *(["sent its token to another origin"] if leaked else [])]

    def did(self) -> str:
        """Return how long it waited."""
        waited = self.waits_after(self.of(Route.POLL)[0], Route.POLL)
        return "" if waited is None else f"polled again after {waited:.1f} s"


def faulty(fault: Callable[[Stage], ScriptedAnswer], least_seconds: float = 0.0) -> Callable[[Row, Stage], Situation]:
    """Return the situation of a poll that gets this answer."""
    return partial(FaultyPoll, fault=fault, least_seconds=least_seconds)


class _Wait(Situation):
    """Every poll, whatever else it is for."""

    def problems(self) -> list[str]:
        found = set()
        for one in self.of(Route.POLL):
            text = one.query.get("wait", "0")
            try:
                seconds = float(text)
            except ValueError:
                seconds = -1.0
            if not 0 <= seconds <= _LONGEST_WAIT:
                found.add(f"wait is {text!r}")
            if one.body:
                found.add("a poll has a body")
        return sorted(found)

    def is_asked(self) -> bool:
        return bool(self.of(Route.POLL))

    def did(self) -> str:
        return f"{len(self.of(Route.POLL))} polls with wait={self.of(Route.POLL)[0].query.get('wait', 'none')}"


class _Held(TaskSituation):
    """The coordinator holds the first poll open for a while, as it does while there is no task."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        answer = self.send_plan()
        hold = min(0.5, float(exchange.query.get("wait", "0") or "0")) if self.plans_sent == 1 else 0.0
        return ScriptedAnswer(headers=answer.headers, body=answer.body, hold_seconds=hold)

    def problems(self) -> list[str]:
        polls = len(self.of(Route.POLL))
        return [f"polled {polls} times while one poll was open"] if polls > 1 else []


class _LostPlan(TaskSituation):
    """The first answer with a plan breaks off in the middle."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        answer = self.send_plan()
        cut = len(answer.body) // 2 if self.plans_sent == 1 else None
        return ScriptedAnswer(headers=answer.headers, body=answer.body, cut_after=cut)

    def problems(self) -> list[str]:
        return [] if len(self.results()) == 1 else [f"sent {len(self.results())} results for the plan"]


class _Gzip(TaskSituation):
    """The answer with the plan is compressed, if the client says that it can read that."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        answer = self.send_plan()
        if "gzip" not in exchange.headers.get("accept-encoding", ""):
            return answer
        headers = {**answer.headers, "Content-Encoding": "gzip"}
        return ScriptedAnswer(headers=headers, body=gzip.compress(answer.body))

    def problems(self) -> list[str]:
        return [] if self.results() else ["sent no result"]

    def is_asked(self) -> bool:
        return any(one.answer is not None and "Content-Encoding" in one.answer.headers for one in self.of(Route.POLL))


class _UnknownFields(TaskSituation):
    """The assignment, its plan and the receipt have fields that no client knows yet."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        self.send_plan()
        document = to_json(Assignment(retry_seconds=0.1, plan=self.offered.plan))
        document["plan"] |= {"colour": "blue", "hints": {"a": [1, 2, {"b": None}]}}
        document["plan"]["work"] |= {"warm_up": 3}
        return json_answer(document | {"motd": "hello"})

    def on_result(self, exchange: Exchange) -> ScriptedAnswer:
        answer = self.accept(exchange)
        return ScriptedAnswer(headers=answer.headers, body=answer.body[:-1] + b', "thanks": true}')

    def problems(self) -> list[str]:
        sent = self.results()
        if not sent:
            return ["sent no result"]
        return [f"sent the result {len(sent)} times"] if len(sent) > 1 else []


class _Skew(TaskSituation):
    """The clock of the coordinator is decades away from the client's."""

    _years = ("Fri, 01 Jan 1999 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 GMT")

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        given = TaskSituation.answer(self, exchange) or self.stage.answer(exchange)
        date = self._years[len(self.exchanges) % 2]
        headers = {**given.headers, "Date": date, "Expires": self._years[0], "Last-Modified": self._years[1]}
        return ScriptedAnswer(status=given.status, headers=headers, body=given.body)

    def make_task(self) -> OfferedTask:
        return offer(self.row.name, self.stage.device_id, fresh=True)

    def problems(self) -> list[str]:
        return [] if self.results() else ["sent no result"]


def _restart(stage: Stage) -> ScriptedAnswer:
    return ScriptedAnswer(no_answer=True, then=lambda: stage.pause(1.0))


def _redirect(stage: Stage) -> ScriptedAnswer:
    return html(302, Location=f"{stage.elsewhere}/v1/tasks/next")


def _nothing(stage: Stage) -> ScriptedAnswer:
    return json_answer(to_json(Assignment(retry_seconds=1.0)))


ROWS = (
    Row("polling/wait", "poll without a body, and a wait of at most an hour", _POLL, _Wait),
    Row("polling/retry-seconds", "poll again no sooner than retry_seconds", _POLL, faulty(_nothing, 1.0)),
    Row("polling/held-open", "wait for the answer to a long poll", _POLL, _Held),
    Row("polling/lost-plan", "poll again after half an answer, and do the task once", _POLL, _LostPlan),
    Row("polling/gzip", "read a compressed plan, if it accepts gzip", _POLL, _Gzip),
    Row(
        "polling/unknown-fields", "ignore unknown fields of plans and receipts", "stability.md#promised", _UnknownFields
    ),
    Row(
        "polling/clock-skew",
        "do the task, whatever the coordinator's clock shows",
        "protocol.md#clocks-and-deadlines",
        _Skew,
    ),
    Row(
        "polling/dropped",
        "poll again after a dropped connection",
        _RETRY,
        faulty(lambda stage: ScriptedAnswer(no_answer=True)),
    ),
    Row("polling/restart", "poll again after the coordinator was away for a second", _RETRY, faulty(_restart)),
    Row(
        "polling/retry-after",
        "wait as long as Retry-After says after a 503",
        _RETRY,
        faulty(lambda stage: problem(503, "there is no room now", "Ask again.", Retry_After="1"), 1.0),
    ),
    Row(
        "polling/too-many",
        "wait as long as Retry-After says after a 429",
        _RETRY,
        faulty(lambda stage: problem(429, "too many requests", "Ask again.", Retry_After="1"), 1.0),
    ),
    Row(
        "polling/server-error",
        "poll again after the HTML page of a 502, with backoff",
        _RETRY,
        faulty(lambda stage: html(502)),
    ),
    Row("polling/proxy-404", "poll again after a proxy's 404", _RETRY, faulty(lambda stage: html(404))),
    Row("polling/proxy-401", "poll again after a proxy's 401", _RETRY, faulty(lambda stage: html(401))),
    Row(
        "polling/captive-portal",
        "take the 200 of a captive portal for no answer",
        _RETRY,
        faulty(lambda stage: html(200)),
    ),
    Row("polling/redirect", "never send the token to another origin", _RETRY, faulty(_redirect)),
)

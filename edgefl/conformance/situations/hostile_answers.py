"""Hostile answers: nothing that a coordinator sends ends a client, fills its memory, or keeps it busy for ever."""

import gzip
from functools import partial

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Row
from edgefl.conformance.situations.polling import FaultyPoll, faulty
from edgefl.conformance.situations.refusals import RefusedTask
from edgefl.conformance.stage import Stage, json_answer, problem
from edgefl.conformance.tasks import offer
from edgefl.values import Assignment, LocalWork, Reason, to_json

__all__ = ["ROWS"]

_RETRY = "protocol.md#when-to-retry"
_SIZES = "protocol.md#how-much-to-read"
_JSON = {"Content-Type": "application/json"}
_DEEP = 100_000
_MEBIBYTE = 2**20
_LARGE = 64
"""Mebibytes of an answer that is far too large."""
_MOST_TAKEN = 12 * _MEBIBYTE
"""Bytes of it that a client may take, some of which wait in buffers of the system."""


def _nested(stage: Stage) -> ScriptedAnswer:
    return ScriptedAnswer(headers=_JSON, body=b'{"plan":' + b"[" * _DEEP + b"]" * _DEEP + b"}")


def _wrong_types(stage: Stage) -> ScriptedAnswer:
    return json_answer({"schema": "edgefl.assignment/1", "plan": "yes", "retry_seconds": [], "finished": 0})


def _bomb(stage: Stage) -> ScriptedAnswer:
    body = gzip.compress(b'{"plan":"' + b"a" * (_LARGE * _MEBIBYTE) + b'"}', 1)
    return ScriptedAnswer(headers={**_JSON, "Content-Encoding": "gzip"}, body=body)


def _outside(stage: Stage) -> ScriptedAnswer:
    document = to_json(Assignment(retry_seconds=0.1, plan=offer("hostile/outside", stage.device_id).plan))
    document["plan"]["task_id"] = "../../v1/devices/me"
    return json_answer(document)


class _LargeAnswer(FaultyPoll):
    """An answer without an end that anybody needs."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        if len(self.of(Route.POLL)) > 1:
            return self.send_plan()
        return ScriptedAnswer(headers=_JSON, body=b" " * _MEBIBYTE, repeats=_LARGE)

    def problems(self) -> list[str]:
        taken = self.of(Route.POLL)[0].sent_bytes
        found = [f"took {taken // _MEBIBYTE} MiB of it"] if taken > _MOST_TAKEN else []
        return [*found, *FaultyPoll.problems(self)]


class _Outside(FaultyPoll):
    """A task whose name leads out of its path."""

    def problems(self) -> list[str]:
        strange = [one.path for one in self.exchanges if one.route is Route.UNKNOWN or ".." in one.path]
        return [f"asked for {strange[0]}"] if strange else FaultyPoll.problems(self)


ROWS = (
    Row("hostile/large-answer", "not take 64 MiB for an assignment", _SIZES, _LargeAnswer),
    Row("hostile/nested", "survive JSON that is nested 100,000 deep", _SIZES, faulty(_nested)),
    Row("hostile/wrong-types", "survive an assignment whose fields have wrong types", _RETRY, faulty(_wrong_types)),
    Row("hostile/gzip-bomb", "survive gzip that unpacks to 64 MiB", _SIZES, faulty(_bomb)),
    Row(
        "hostile/retry-after",
        "come back soon after a Retry-After of 30,000 years",
        _RETRY,
        faulty(lambda stage: problem(503, "come back later", "Wait.", Retry_After="999999999999")),
    ),
    Row(
        "hostile/retry-date",
        "come back soon after a Retry-After that is not a number",
        _RETRY,
        faulty(lambda stage: problem(503, "come back later", "Wait.", Retry_After="Fri, 31 Dec 1999 23:59:59 GMT")),
    ),
    Row("hostile/outside", "not use the name of a task as a path", _RETRY, partial(_Outside, fault=_outside)),
    Row(
        "hostile/endless",
        "refuse a plan of 1,000,000,000 epochs, or end it at its deadline",
        "protocol.md#clocks-and-deadlines",
        partial(
            RefusedTask,
            make=partial(offer, work=LocalWork(epochs=10**9, batch_size=20), deadline_seconds=3.0),
            reasons=(Reason.UNSUPPORTED, Reason.DEADLINE),
        ),
        is_refused=True,
    ),
)

"""Refusals: what a client cannot or must not train, it refuses at once, says why, and stays alive."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Row, TaskSituation
from edgefl.conformance.tasks import OfferedTask, conformance_bundle, offer, sgd
from edgefl.errors import EdgeFLError
from edgefl.masks import freeze, full_mask
from edgefl.values import LocalWork, Reason, Refusal, RuleSettings, loads
from edgefl.wire import encode_mask, encode_weights

__all__ = ["ROWS", "RefusedTask"]

_SECTION = "protocol.md#put-v1taskstask_idrefusal-refuse-a-task"
_CLOCKS = "protocol.md#clocks-and-deadlines"
_ANY = (Reason.BROKEN, Reason.UNSUPPORTED)
MakeTask = Callable[[str, str], OfferedTask]


@dataclass(eq=False)
class RefusedTask(TaskSituation):
    """A task that must be refused, with one of some reasons."""

    make: MakeTask = lambda name, device: offer(name, device)
    reasons: tuple[Reason, ...] = _ANY

    def make_task(self) -> OfferedTask:
        """Make the task."""
        return self.make(self.row.name, self.stage.device_id)

    def problems(self) -> list[str]:
        """Return what is wrong with the refusal."""
        if self.results():
            return ["sent a result"]
        refused = self.refusals()
        if not refused:
            return [] if self.failures else ["did not refuse it"]
        try:
            said = loads(Refusal, refused[0].content or b"")
        except EdgeFLError as error:
            return [f"the refusal is not valid: {error.problem}"]
        wanted = " or ".join(reason.value for reason in self.reasons)
        return [] if said.reason in self.reasons else [f"its reason is {said.reason.value!r}, not {wanted}"]

    def did(self) -> str:
        """Return the reason."""
        said = json.loads(self.refusals()[0].content or b"{}")
        return f"refused it: {said['reason']}, {said['message']!r}"


class _Deadline(RefusedTask):
    """The weights come after the deadline: there is nothing to be done in time any more."""

    def on_artifact(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.name != self.offered.plan.weights or not self.stage.is_allowed(exchange):
            return None
        answer, left = self.stage.artifact(exchange), self._ends - time.monotonic()
        return ScriptedAnswer(
            status=answer.status, headers=answer.headers, body=answer.body, hold_seconds=max(0.0, left + 0.3)
        )

    @property
    def _ends(self) -> float:
        return self.offered_at + self.offered.plan.deadline_seconds

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        return None if self.offered_at and time.monotonic() > self._ends else self.send_plan()

    def problems(self) -> list[str]:
        if self.results():
            return ["sent a result after the deadline"]
        return RefusedTask.problems(self) if self.refusals() else []

    def did(self) -> str:
        return RefusedTask.did(self) if self.refusals() else "sent nothing, and polled again"


class _LostAnswer(RefusedTask):
    """The answer to the refusal is lost: the same refusal comes again."""

    def on_refusal(self, exchange: Exchange) -> ScriptedAnswer:
        if exchange is self.of(Route.REFUSAL)[0]:
            return ScriptedAnswer(no_answer=True)
        return self.accept(exchange)

    def problems(self) -> list[str]:
        refused = self.refusals()
        if len(refused) < 2:
            return ["did not refuse it again"]
        other = {one.content for one in refused}
        return RefusedTask.problems(self) if len(other) == 1 else ["sent another refusal"]


def _row(
    name: str,
    asks: str,
    make: MakeTask,
    *reasons: Reason,
    kind: type[RefusedTask] = RefusedTask,
    section: str = _SECTION,
) -> Row:
    situation = partial(kind, make=make, reasons=reasons or _ANY)
    return Row(f"refusals/{name}", asks, section, situation, is_refused=True)


def _rule(rule: RuleSettings, name: str, device: str) -> OfferedTask:
    return offer(name, device).changed(rule=rule)


def _other_mask(name: str, device: str) -> OfferedTask:
    """Return a task whose mask body is of another mask."""
    other = freeze(full_mask(conformance_bundle().graph), ["0"])
    return offer(name, device).changed({"mask_body": encode_mask(other)})


def _wrong_shape(name: str, device: str) -> OfferedTask:
    task = offer(name, device)
    about = {"model": task.plan.model, "mask": task.plan.mask}
    weights = {**task.weights, "5.weight": task.weights["5.weight"][:, :90]}
    return task.changed({"weights": encode_weights(weights, about)})


def _no_weights(name: str, device: str) -> OfferedTask:
    return offer(name, device).changed({"weights": b"these are not weights " * 40})


def _no_graph(name: str, device: str) -> OfferedTask:
    return offer(name, device).changed({"graph": b"this is not a graph " * 40})


def _diverging(name: str, device: str) -> OfferedTask:
    return offer(name, device, rule=sgd(learning_rate=1e20), work=LocalWork(epochs=4, batch_size=20))


_UNKNOWN = RuleSettings(name="simulated_annealing", settings={"temperature": 3})

ROWS = (
    _row(
        "unknown-rule",
        "refuse a rule that it does not have, as unsupported",
        partial(_rule, _UNKNOWN),
        Reason.UNSUPPORTED,
    ),
    _row(
        "unknown-setting",
        "refuse a setting that its rule does not have",
        partial(_rule, sgd(warp=9)),
        Reason.UNSUPPORTED,
    ),
    _row("other-mask", "refuse a mask that does not match the plan", _other_mask),
    _row("wrong-shape", "refuse weights of another shape", _wrong_shape),
    _row("no-weights", "refuse weights that are not a body", _no_weights),
    _row("no-graph", "refuse a graph that is not a graph", _no_graph),
    _row("diverged", "refuse a task that diverges", _diverging, Reason.DIVERGED),
    _row(
        "deadline",
        "not begin to train after the deadline",
        partial(offer, fresh=True, deadline_seconds=1.0),
        Reason.DEADLINE,
        kind=_Deadline,
        section=_CLOCKS,
    ),
    _row(
        "lost-answer",
        "send the same refusal again if no answer came",
        partial(_rule, _UNKNOWN),
        Reason.UNSUPPORTED,
        kind=_LostAnswer,
    ),
)

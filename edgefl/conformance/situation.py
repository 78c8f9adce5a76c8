"""A situation: what a client is led into, how the suite answers there, and whether the client did right.

`Row` is what the table and docs/conformance.md say about it. A situation sees every exchange while it lasts, may answer
in its own way, and judges at the end. Most hand out one task; those are over when its result or refusal has arrived,
and the next poll begins the next one. A watch lasts as long as its client.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import ClassVar

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.stage import Stage, json_answer, problem, receipt
from edgefl.conformance.tasks import OfferedTask, offer
from edgefl.values import Assignment, Outcome, to_json

__all__ = ["Act", "Ending", "Row", "Situation", "TaskSituation", "RowVerdict"]

_MOST_PLANS = 4
"""How often a plan is sent to a client that does nothing with it."""
_MOST_EXCHANGES = 60
_GOES_ON = 3
"""Requests after which it is clear that a client does not stop."""


class Act(StrEnum):
    """A client's life, from its enrolment to its end. Each has a key of its own, for a client that is new."""

    MAIN = "main"
    REVOKED = "revoked"
    NAME_TAKEN = "name-taken"
    MISMATCH = "mismatch"
    OLDER = "older"


class RowVerdict(StrEnum):
    """How a row went."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_REACHED = "not reached"
    NOT_ASKED = "not asked"
    """The row is optional, or asks nothing of a client that never does this."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table."""

    name: str
    """Theme and situation, such as 'uploads/lost-answer'."""
    asks: str
    """What the client must do."""
    section: str
    """Where the documents say so, such as 'protocol.md#when-to-retry'."""
    situation: "Callable[[Row, Stage], Situation]"
    act: Act = Act.MAIN
    is_optional: bool = False
    is_refused: bool = False
    """Whether its task is refused: a client may slow down after several of these in a row."""

    needs_tls: bool = False

    @property
    def theme(self) -> str:
        """The first part of its name."""
        return self.name.partition("/")[0]


@dataclass(eq=False)
class Situation:
    """A watch: it sees the whole act, and hands out nothing."""

    row: Row
    stage: Stage
    exchanges: list[Exchange] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What went wrong while it lasted."""
    is_over: bool = False
    has_begun: bool = False

    def begin(self) -> None:
        """Prepare."""
        self.has_begun = True

    def interrupt(self, exchange: Exchange) -> int | None:
        """Return after how many bytes of its body a request is to be cut off; None for not at all."""
        return None

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        """Return an answer in place of the ordinary one, or None."""
        return None

    def problems(self) -> list[str]:
        """Return what the client did wrong."""
        return []

    def is_asked(self) -> bool:
        """Return whether the client did anything that the row is about."""
        return True

    def did(self) -> str:
        """Return what the client did."""
        return trace(self.exchanges)

    def verdict(self) -> tuple[RowVerdict, str]:
        """Return how it went, and what the client did."""
        if not self.has_begun:
            return (RowVerdict.NOT_ASKED if self.row.is_optional else RowVerdict.NOT_REACHED), ""
        wrong = [*self.failures, *self.problems()]
        if wrong:
            return RowVerdict.WRONG, "; ".join(wrong)
        return (RowVerdict.RIGHT, self.did()) if self.is_asked() else (RowVerdict.NOT_ASKED, "never did this")

    def of(self, *routes: Route) -> list[Exchange]:
        """Return the exchanges of some routes."""
        return [exchange for exchange in self.exchanges if exchange.route in routes and not exchange.is_elsewhere]

    def waits_after(self, exchange: Exchange, *routes: Route) -> float | None:
        """Return the seconds from the end of an exchange to the next one of some routes; None if there was none."""
        later = [one.arrived for one in self.of(*routes) if one.arrived > exchange.arrived and one is not exchange]
        ended = exchange.answered if exchange.answered is not None else exchange.arrived
        return min(later) - ended if later else None


@dataclass(eq=False)
class TaskSituation(Situation):
    """A situation with a task, which ends when its result or refusal was answered."""

    task: OfferedTask | None = None
    plans_sent: int = 0
    offered_at: float = 0.0
    """When the plan was sent first."""

    def begin(self) -> None:
        """Make the task, and everything that it names can be downloaded."""
        self.has_begun = True
        self.task = self.make_task()
        self.stage.artifacts.update(self.task.artifacts)

    def make_task(self) -> OfferedTask:
        """Return the task: a few steps of plain gradient descent."""
        return offer(self.row.name, self.stage.device_id)

    @property
    def offered(self) -> OfferedTask:
        """The task, once it was made."""
        if self.task is None:
            raise ValueError(f"{self.row.name} has not begun")
        return self.task

    @property
    def task_id(self) -> str:
        """The name of the task."""
        return self.row.name.replace("/", ".")

    def owns(self, task_id: str) -> bool:
        """Return whether a task is this situation's."""
        return task_id == self.task_id

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        """Hand out the task, and take what comes back."""
        if len(self.exchanges) > _MOST_EXCHANGES:
            self.give_up(f"sent {len(self.exchanges)} requests, and got nowhere")
        if exchange.route is Route.POLL and self.plans_sent >= _MOST_PLANS:
            self.give_up(f"was sent the plan {self.plans_sent} times, and did nothing with it")
            return None
        handlers = {
            Route.POLL: self.on_poll,
            Route.ARTIFACT: self.on_artifact,
            Route.RESULT: self.on_result,
            Route.REFUSAL: self.on_refusal,
        }
        handler = handlers.get(exchange.route)
        return None if handler is None else handler(exchange)

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        """Answer a poll while the task is open."""
        return self.send_plan()

    def on_artifact(self, exchange: Exchange) -> ScriptedAnswer | None:
        """Answer a download."""
        return None

    def on_result(self, exchange: Exchange) -> ScriptedAnswer:
        """Answer a result."""
        return self.accept(exchange)

    def on_refusal(self, exchange: Exchange) -> ScriptedAnswer:
        """Answer a refusal."""
        return self.accept(exchange)

    def send_plan(self) -> ScriptedAnswer:
        """Return an assignment with the plan."""
        self.plans_sent += 1
        self.offered_at = self.offered_at or time.monotonic()
        return json_answer(to_json(Assignment(retry_seconds=0.1, plan=self.offered.plan)))

    def accept(self, exchange: Exchange) -> ScriptedAnswer:
        """Return the ordinary receipt, which ends the task."""
        before = [
            one
            for one in self.of(Route.RESULT, Route.REFUSAL)
            if one is not exchange and one.status == 200 and (one.route, one.name) == (exchange.route, exchange.name)
        ]
        self.is_over = True
        if any(one.content != exchange.content for one in before):
            return problem(409, "this task has already ended in another way", "Drop this.")
        return receipt(self.task_id, Outcome.ALREADY if before else Outcome.ACCEPTED)

    def give_up(self, said: str) -> None:
        """End the situation, because the client does not."""
        if not self.is_over:
            self.failures.append(said)
        self.is_over = True

    def results(self) -> list[Exchange]:
        """Return the results that came in full."""
        return [one for one in self.of(Route.RESULT) if one.is_complete]

    def refusals(self) -> list[Exchange]:
        """Return the refusals that came in full."""
        return [one for one in self.of(Route.REFUSAL) if one.is_complete]


class Ending(Situation):
    """A situation that ends with a client that has stopped, or sends nothing for a while."""

    begins_at_once: ClassVar[bool] = False
    """Whether it begins with the act, and not with a poll."""

    waits_for: ClassVar[Route] = Route.POLL
    """The request before which a client has not come to this situation: it may take seconds to start."""
    quiet_times: ClassVar[float] = 1.0
    """How many times longer than usual a client must be quiet to have stopped."""

    def has_arrived(self) -> bool:
        """Return whether the client has come to this situation."""
        return self.has_begun and bool(self.of(self.waits_for))

    def goes_on(self) -> bool:
        """Return whether the client goes on as if it had not come here."""
        return len(self.of(self.waits_for)) > _GOES_ON

    def is_settled(self, quiet: float, *, is_running: bool) -> bool:
        """Return whether the client has stopped."""
        is_quiet = self.has_arrived() and quiet >= self.quiet_times * self.stage.quiet_seconds
        return self.has_begun and (is_quiet or not is_running)


def trace(exchanges: Sequence[Exchange]) -> str:
    """Return what was exchanged, in a few words."""
    words = [f"{one.route} {'cut off' if one.status is None else one.status}" for one in exchanges]
    counted = [(word, len(list(group))) for word, group in groupby(words)]
    text = ", ".join(word if count == 1 else f"{word} x{count}" for word, count in counted)
    return text if len(text) <= 200 else f"{text[:99]} ... {text[-99:]}"

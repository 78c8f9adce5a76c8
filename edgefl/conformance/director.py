"""The director: leads one client through the situations of an act, one after the other, and keeps the record.

The server asks it for every answer. Watches see everything; of the others, one is on at a time, and a poll after its
end begins the next. Whatever a client does, the director goes on: a situation that gets nowhere is given up.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from edgefl.conformance.client_starts import Invitation, RunningClient, StartClient
from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Ending, Row, RowVerdict, Situation, TaskSituation
from edgefl.conformance.stage import Stage, json_answer, problem

__all__ = ["Director", "RowOutcome"]

_TICK = 0.02
_ENDLESS = 4
"""A client that has not stopped after so many times the quiet that shows it never will."""
_MOST_STARTS = 6
"""How often a client is started in an act."""
_FINISHED = {"schema": "edgefl.assignment/1", "retry_seconds": 0.1, "plan": None, "finished": True}


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """How one row went."""

    row: Row
    verdict: RowVerdict
    did: str
    seconds: float = 0.0


@dataclass(eq=False)
class Director:
    """Answers requests, and moves on from situation to situation."""

    stage: Stage
    patience: float = 60.0
    """Seconds without a request after which a situation is given up."""
    first_patience: float = 300.0
    """The same for a client that has sent nothing yet."""
    progress: Callable[[RowOutcome], None] = lambda outcome: None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _watches: list[Situation] = field(default_factory=list)
    _waiting: list[Situation] = field(default_factory=list)
    _begun: list[Situation] = field(default_factory=list)
    _has_told_the_end: bool = False
    """Whether the client was told that there are no more tasks."""
    _seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.monotonic)
    _changed: float = field(default_factory=time.monotonic)

    def lead(self, rows: Sequence[Row], start: StartClient, invitation: Invitation) -> list[RowOutcome]:
        """Lead a new client through the rows of an act, and return how each went."""
        situations = [row.situation(row, self.stage) for row in rows]
        with self._lock:
            ordered: list[Situation] = [one for one in situations if isinstance(one, TaskSituation | Ending)]
            self._watches = [one for one in situations if one not in ordered]
            self._waiting, self._begun, self._has_told_the_end = ordered, [], False
            self._last = self._changed = time.monotonic()
            for watch in self._watches:
                watch.begin()
            if ordered and isinstance(ordered[0], Ending) and ordered[0].begins_at_once:
                self._advance()
        self._accompany(start, invitation)
        with self._lock:
            self._end_current()
            for watch in self._watches:
                self.progress(self._outcome(watch))
            return [self._outcome(one) for one in situations]

    def begin(self, exchange: Exchange) -> None:
        """Take note of a request whose body has not been read yet."""
        with self._lock:
            self._last = time.monotonic()
            for situation in self._concerned(exchange):
                situation.exchanges.append(exchange)
                most = situation.interrupt(exchange)
                exchange.read_at_most = most if exchange.read_at_most is None else exchange.read_at_most

    def answer(self, exchange: Exchange) -> ScriptedAnswer:
        """Return the answer to a request; to one that was cut off, nothing."""
        with self._lock:
            self._last = time.monotonic()
            answer = self._answer(exchange) if exchange.is_complete else ScriptedAnswer(no_answer=True)
            exchange.answer = answer
            exchange.answered = time.monotonic()
            return answer

    def _answer(self, exchange: Exchange) -> ScriptedAnswer:
        if exchange.is_elsewhere:
            return json_answer({})
        for watch in self._watches:
            answer = watch.answer(exchange)
            if answer is not None:
                return answer
        if exchange.route is Route.POLL and self.stage.is_allowed(exchange):
            return self._poll(exchange)
        tasks = exchange.route in (Route.RESULT, Route.REFUSAL)
        if tasks and not self.stage.is_allowed(exchange):
            return problem(401, "the token is not known", "Send the device's token.")
        for situation in self._concerned(exchange):
            if situation not in self._watches:
                answer = situation.answer(exchange)
                if answer is not None:
                    return answer
        if tasks:
            return problem(404, f"this device has no task {exchange.name!r}", "Drop it, and ask for the next task.")
        return self.stage.answer(exchange)

    def _poll(self, exchange: Exchange) -> ScriptedAnswer:
        while True:
            current = self._current
            if current is None or (current.is_over and not isinstance(current, Ending)):
                if not self._advance():
                    self._has_told_the_end = True
                    return json_answer(_FINISHED)
                continue
            if exchange not in current.exchanges:
                current.exchanges.append(exchange)
            answer = current.answer(exchange)
            if answer is not None:
                return answer
            if isinstance(current, Ending):
                return json_answer(_FINISHED)
            current.is_over = True

    @property
    def _current(self) -> Situation | None:
        return self._begun[-1] if self._begun else None

    def _concerned(self, exchange: Exchange) -> list[Situation]:
        """Return the situations that see an exchange: watches, and the one that its task belongs to, or the present."""
        owner = self._current
        if exchange.route in (Route.RESULT, Route.REFUSAL):
            owner = next(
                (one for one in self._begun if isinstance(one, TaskSituation) and one.owns(exchange.name)), owner
            )
        if owner is None or (exchange.route is Route.POLL and owner.is_over and not isinstance(owner, Ending)):
            return list(self._watches)  # such a poll begins the next situation
        return [*self._watches, owner]

    def _advance(self) -> bool:
        """Begin the next situation; return False if there is none."""
        self._end_current()
        if not self._waiting:
            return False
        self._begun.append(self._waiting.pop(0))
        self._changed = time.monotonic()
        self._begun[-1].begin()
        return True

    def _end_current(self) -> None:
        current = self._current
        if current is not None and current.row.name not in self._seconds:
            current.is_over = True
            self._seconds[current.row.name] = time.monotonic() - self._changed
            self.progress(self._outcome(current))

    def _outcome(self, situation: Situation) -> RowOutcome:
        return RowOutcome(situation.row, *situation.verdict(), self._seconds.get(situation.row.name, 0.0))

    def _accompany(self, start: StartClient, invitation: Invitation) -> None:
        """Lead clients until the act is over: one that ended too early is started again."""
        for _ in range(_MOST_STARTS):
            client = start(invitation)
            try:
                if self._wait(client):
                    return
            finally:
                client.stop()
            self._fail("the client ended")
            invitation = invitation.again()

    def _wait(self, client: RunningClient) -> bool:
        """Wait until the act is over, and give up what gets nowhere; return False if the client ended before."""
        while not self._is_act_over(is_running=client.is_running()):
            time.sleep(_TICK)
            if not client.is_running():
                return self._is_act_over(is_running=False)
            if self._is_idle() and not self._fail(f"nothing came for {self.patience:.0f} s"):
                return True
        return True

    def _is_idle(self) -> bool:
        with self._lock:
            has_begun = bool(self._begun) or any(watch.exchanges for watch in self._watches)
            return time.monotonic() - self._last > (self.patience if has_begun else self.first_patience)

    def _fail(self, said: str) -> bool:
        """Give up the present situation, if there is one; return whether there is another after it."""
        with self._lock:
            self._last = time.monotonic()
            if isinstance(self._current, TaskSituation):
                was_over = self._current.is_over
                self._current.give_up(said)
                return not was_over and bool(self._waiting)
            return False

    def _is_act_over(self, *, is_running: bool) -> bool:
        with self._lock:
            current, quiet = self._current, time.monotonic() - self._last
            if isinstance(current, Ending):
                times = (time.monotonic() - self._changed) / self.stage.quiet_seconds
                never_ends = times >= _ENDLESS and (
                    current.goes_on() or (times >= 5 * _ENDLESS and current.has_arrived())
                )
                return never_ends or current.is_settled(quiet, is_running=is_running)
            return self._has_told_the_end and (not is_running or quiet >= self.stage.quiet_seconds)

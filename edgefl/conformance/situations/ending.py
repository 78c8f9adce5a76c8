"""The end: a client whose token was revoked, and the end of a federation."""

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Act, Ending, Row
from edgefl.conformance.stage import json_answer, problem
from edgefl.values import Assignment, to_json

__all__ = ["ROWS", "THEME"]

THEME = "ending"

_FINISHED = to_json(Assignment(retry_seconds=0.1, finished=True))


class _Finished(Ending):
    """There will be no more tasks."""

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        return json_answer(_FINISHED) if exchange.route is Route.POLL else None

    def problems(self) -> list[str]:
        again = len(self.of(Route.POLL)) - 1
        return [f"polled {again} more times"] if again else []

    def did(self) -> str:
        return "stopped"


class _Revoked(Ending):
    """The token does not work any more. A client that has its key may join again."""

    def begin(self) -> None:
        self.has_begun = True
        self.revoked = self.stage.token

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.route is Route.POLL and exchange.secret == self.revoked:
            return problem(403, "this device was revoked", "Join again with a new key.")
        return json_answer(_FINISHED) if exchange.route is Route.POLL else None

    def problems(self) -> list[str]:
        again = [one for one in self.exchanges if one.secret == self.revoked][1:]
        return [f"used the revoked token {len(again)} more times"] if again else []

    def did(self) -> str:
        return "joined again" if self.of(Route.ENROL) else "stopped"


ROWS = (
    Row(
        "ending/finished",
        "stop polling when the federation has ended",
        "protocol.md#post-v1tasksnextwait20-poll",
        _Finished,
    ),
    Row("ending/revoked", "stop using a token that was revoked", "protocol.md#when-to-retry", _Revoked, Act.REVOKED),
)

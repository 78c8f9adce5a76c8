"""Pins: with TLS, a client speaks only to a server whose key it knows. These rows need `--tls`."""

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Row, TaskSituation
from edgefl.conformance.stage import json_answer
from edgefl.values import Assignment, to_json

__all__ = ["ROWS"]

_SECTION = "protocol.md#pins"
_AWAY_SECONDS = 0.3


class _NextKey(TaskSituation):
    """The coordinator changes to its next key, whose pin the client knows."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        if len(self.of(Route.POLL)) > 1:
            return self.send_plan()
        waiting = json_answer(to_json(Assignment(retry_seconds=0.1)))
        return ScriptedAnswer(headers=waiting.headers, body=waiting.body, then=self.change)

    def change(self) -> None:
        self.stage.use_next_key()

    def problems(self) -> list[str]:
        return [] if self.results() else ["did not go on with the next key"]


class _OtherKey(_NextKey):
    """For a while, somebody else answers at the coordinator's address, with another key."""

    def change(self) -> None:
        self.stage.impersonate(_AWAY_SECONDS)

    def problems(self) -> list[str]:
        told = [one for one in self.exchanges if one.is_elsewhere]
        found = ["sent a request to a server with another key"] if told else []
        return found if self.results() else [*found, "did not come back to the coordinator"]


ROWS = (
    Row("pairing/other-key", "send nothing to a server whose key is not pinned", _SECTION, _OtherKey, needs_tls=True),
    Row("pairing/next-key", "go on when the coordinator changes to its next key", _SECTION, _NextKey, needs_tls=True),
)

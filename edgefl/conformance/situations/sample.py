"""What a sample is: a client may ask, and checks its own data before it joins."""

from dataclasses import replace

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Act, Ending, Row, Situation
from edgefl.conformance.stage import SAMPLE, json_answer
from edgefl.values import to_json

__all__ = ["ROWS"]

_SECTION = "protocol.md#get-v1sample-what-a-sample-is"


class _Asked(Situation):
    """Whether the client asks at all."""

    def is_asked(self) -> bool:
        return bool(self.of(Route.SAMPLE))

    def problems(self) -> list[str]:
        enrolled = [one.arrived for one in self.of(Route.ENROL) if one.status == 201]
        late = [one for one in self.of(Route.SAMPLE)[:1] if enrolled and one.arrived > enrolled[0]]
        return ["asked only after it had enrolled"] if late else []

    def did(self) -> str:
        return "asked before it enrolled"


class _Mismatch(Ending):
    """The federation trains on other samples than the client has."""

    begins_at_once = True
    waits_for = Route.SAMPLE
    quiet_times = 4.0

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.route is not Route.SAMPLE:
            return None
        return json_answer(to_json(replace(SAMPLE, shape=(3, 32, 32), layout="CHW")))

    def is_asked(self) -> bool:
        return bool(self.of(Route.SAMPLE))

    def problems(self) -> list[str]:
        return ["enrolled nevertheless"] if self.is_asked() and self.of(Route.ENROL) else []

    def did(self) -> str:
        return "did not enrol"


ROWS = (
    Row("sample/asked", "ask what a sample is before it enrols", _SECTION, _Asked, is_optional=True),
    Row("sample/mismatch", "not join with other data", _SECTION, _Mismatch, Act.MISMATCH, is_optional=True),
)

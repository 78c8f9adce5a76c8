"""Enrolment: what a client says about itself, and what it does with its key and its token."""

import contextlib

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Act, Ending, Row, Situation
from edgefl.conformance.stage import problem
from edgefl.errors import EdgeFLError
from edgefl.planning import check_plausible
from edgefl.values import Capabilities, Enrolment, loads

__all__ = ["ROWS"]

_SECTION = "protocol.md#post-v1devices-enrol"
_RULES = ("sgd", "fine_tune", "masked_noise")
_CODECS = ("dense", "bits")
_WITH_TOKEN = (
    Route.POLL,
    Route.ARTIFACT,
    Route.RESULT,
    Route.REFUSAL,
    Route.PROFILE,
    Route.CAPABILITIES,
    Route.SAMPLES,
)


class _Body(Situation):
    """Every enrolment is read as strictly as a coordinator reads it."""

    def problems(self) -> list[str]:
        found = [] if self.of(Route.ENROL) else ["did not enrol"]
        for exchange in self.of(Route.ENROL):
            if not exchange.headers.get("content-type", "").startswith("application/json"):
                found.append(f"sent it as {exchange.headers.get('content-type')!r}")
            try:
                check_plausible(loads(Enrolment, exchange.content or b"").profile, path=("profile",))
            except EdgeFLError as error:
                found.append(f"the enrolment is not valid: {error.problem}")
        return sorted(set(found))

    def did(self) -> str:
        said = self.of(Route.ENROL)[0].content or b""
        return f"enrolled as {loads(Enrolment, said).software!r}"


class _Capabilities(Situation):
    """What the client can run is part of its enrolment, and enough for the rules that every client has."""

    def problems(self) -> list[str]:
        said = self._said()
        if said is None:
            return ["did not say what it can run"]
        found = [f"lacks the rule {rule!r}" for rule in _RULES if rule not in said.rules]
        found += [f"lacks the codec {codec!r}" for codec in _CODECS if codec not in said.codecs]
        return found if said.engines else [*found, "names no engine"]

    def did(self) -> str:
        said = self._said()
        return "" if said is None else f"{said.client.name} {said.client.version} on {said.platform}"

    def _said(self) -> Capabilities | None:
        for exchange in self.of(Route.ENROL):
            with contextlib.suppress(EdgeFLError):
                return loads(Enrolment, exchange.content or b"").capabilities
        return None


class _LostAnswer(Situation):
    """The first answer breaks off in the middle."""

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.route is not Route.ENROL or exchange is not self.of(Route.ENROL)[0]:
            return None
        whole = self.stage.answer(exchange)
        return ScriptedAnswer(status=whole.status, headers=whole.headers, body=whole.body, cut_after=20)

    def problems(self) -> list[str]:
        asked = [self._id(exchange) for exchange in self.of(Route.ENROL)]
        if len(asked) < 2:
            return ["did not enrol again"]
        return ["enrolled again with another enrolment_id"] if len(set(asked)) > 1 else []

    def _id(self, exchange: Exchange) -> str:
        try:
            return loads(Enrolment, exchange.content or b"").enrolment_id
        except EdgeFLError:
            return ""

    def did(self) -> str:
        return f"enrolled {len(self.of(Route.ENROL))} times with one enrolment_id"


class _Key(Situation):
    """The key is seen in no other request, and nowhere else in one."""

    def problems(self) -> list[str]:
        key, found = self.stage.key, set()
        enrolled = [one.arrived for one in self.of(Route.ENROL) if one.status == 201]
        for one in self.exchanges:
            before = not enrolled or one.arrived <= max(enrolled)
            if one.secret == key and not (before and one.route in (Route.ENROL, Route.SAMPLE, Route.SIDE)):
                found.add(f"sent the key again, with {one.method} {one.path}")
            if key in one.path or key in "".join(one.query.values()) or key.encode() in (one.content or b""):
                found.add(f"the key is in the address or the body of {one.method} {one.path}")
        return sorted(found)

    def did(self) -> str:
        return "sent it with its enrolment alone"


class _Token(Situation):
    """Everything after the enrolment carries the token, and the newest one."""

    def problems(self) -> list[str]:
        others = [one for one in self.of(*_WITH_TOKEN) if one.secret != self.stage.token]
        return sorted({f"{one.method} {one.path} does not have the device's token" for one in others})[:3]

    def is_asked(self) -> bool:
        return bool(self.of(*_WITH_TOKEN))

    def did(self) -> str:
        return f"sent it with {len(self.of(*_WITH_TOKEN))} requests"


class _UnknownFields(Situation):
    """The answer has fields that no client knows yet."""

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.route is not Route.ENROL:
            return None
        whole = self.stage.answer(exchange)
        body = whole.body[:-1] + b', "greeting": "hello", "later": {"more": [1, null]}}'
        return ScriptedAnswer(status=whole.status, headers=whole.headers, body=body)

    def problems(self) -> list[str]:
        return [] if self.of(Route.POLL) else ["did not poll after it had enrolled"]


class _OlderCoordinator(Situation):
    """The coordinator does not know a field that was added to enrolments, and names it."""

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.route is not Route.ENROL or not self._says_samples(exchange):
            return None
        return problem(422, "field 'samples' is not a known field", "Known fields: enrolment_id, profile, software.")

    def problems(self) -> list[str]:
        return [] if self.of(Route.POLL) or not self.is_asked() else ["did not enrol without its number of samples"]

    def is_asked(self) -> bool:
        return any(self._says_samples(exchange) for exchange in self.of(Route.ENROL))

    def did(self) -> str:
        return "enrolled without its number of samples"

    def _says_samples(self, exchange: Exchange) -> bool:
        with contextlib.suppress(EdgeFLError):
            return loads(Enrolment, exchange.content or b"").samples is not None
        return False


class _Rejected(Ending):
    """The federation has ended, so nobody can join it."""

    begins_at_once = True
    waits_for = Route.ENROL

    def answer(self, exchange: Exchange) -> ScriptedAnswer | None:
        if exchange.route is not Route.ENROL:
            return None
        return problem(409, "the federation has ended", "Ask its operator for a key of another one.")

    def problems(self) -> list[str]:
        asked = self.of(Route.ENROL)
        if not asked:
            return ["did not enrol"]
        again = len(asked) - len({one.content for one in asked})
        return [f"sent the same enrolment {again} more times"] if again else []


ROWS = (
    Row("enrolment/body", "enrol with a valid document, and a profile that can be true", _SECTION, _Body),
    Row("enrolment/capabilities", "say what it can run: sgd, fine_tune, masked_noise", _SECTION, _Capabilities),
    Row("enrolment/lost-answer", "enrol again with the same enrolment_id", _SECTION, _LostAnswer),
    Row("enrolment/key", "send the key only to enrol, never afterwards", "protocol.md#callers", _Key),
    Row("enrolment/token", "send the token with every other request", "protocol.md#callers", _Token),
    Row(
        "enrolment/unknown-fields",
        "ignore unknown fields of the answer",
        "stability.md#promised",
        _UnknownFields,
        Act.REVOKED,
    ),
    Row(
        "enrolment/older-coordinator",
        "enrol without `samples` after a 422 that names it",
        _SECTION,
        _OlderCoordinator,
        Act.OLDER,
    ),
    Row("enrolment/rejected", "give up after a 409", _SECTION, _Rejected, Act.NAME_TAKEN),
)

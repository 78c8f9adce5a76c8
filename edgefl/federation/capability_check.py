"""Leaves out devices whose software cannot do what was planned for them, and plans again for the others.

A strategy plans as if every device could run everything. What a client lacks (a rule, a codec, a format, a batch size)
is found here, before anything is sent: the one place, shared by the coordinator and the simulator. The others are
planned for anew, because group planners share out the layers of a model among the devices that remain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.errors import SchemaError
from edgefl.federation.left_out import LONGEST_REASON, RoundPlan, plan_sound
from edgefl.local_rules import rule_of
from edgefl.strategies import Participant, PlannedTask
from edgefl.values import Capabilities, GraphFormat, RuleSettings

__all__ = ["lacks_rule", "plan_capable"]


def plan_capable(
    plan: Callable[[Sequence[Participant]], Mapping[str, PlannedTask]], participants: Sequence[Participant]
) -> RoundPlan:
    """Plan for all devices together, then again without those that lack what their task needs, until none does."""
    able, left_out, needs = list(participants), dict[str, str](), _Needs()
    while able:
        made = plan_sound(plan, able)
        known = {one.device_id: one.capabilities for one in able}
        lacks = {
            device: reason
            for device, planned in made.tasks.items()
            if (reason := needs.lacking(known[device], planned)) is not None
        }
        left_out |= dict(made.left_out) | lacks
        if not lacks:
            return RoundPlan(made.tasks, left_out)
        able = [one for one in able if one.device_id not in left_out]
    return RoundPlan({}, left_out)


def lacks_rule(capabilities: Capabilities | None, rules: Sequence[str]) -> str | None:
    """Return why a device has none of some rules; None if it has one, or said nothing about its software."""
    if capabilities is None or not rules or set(rules) & set(capabilities.rules):
        return None
    return _reason(capabilities, f"lacks the rule {rules[0]!r}")


@dataclass(slots=True)
class _Needs:
    """What tasks need; equal ones are looked up once."""

    _codecs: dict[tuple[RuleSettings, str], frozenset[str]] = field(default_factory=dict)

    def lacking(self, capabilities: Capabilities | None, planned: PlannedTask) -> str | None:
        """Return why a device cannot do a task; None if it can, or said nothing about its software."""
        if capabilities is None:
            return None
        if planned.rule.name not in capabilities.rules:
            return _reason(capabilities, f"lacks the rule {planned.rule.name!r}")
        if all(engine.format is not GraphFormat.ONNX for engine in capabilities.engines):
            return _reason(capabilities, f"has no engine for graphs of the format {GraphFormat.ONNX.value!r}")
        codecs = sorted(self._codecs_of(planned) - set(capabilities.codecs))
        if codecs:
            return _reason(capabilities, f"lacks the codec {codecs[0]!r}, which updates of this federation need")
        sizes = capabilities.batch_sizes
        if sizes is not None and planned.work.batch_size not in sizes:
            can = ", ".join(map(str, sizes[:8])) or "none"
            return _reason(capabilities, f"cannot run batches of {planned.work.batch_size} samples, only {can}")
        return None

    def _codecs_of(self, planned: PlannedTask) -> frozenset[str]:
        key = (planned.rule, planned.mask.digest)
        if key not in self._codecs:
            try:
                sent = rule_of(planned.rule).sends(planned.mask)
            except SchemaError:  # a rule that only some other client has
                sent = {}
            self._codecs[key] = frozenset(form.codec or "dense" for form in sent.values())
        return self._codecs[key]


def _reason(capabilities: Capabilities, what: str) -> str:
    client = capabilities.client
    return f"its client {client.name[:80]} {client.version[:40]} {what}"[:LONGEST_REASON]

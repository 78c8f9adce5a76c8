"""Leaves out devices whose software cannot do what was planned for them, and plans again for the others.

A strategy plans as if every device could run everything. What a client lacks (a rule, a codec, a format, a batch size)
is found here, before anything is sent: the one place, shared by the coordinator and the simulator. The others are
planned for anew, because group planners share out the layers of a model among the devices that remain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.errors import SchemaError
from edgefl.federation.left_out import LONGEST_REASON, RoundPlan, plan_sound
from edgefl.local_rules import rule_needs, rule_of
from edgefl.strategies import Participant, PlannedTask
from edgefl.values import Capabilities, ClientSoftware, EngineSoftware, GraphFormat, RuleSettings

__all__ = ["UNSAID", "Needs", "plan_capable"]

UNSAID = Capabilities(
    client=ClientSoftware(name="edgefl-python", version="of an older version"),
    platform="not known",
    engines=(EngineSoftware(name="onnxruntime", version="not known", format=GraphFormat.ONNX),),
    rules=(
        "sgd",
        "fine_tune",
        "channel_pruning",
        "prune_regrow",
        "channel_regrow",
        "probabilistic_masks",
        "masked_noise",
        "pruned_noise",
        "compressed_sgd",
        "sampled_masks",
        "ordered_dropout",
        "local_training",
        "ditto",
    ),
    codecs=("dense", "slice", "sparse", "bits", "counts"),
)
"""What a device can run that said nothing: it has EdgeFL's own client from before capabilities, and what was added to
the contract since is unknown to it."""


def plan_capable(
    plan: Callable[[Sequence[Participant]], Mapping[str, PlannedTask]],
    participants: Sequence[Participant],
    needs: "Needs | None" = None,
) -> RoundPlan:
    """Plan for all devices together, then again without those that lack what their task needs, until none does."""
    able, left_out, needs = list(participants), dict[str, str](), needs or Needs()
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


@dataclass(frozen=True, slots=True)
class _Need:
    """What a task needs of a device's software."""

    rules: tuple[str, ...]
    """Its rule, and the settings of it that older clients lack, as `RULE.SETTING`."""
    codecs: frozenset[str]
    batch_size: int

    def lacking(self, capabilities: Capabilities) -> str | None:
        """Return what a device lacks, or None."""
        rule, *settings = self.rules
        if rule not in capabilities.rules:
            return _reason(capabilities, f"lacks the rule {rule!r}")
        lacked = next((name for name in settings if name not in capabilities.rules), None)
        if lacked is not None:
            setting = lacked.removeprefix(f"{rule}.")
            return _reason(capabilities, f"lacks the setting {setting!r} of the rule {rule!r}")
        if all(engine.format is not GraphFormat.ONNX for engine in capabilities.engines):
            return _reason(capabilities, f"has no engine for graphs of the format {GraphFormat.ONNX.value!r}")
        codecs = sorted(self.codecs - set(capabilities.codecs))
        if codecs:
            return _reason(capabilities, f"lacks the codec {codecs[0]!r}, which updates of this federation need")
        sizes = capabilities.batch_sizes
        if sizes is not None and self.batch_size not in sizes:
            can = ", ".join(map(str, sizes[:8])) or "none"
            return _reason(capabilities, f"cannot run batches of {self.batch_size} samples, only {can}")
        return None


@dataclass(slots=True)
class Needs:
    """What the tasks of a round need, as far as they were planned; equal ones are looked up once."""

    _codecs: dict[tuple[RuleSettings, str], frozenset[str]] = field(default_factory=dict)
    _seen: dict[_Need, None] = field(default_factory=dict)

    def lacking(self, capabilities: Capabilities | None, planned: PlannedTask) -> str | None:
        """Return why a device cannot do a task; None if it can, or said nothing about its software."""
        if capabilities is None:
            return None
        need = _Need(rule_needs(planned.rule), self._codecs_of(planned), planned.work.batch_size)
        self._seen[need] = None
        return need.lacking(capabilities)

    def lacking_for_all(self, capabilities: Capabilities | None) -> str | None:
        """Return why a device can do no task of those planned so far; None if it can do one, or there are none."""
        if capabilities is None:
            return None
        reasons = [need.lacking(capabilities) for need in self._seen]
        return reasons[0] if reasons and None not in reasons else None

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

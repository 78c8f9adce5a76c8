"""Leaves out devices whose software cannot do what was planned for them, and plans again for the others.

A strategy plans as if every device could run everything. What a client lacks (a rule, a codec, a format, a batch size)
is found here, before anything is sent: the one place, shared by the coordinator and the simulator. The others are
planned for anew, because group planners share out the layers of a model among the devices that remain. Devices whose
engine runs compiled programs are planned on rungs (`program_planning.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgefl.errors import SchemaError
from edgefl.federation.left_out import LONGEST_REASON, RoundPlan, plan_sound
from edgefl.federation.program_planning import off_rungs, plan_on_rungs
from edgefl.federation.programs import ProgramCatalogue, program_engine
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
    *,
    programs: ProgramCatalogue | None = None,
    why: Callable[[Participant], str] | None = None,
) -> RoundPlan:
    """Plan for all devices together, then again without those that lack what their task needs, until none does.

    `programs` are those of the federation; without them no device gets a program. `why` tells the reason of a device
    that the strategy has no task for; without it there is none.
    """
    checked = needs or Needs(has_programs=programs is not None)

    def capable(some: Sequence[Participant]) -> RoundPlan:
        return _plan_capable(plan, some, checked)

    made = capable(participants) if programs is None else plan_on_rungs(capable, participants, programs)
    if why is None:
        return made
    silent = [one for one in participants if one.device_id not in made.tasks and one.device_id not in made.left_out]
    reasons = {
        one.device_id: checked.lacking_for_all(one.capabilities)
        or why(one if programs is None else programs.on_rungs(one, whole_ladder=True))
        for one in silent
    }
    return replace(made, left_out={**made.left_out, **reasons})


def _plan_capable(
    plan: Callable[[Sequence[Participant]], Mapping[str, PlannedTask]],
    participants: Sequence[Participant],
    needs: "Needs",
) -> RoundPlan:
    able, left_out = list(participants), dict[str, str]()
    while able:
        made = plan_sound(plan, able)
        known = {one.device_id: one for one in able}
        lacks = {
            device: reason
            for device, planned in made.tasks.items()
            if (reason := needs.lacking(known[device].capabilities, planned) or off_rungs(known[device], planned))
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

    def lacking(self, capabilities: Capabilities, *, has_programs: bool) -> str | None:
        """Return what a device lacks, or None; with programs, an engine that runs them will do."""
        rule, *settings = self.rules
        if rule not in capabilities.rules:
            return _reason(capabilities, f"lacks the rule {rule!r}")
        lacked = next((name for name in settings if name not in capabilities.rules), None)
        if lacked is not None:
            setting = lacked.removeprefix(f"{rule}.")
            return _reason(capabilities, f"lacks the setting {setting!r} of the rule {rule!r}")
        on_rungs = has_programs and program_engine(capabilities) is not None
        if not on_rungs and all(engine.format is not GraphFormat.ONNX for engine in capabilities.engines):
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

    has_programs: bool = False
    """Whether the federation has a ladder of programs for engines that run them."""
    _codecs: dict[tuple[RuleSettings, str], frozenset[str]] = field(default_factory=dict)
    _seen: dict[_Need, None] = field(default_factory=dict)

    def lacking(self, capabilities: Capabilities | None, planned: PlannedTask) -> str | None:
        """Return why a device cannot do a task; None if it can, or said nothing about its software."""
        if capabilities is None:
            return None
        need = _Need(rule_needs(planned.rule), self._codecs_of(planned), planned.work.batch_size)
        self._seen[need] = None
        return need.lacking(capabilities, has_programs=self.has_programs)

    def lacking_for_all(self, capabilities: Capabilities | None) -> str | None:
        """Return why a device can do no task of those planned so far; None if it can do one, or there are none."""
        if capabilities is None:
            return None
        reasons = [need.lacking(capabilities, has_programs=self.has_programs) for need in self._seen]
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

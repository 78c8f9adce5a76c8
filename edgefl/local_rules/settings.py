"""Every local rule by name, and how a plan's settings become a rule.

The device's trainer calls `rule_of`; strategies call it too, to refuse a bad plan before it is sent. A rule's settings
are the fields of its dataclass. The fields of a dataclass within it, such as `descent`, are settings of the rule by
their own names, because a plan holds plain scalars only: {"learning_rate": 0.1, "momentum": 0.9, "codec": "sparse"}.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from edgefl.errors import SchemaError
from edgefl.local_rules.channel_pruning import ChannelPruning
from edgefl.local_rules.compressed_sgd import CompressedSgd
from edgefl.local_rules.fine_tune import FineTune
from edgefl.local_rules.masked_noise import MaskedNoise
from edgefl.local_rules.probabilistic_masks import ProbabilisticMasks
from edgefl.local_rules.prune_regrow import PruneRegrow
from edgefl.local_rules.rule import LocalRule
from edgefl.local_rules.sgd import Sgd
from edgefl.values import FieldError, RuleSettings, Setting, Shape
from edgefl.values.records import Record, fields_of
from edgefl.values.unknown_fields import unknown_field

__all__ = ["RULES", "rule_of", "settings_of"]

_RULES: tuple[type[LocalRule], ...] = (
    Sgd,
    FineTune,
    ChannelPruning,
    PruneRegrow,
    ProbabilisticMasks,
    MaskedNoise,
    CompressedSgd,
)
RULES: Mapping[str, type[LocalRule]] = {rule.name: rule for rule in _RULES}
"""The rules that a plan may name."""


def rule_of(chosen: RuleSettings) -> LocalRule:
    """Make the rule that a plan asks for; a `SchemaError` says what is wrong with its name or settings."""
    rule = RULES.get(chosen.name)
    if rule is None:
        near = difflib.get_close_matches(chosen.name, RULES, n=1)
        advice = f"Did you mean {near[0]!r}? " if near else ""
        raise SchemaError(f"there is no local rule {chosen.name!r}", fix=f"{advice}Known rules: {', '.join(RULES)}.")
    try:
        _check_known(chosen.settings, settings_of(rule))
        return rule(**_values(rule, chosen.settings))
    except FieldError as error:
        raise error.under("settings") from None


def settings_of(rule: type) -> dict[str, Shape]:
    """Return what each setting of a rule may be, by name."""
    found: dict[str, Shape] = {}
    for name, field in fields_of(rule).items():
        if isinstance(field.shape, Record):
            found |= settings_of(field.shape.cls)
        else:
            found[name] = field.shape
    return found


def _check_known(given: Mapping[str, Setting], known: Mapping[str, Shape]) -> None:
    for name, value in given.items():
        if name not in known:
            raise unknown_field(name, value, known)


def _values(cls: type, given: Mapping[str, Setting]) -> dict[str, Any]:
    """Return those fields of a dataclass that the settings say something about."""
    values: dict[str, Any] = {}
    defaults = {field.name: field for field in dataclasses.fields(cls)}
    for name, field in fields_of(cls).items():
        if isinstance(field.shape, Record):
            inner = _values(field.shape.cls, given)
            factory = defaults[name].default_factory
            # What a rule changes of the inner defaults stays, unless the settings say otherwise.
            base = field.shape.cls() if factory is dataclasses.MISSING else factory()
            values[name] = dataclasses.replace(base, **inner)
        elif name in given:
            try:
                values[name] = field.shape.read(given[name])
            except FieldError as error:
                raise error.under(name) from None
    return values

"""From a plan's settings to a rule, and what a bad plan is told."""

import json
from typing import Any

import pytest

from edgefl.errors import SchemaError
from edgefl.local_rules import RULES, CompressedSgd, Descent, FineTune, MaskedNoise, Sgd, rule_of
from edgefl.local_rules.compressed_sgd import Compression
from edgefl.local_rules.descent import Schedule
from edgefl.local_rules.feature_sums import ForwardRule
from edgefl.local_rules.fine_tune import HeadTreatment
from edgefl.local_rules.masked_noise import MaskKind
from edgefl.local_rules.sgd import Codec
from edgefl.values import RuleSettings, settings_of


def made(name: str, **settings: Any) -> Any:
    """A rule from settings that went through JSON."""
    return rule_of(RuleSettings(name=name, settings=json.loads(json.dumps(settings))))


def test_every_rule_is_made_without_settings_and_knows_its_name() -> None:
    for name, rule in RULES.items():
        assert isinstance(made(name), rule)
        assert rule.name == name


def test_settings_reach_the_rule_and_the_descent_within_it() -> None:
    rule = made("sgd", learning_rate=0.03, momentum=0.9, schedule="cosine", codec="sparse")
    assert rule == Sgd(descent=Descent(learning_rate=0.03, momentum=0.9, schedule=Schedule.COSINE), codec=Codec.SPARSE)
    assert made("masked_noise", masks="signed", bound=0.001) == MaskedNoise(masks=MaskKind.SIGNED, bound=0.001)
    assert made("compressed_sgd", compressor="top_k", kept=0.1) == CompressedSgd(compressor=Compression.TOP_K, kept=0.1)
    assert made("fine_tune", head="head_only") == FineTune(head=HeadTreatment.HEAD_ONLY)


def test_what_a_rule_changes_of_the_inner_defaults_stays() -> None:
    assert made("prune_regrow").descent.weight_decay == 5e-4
    assert made("prune_regrow", learning_rate=0.05).descent == Descent(learning_rate=0.05, weight_decay=5e-4)
    assert made("prune_regrow", weight_decay=0).descent.weight_decay == 0


def test_the_five_papers_and_the_baselines_have_their_rules() -> None:
    named = {"sgd", "fine_tune", "channel_pruning", "prune_regrow", "probabilistic_masks", "masked_noise"}
    named |= {"compressed_sgd", "local_training", "ditto", "shared_layers", "maml", "weight_pruning"}
    named |= {"base_networks", "magnitude_pruning", "feature_sums", "head_gradients", "class_prior"}
    assert set(RULES) == named | {"channel_regrow", "pruned_noise", "sampled_masks", "ordered_dropout"}


def test_an_integer_is_taken_for_a_number() -> None:
    rule = made("sgd", learning_rate=1, momentum=0, clip_norm=2)
    assert rule.descent == Descent(learning_rate=1.0, clip_norm=2.0)
    assert isinstance(rule.descent.learning_rate, float)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("sdg", {}, r"unknown local rule 'sdg'\. Did you mean 'sgd'\?"),
        ("quite_another", {}, "unknown local rule 'quite_another'. Known: sgd"),
        ("sgd", {"learning_rat": 0.1}, "settings.learning_rat' is not a known field. Did you mean 'learning_rate'"),
        ("sgd", {"masks": "binary"}, "settings.masks' is not a known field"),
        ("sgd", {"learning_rate": "fast"}, "settings.learning_rate' must be a number above 0, got the string 'fast'"),
        ("sgd", {"learning_rate": 0}, "settings.learning_rate' must be a number above 0"),
        ("sgd", {"learning_rate": True}, "settings.learning_rate' .* not a number"),
        ("sgd", {"momentum": 1.5}, "settings.momentum' must be a fraction between 0 and 1"),
        ("sgd", {"momentum": -0.5}, "settings.momentum' .* is below 0"),
        ("sgd", {"nesterov": 1}, "settings.nesterov' must be true or false, got 1"),
        (
            "sgd",
            {"codec": "sparce"},
            "settings.codec' must be one of 'dense', 'sparse', got 'sparce'. Did you mean 'sparse'",
        ),
        ("sgd", {"decay_at": "never"}, "settings.decay_at' must be a list of fractions"),
        ("sgd", {"descent": 1}, "settings.descent' is not a known field"),
        ("masked_noise", {"bound": -0.01}, "settings.bound' must be a number above 0"),
        ("compressed_sgd", {"kept": 0}, "settings.kept' must be a share above 0"),
        ("fine_tune", {"head": "off"}, "settings.head' must be one of"),
    ],
)
def test_a_bad_plan_is_told_what_is_wrong(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        made(name, **settings)


def test_no_rule_has_two_settings_of_one_name() -> None:
    for rule in RULES.values():
        known = settings_of(rule)
        assert ("learning_rate" in known) != issubclass(rule, ForwardRule)
        assert "descent" not in known
    own = {"codec", "sensitivity"} | set(settings_of(Descent))
    assert set(settings_of(Sgd)) == own

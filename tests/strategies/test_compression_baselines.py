"""The baselines by name: what each sends, its defaults, and that their means go where the updates go."""

from typing import Any

import numpy as np
import pytest

from edgefl.errors import SchemaError
from edgefl.local_rules import CompressedSgd, Descent, rule_of
from edgefl.local_rules.compression import SignScale
from edgefl.masks import full_mask, gather, leading_channels
from edgefl.strategies import FedAvg, strategy_of
from edgefl.strategies.compression_baselines import SignSGD
from edgefl.values import settings_from
from examples.networks import cnn4
from tests.strategies.rounds import ROUND_CONTEXT, random_weights
from tests.strategies.wired import order_of, wired

GRAPH = cnn4()
BASE = random_weights(GRAPH, 0, 0.1)
SENT = {
    "signsgd": "stochastic_sign",
    "topk": "top_k",
    "terngrad": "terngrad",
    "drive": "drive",
    "eden": "eden",
    "random_subsampling": "random_subsample",
}


def rule_by(name: str, **settings: Any) -> CompressedSgd:
    strategy: Any = strategy_of(name, settings)
    rule = rule_of(strategy.uplink.rule)
    assert isinstance(rule, CompressedSgd)
    return rule


@pytest.mark.parametrize("name", SENT)
def test_each_is_federated_averaging_with_one_uplink(name: str) -> None:
    strategy = strategy_of(name, {})
    assert settings_from(strategy)["sent"] == SENT[name]
    rule = rule_by(name)
    assert rule.compressor == SENT[name]
    assert rule.descent == Descent(learning_rate=0.03)
    share = 1 / 32 if name == "random_subsampling" else 0.03
    assert (rule.kept, rule.terngrad_clip, rule.sign_scale, rule.unbiased) == (share, 2.5, SignScale.MAXIMUM, True)
    same = {"sent": SENT[name], "sent_share": share, "learning_rate": 0.03}
    assert rule_of(FedAvg().uplink.rule) != rule
    assert rule_by("fedavg", **same) == rule


def test_settings_reach_the_rule() -> None:
    assert rule_by("topk", sent_share=0.1, learning_rate=0.3).kept == 0.1
    assert rule_by("random_subsampling", subsample_unbiased=False).unbiased is False
    assert rule_by("random_subsampling", subsample_unbiased=False).kept == 1 / 32
    assert rule_by("signsgd", sign_scale="l2").sign_scale is SignScale.L2
    assert rule_by("terngrad", terngrad_clip=0).terngrad_clip == 0
    assert rule_by("eden", learning_rate=0.3, momentum=0.9).descent == Descent(learning_rate=0.3, momentum=0.9)


@pytest.mark.parametrize("name", SENT)
def test_another_uplink_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(SchemaError, match=f"'settings.sent' is 'values', but {name} is federated averaging that sends"):
        strategy_of(name, {"sent": "values"})
    assert strategy_of(name, {"sent": SENT[name]}) == strategy_of(name, {})


@pytest.mark.parametrize("name", SENT)
def test_the_mean_of_many_devices_goes_where_their_updates_go(name: str) -> None:
    """All devices learn the same; what each loses is another draw, so the mean of many is nearer than one."""
    strategy = strategy_of(name, {"learning_rate": 0.1})
    model = strategy.begin(GRAPH, BASE)
    mask = leading_channels(GRAPH, 0.25)
    rule = rule_by(name, learning_rate=0.1)
    truth = np.zeros(mask.shapes["conv3.weight"])
    made, errors = [], []
    for seed in range(24):
        found = wired(order_of(mask, strategy.uplink.rule), model.weights, seed=seed)  # type: ignore[attr-defined]
        strategy.check(found.client_update)
        made.append(found.client_update)
        truth = found.update.weights["conv3.weight"] - found.part.weights["conv3.weight"]
        sent = rule.expand(mask, found.client_update.tensors, seed)["conv3.weight"]
        errors.append(float(np.linalg.norm(sent - truth)))
    after = strategy.combine(model, made, ROUND_CONTEXT)
    moved = gather(mask, after.weights)["conv3.weight"] - gather(mask, BASE)["conv3.weight"]
    assert float((moved * truth).sum()) > 0
    if name != "topk":  # the largest entries are the same ones for everybody
        assert np.linalg.norm(moved - truth) < 0.7 * np.mean(errors)


@pytest.mark.parametrize("name", SENT)
def test_parts_and_layers_are_chosen_as_in_federated_averaging(name: str) -> None:
    strategy: Any = strategy_of(name, {"frozen": "head", "width": "full"})
    plain: Any = strategy_of("fedavg", {"frozen": "head", "width": "full"})
    assert (strategy.widths, strategy.freezing) == (plain.widths, plain.freezing)


def test_a_strategy_knows_its_own_name() -> None:
    assert SignSGD.name == "signsgd"
    assert SignSGD().begin(GRAPH, BASE).weights is BASE
    assert full_mask(GRAPH).cost.parameters == 390_880

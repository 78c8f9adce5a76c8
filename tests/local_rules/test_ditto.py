"""Ditto on a device: two models, against a slow transcription of its Algorithm 1."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.local_rules import Batch, Descent, DittoRule, Sgd, StepResult, TrainingInput, rule_of
from edgefl.local_rules.rule import trained_parameters
from edgefl.masks import Mask, Weights, full_mask, gather
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.values import RuleSettings, settings_of
from edgefl.wire import Dense
from tests.local_rules.quadratic import Quadratic, assert_resumes, nth_batch, part_of, random_weights, train
from tests.random_models import masked_models


def slow_own(rule: DittoRule, part: TrainingInput, own: Weights, steps: int) -> dict[str, Any]:
    """v of Algorithm 1, entry by entry in double precision; what the mask does not hold or train stays."""
    v = {name: array.astype(np.float64) for name, array in own.items()}
    rate = rule.own_rate or rule.descent.learning_rate
    for number in range(steps):
        at = {name: array.astype(np.float32) for name, array in v.items()}
        result = Quadratic(part.mask.graph)(at, nth_batch(number))
        for name in trained_parameters(part.mask):
            for place in np.ndindex(v[name].shape):
                if name not in part.mask.held or part.mask.held[name][place]:
                    pulled = rule.pull * (v[name][place] - float(part.weights[name][place]))
                    v[name][place] -= rate * (float(result.gradients[name][place]) + pulled)
        for name in part.mask.trained_tensors:
            if part.mask.graph.tensor[name].role is TensorRole.STATISTIC:
                held = part.mask.held.get(name, np.True_)
                v[name] = np.where(held, result.statistics[name], v[name])
    return v


@settings(max_examples=30)
@given(masked_models(), st.sampled_from([0.0, 0.3, 2.0]), st.sampled_from([None, 0.02]))
def test_both_models_follow_algorithm_1(model: tuple[ModelGraph, Mask], pull: float, own_rate: float | None) -> None:
    graph, mask = model
    own = gather(mask, random_weights(graph, 7))
    part = part_of(mask, 1, own=lambda: own)
    rule = DittoRule(descent=Descent(learning_rate=0.05), pull=pull, own_rate=own_rate)
    _, update = train(rule, part, Quadratic(graph), 3)
    for name, array in slow_own(rule, part, own, 3).items():
        assert np.allclose(update.weights[name], array, rtol=1e-4, atol=1e-5), name
    _, plain = train(Sgd(descent=rule.descent), part, Quadratic(graph), 3)
    assert update.tensors.keys() == plain.tensors.keys()
    for name, payload in update.tensors.items():
        other = plain.tensors[name]
        assert isinstance(payload, Dense)
        assert isinstance(other, Dense)
        assert np.array_equal(payload.array, other.array)


def test_in_the_first_round_the_own_model_begins_as_the_global_one(small: ModelGraph) -> None:
    part = part_of(full_mask(small), 1)
    rule = DittoRule(pull=0.7)
    _, update = train(rule, part, Quadratic(small), 2)
    for name, array in slow_own(rule, part, part.weights, 2).items():
        assert np.allclose(update.weights[name], array, rtol=1e-4, atol=1e-5), name


def test_momentum_and_a_proximal_term_are_each_models_own(small: ModelGraph) -> None:
    """Without a pull, from the same start, both models are the same; momentum does not go from one to the other."""
    part = part_of(full_mask(small), 1)
    descent = Descent(learning_rate=0.05, momentum=0.9, weight_decay=1e-3)
    _, update = train(DittoRule(descent=descent, pull=0.0), part, Quadratic(small), 4)
    _, plain = train(Sgd(descent=descent), part, Quadratic(small), 4)
    assert all(np.array_equal(array, plain.weights[name]) for name, array in update.weights.items())
    pulled = DittoRule(descent=Descent(learning_rate=0.05, proximal=0.5), pull=0.0)
    _, update = train(pulled, part, Quadratic(small), 4)
    _, plain = train(Sgd(descent=Descent(learning_rate=0.05)), part, Quadratic(small), 4)
    assert all(np.array_equal(array, plain.weights[name]) for name, array in update.weights.items())


def test_a_step_runs_the_engine_twice_and_returns_the_global_loss(small: ModelGraph) -> None:
    own = gather(full_mask(small), random_weights(small, 7))
    part = part_of(full_mask(small), 1, own=lambda: own)
    losses: list[float] = []

    def run(weights: Weights, batch: Batch) -> StepResult:
        result = Quadratic(small)(weights, batch)
        losses.append(result.loss)
        return result

    rule = DittoRule()
    state = rule.begin(part)
    result = rule.step(part, state, nth_batch(0), run)
    assert state.steps == 1
    assert len(losses) == 2
    assert result.loss == losses[1] == Quadratic(small)(part.weights, nth_batch(0)).loss


@settings(max_examples=30)
@given(masked_models(), st.integers(0, 2), st.sampled_from([0.0, 0.9]))
def test_a_round_goes_on_after_a_crash(model: tuple[ModelGraph, Mask], stop: int, momentum: float) -> None:
    own = gather(model[1], random_weights(model[0], 7))
    part = part_of(model[1], 2, steps=3, own=lambda: own)
    rule = DittoRule(descent=Descent(momentum=momentum))
    assert_resumes(rule, part, Quadratic(model[0]), steps=3, stop=stop)


def test_settings_make_the_rule() -> None:
    made = rule_of(RuleSettings(name="ditto", settings={"pull": 0.1, "own_rate": 0.01, "learning_rate": 0.3}))
    assert made == DittoRule(descent=Descent(learning_rate=0.3), pull=0.1, own_rate=0.01)
    assert {"pull", "own_rate", "momentum"} <= settings_of(DittoRule).keys()
    with pytest.raises(Exception, match="0 or more"):
        rule_of(RuleSettings(name="ditto", settings={"pull": -1}))

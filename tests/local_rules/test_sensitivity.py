"""Sensitivities: sums of (weight x gradient)^2 by hand and by slow loops, what is reported of them, and by whom."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import WireFormatError
from edgefl.local_rules import Batch, Descent, MaskedNoise, Sgd, StepResult, TrainingInput, trained_parameters
from edgefl.local_rules.sensitivity import LARGEST_SUM, channel_sensitivities, check_reported, report_forms
from edgefl.local_rules.submodel_channels import channel_positions, prunable_groups
from edgefl.masks import Mask, Weights, freeze, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.values import settings_from
from edgefl.wire import Body, BodyKind, Dense, decode, encode
from tests.local_rules.quadratic import Quadratic, assert_resumes, nth_batch, part_of, train
from tests.random_models import masked_models

PLAIN = Descent(learning_rate=0.5)


def two_units() -> ModelGraph:
    """One input, two hidden units, one output, no biases."""
    build = GraphBuilder("two-units", channels=1)
    build.linear("head", build.linear("hidden", build.input, 2, bias=False), 1, bias=False, head=True)
    return build.finish()


def with_gradients(*steps: dict[str, Any]) -> Any:
    """An engine that returns given gradients, step by step."""
    left = iter(steps)

    def run(weights: Weights, batch: Batch) -> StepResult:
        gradients = {name: np.array(values, np.float32) for name, values in next(left).items()}
        return StepResult(1.0, np.ones(1, np.bool_), gradients)

    return run


def reported(update: Any) -> dict[str, Any]:
    return {name: p.array for name, p in update.tensors.items() if name.startswith("sensitivity/")}


def after(run: Any, weights: dict[str, Any], steps: int, rule: Any) -> Any:
    mask = full_mask(two_units())
    part = TrainingInput(mask, {name: np.array(w, np.float32) for name, w in weights.items()}, 1, steps=steps)
    return train(rule, part, run, steps)[1]


def test_two_steps_by_hand() -> None:
    """w is the weight before the step."""
    run = with_gradients(
        {"hidden.weight": [[1], [2]], "head.weight": [[4, 0]]}, {"hidden.weight": [[3], [1]], "head.weight": [[1, 1]]}
    )
    rule = Sgd(descent=PLAIN, sensitivity=True)
    found = reported(after(run, {"hidden.weight": [[2], [3]], "head.weight": [[0.5, 1]]}, 2, rule))
    # hidden: 2 and 3, then 2 - 0.5 * 1 = 1.5 and 3 - 0.5 * 2 = 2. head: 0.5 and 1, then -1.5 and 1.
    hidden = [(2 * 1) ** 2 + (1.5 * 3) ** 2, (3 * 2) ** 2 + (2 * 1) ** 2]
    head = [(0.5 * 4) ** 2 + (-1.5 * 1) ** 2, 0 + (1 * 1) ** 2]
    assert {name: sums.tolist() for name, sums in found.items()} == {
        "sensitivity/0/hidden.weight": hidden,
        "sensitivity/1/head.weight": head,
    }
    mask = full_mask(two_units())
    payloads = {name: Dense(sums) for name, sums in found.items()}
    assert channel_sensitivities(mask, payloads)["hidden"].tolist() == [
        a + b for a, b in zip(hidden, head, strict=True)
    ]


def test_clipping_and_decay_change_the_step_and_not_the_gradient_that_is_counted() -> None:
    gradients = {"hidden.weight": [[30], [40]], "head.weight": [[0, 0]]}
    rule = Sgd(descent=dataclasses.replace(PLAIN, clip_norm=1.0, weight_decay=0.5), sensitivity=True)
    found = reported(after(with_gradients(gradients), {"hidden.weight": [[1], [1]], "head.weight": [[1, 1]]}, 1, rule))
    assert found["sensitivity/0/hidden.weight"].tolist() == [900, 1600]


def test_an_array_without_a_gradient_has_sums_of_zero() -> None:
    run = with_gradients({"hidden.weight": [[1], [1]]})
    rule = Sgd(descent=PLAIN, sensitivity=True)
    found = reported(after(run, {"hidden.weight": [[1], [2]], "head.weight": [[1, 1]]}, 1, rule))
    assert found["sensitivity/1/head.weight"].tolist() == [0, 0]
    assert found["sensitivity/0/hidden.weight"].tolist() == [1, 4]


def test_a_sum_beyond_all_measure_is_the_largest_and_still_a_valid_report() -> None:
    huge = {"hidden.weight": [[1e25], [1e-30]], "head.weight": [[0, 0]]}
    rule = Sgd(descent=dataclasses.replace(PLAIN, clip_norm=1.0), sensitivity=True)
    update = after(with_gradients(huge), {"hidden.weight": [[1], [1]], "head.weight": [[1, 1]]}, 1, rule)
    assert reported(update)["sensitivity/0/hidden.weight"].tolist() == [np.float32(LARGEST_SUM), 0]
    assert encode(Body(BodyKind.UPDATE, update.tensors))


def test_a_report_that_is_not_finite_cannot_be_sent() -> None:
    lost = {"hidden.weight": [[np.nan], [1]], "head.weight": [[0, 0]]}
    rule = Sgd(descent=PLAIN, sensitivity=True)
    update = after(with_gradients(lost), {"hidden.weight": [[1], [1]], "head.weight": [[1, 1]]}, 1, rule)
    with pytest.raises(WireFormatError, match=r"sensitivity/0/hidden\.weight"):
        encode(Body(BodyKind.UPDATE, {"sensitivity/0/hidden.weight": update.tensors["sensitivity/0/hidden.weight"]}))


class Recorder(Quadratic):
    """Keeps the weights and gradients of every step, in double precision."""

    def __init__(self, graph: ModelGraph) -> None:
        Quadratic.__init__(self, graph)
        self.products: list[dict[str, Any]] = []

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        result = Quadratic.__call__(self, weights, batch)
        self.products.append(
            {name: weights[name].astype(float) * gradient.astype(float) for name, gradient in result.gradients.items()}
        )
        return result


@given(masked_models(), st.sampled_from(["sgd", "masked_noise"]))
def test_a_channel_has_the_squares_of_all_its_trained_entries(model: tuple[ModelGraph, Mask], name: str) -> None:
    """Whatever the layout of spans. An entry that a channel has on two axes counts twice."""
    graph, mask = model
    rule = Sgd(descent=PLAIN, sensitivity=True) if name == "sgd" else MaskedNoise(descent=PLAIN, sensitivity=True)
    run, part = Recorder(graph), part_of(mask, 1, steps=2)
    _, update = train(rule, part, run, 2)
    arrived = decode(encode(Body(BodyKind.UPDATE, update.tensors))).tensors
    found = channel_sensitivities(mask, arrived)
    trained = set(trained_parameters(mask))
    for group in prunable_groups(mask):
        expected, known = np.zeros(mask.widths[group.name]), False
        for span in group.spans:
            if span.tensor not in trained:
                continue
            known = True
            squares = sum(np.square(products[span.tensor]) for products in run.products)
            by_index = np.moveaxis(squares, span.axis, 0).reshape(squares.shape[span.axis], -1).sum(axis=1)
            expected += by_index[channel_positions(mask, group, span)].sum(axis=1)
        assert (group.name in found) == known
        if known:
            assert np.allclose(found[group.name], expected, rtol=1e-4, atol=1e-12)


@given(masked_models(), st.integers(0, 4), st.sampled_from([Sgd, MaskedNoise]))
def test_a_round_that_was_interrupted_reports_the_same(model: tuple[ModelGraph, Mask], stop: int, rule: Any) -> None:
    graph, mask = model
    assert_resumes(
        rule(descent=PLAIN, sensitivity=True), part_of(mask, 2, steps=5), Quadratic(graph), steps=5, stop=stop
    )


@given(masked_models())
def test_training_is_the_same_with_and_without_a_report(model: tuple[ModelGraph, Mask]) -> None:
    graph, mask = model
    for rule in (Sgd(descent=PLAIN), MaskedNoise(descent=PLAIN)):
        plain = train(rule, part_of(mask, 3, steps=3), Quadratic(graph), 3)[1]
        asked = train(dataclasses.replace(rule, sensitivity=True), part_of(mask, 3, steps=3), Quadratic(graph), 3)[1]
        assert all(np.array_equal(asked.weights[name], array) for name, array in plain.weights.items())
        assert asked.tensors.keys() - plain.tensors.keys() == set(report_forms(mask))
        assert rule.sends(mask).keys() == plain.tensors.keys()
        assert dataclasses.replace(rule, sensitivity=True).sends(mask).keys() == asked.tensors.keys()


def test_frozen_layers_report_nothing() -> None:
    mask = freeze(full_mask(two_units()), ["hidden"])
    assert list(report_forms(mask)) == ["sensitivity/1/head.weight"]
    assert not report_forms(freeze(full_mask(two_units()), ["hidden", "head"]))


def test_sums_of_squares_are_not_negative() -> None:
    mask = full_mask(two_units())
    good = {name: Dense(np.ones(form.shape, np.float32)) for name, form in report_forms(mask).items()}
    check_reported(mask, good)
    bad = good | {"sensitivity/1/head.weight": Dense(np.array([1, -1e-30], np.float32))}
    with pytest.raises(WireFormatError, match=r"'sensitivity/1/head\.weight' has a negative sum"):
        check_reported(mask, bad)


def test_clients_from_before_never_see_the_setting() -> None:
    for rule in (Sgd(), MaskedNoise()):
        assert "sensitivity" not in settings_from(rule)
        assert settings_from(dataclasses.replace(rule, sensitivity=True))["sensitivity"] is True


def test_nothing_is_reported_before_the_first_step() -> None:
    mask = full_mask(two_units())
    part, rule = part_of(mask, 1, steps=1), Sgd(descent=PLAIN, sensitivity=True)
    update = rule.finish(part, rule.begin(part), nth_batch(0), Quadratic(mask.graph))
    assert all(not sums.any() for sums in reported(update).values())

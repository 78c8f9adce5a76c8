"""Hermes by the paper's letter: whose channels are averaged, how masks shrink, what strangers may not send, its bits.

`test_hermes_sensitivity.py` has the default, where the coordinator prunes.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from edgefl.errors import MaskError, SchemaError, WireFormatError
from edgefl.local_rules import ChannelPruning, Descent, PrunedNoise, rule_of
from edgefl.local_rules.channel_pruning import PruningScope, magnitudes
from edgefl.masks import Mask, full_mask, gather, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import (
    AggregationSettings,
    ClientUpdate,
    Hermes,
    HermesAggregation,
    Model,
    PruningCriterion,
    UpdateWeighting,
    strategy_of,
)
from edgefl.strategies.hermes import _undisputed
from edgefl.wire import Bits, Dense
from examples.networks import cnn4
from tests.masks.test_slicing import held_coordinates
from tests.strategies.rounds import client_update, random_weights, rounds
from tests.strategies.simulated import a_round, device, round_context, trained

GRAPH = cnn4()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))


def letter(**settings: Any) -> Hermes:
    """Return the strategy whose devices prune themselves."""
    return Hermes(prune_by=PruningCriterion.MAGNITUDE, **settings)


def right(weights: Any) -> float:
    return 1.0


def wrong(weights: Any) -> float:
    return 0.0


def hidden(units: int) -> ModelGraph:
    """Two inputs, hidden units, one output, no biases."""
    build = GraphBuilder("hidden", channels=2)
    build.linear("head", build.linear("hidden", build.input, units, bias=False), 1, bias=False, head=True)
    return build.finish()


def units(graph: ModelGraph, sizes: list[float]) -> dict[str, Any]:
    column = np.array(sizes, np.float32)[:, None]
    return {"hidden.weight": np.repeat(column, 2, axis=1), "head.weight": column.T.copy()}


def sent(model: Model, kept: list[int], sizes: list[float], *, given_kept: list[int], samples: int = 10) -> Any:
    """A device that was given some units, kept some of them, and trained those to the given sizes."""
    given_mask, left = (Mask.of(model.graph, kept={"hidden": some}) for some in (given_kept, kept))
    made = client_update(left, model.weights, units(model.graph, sizes), samples=samples)
    return dataclasses.replace(made, mask=given_mask, next_mask=left)


@pytest.mark.parametrize("aggregation", list(HermesAggregation))
def test_two_devices_average_what_both_have_and_keep_what_one_has(aggregation: HermesAggregation) -> None:
    """Figure 5: of three channels, both have the first, i the third, j the second."""
    graph = hidden(3)
    model = Model(graph, units(graph, [1, 1, 1]))
    i = sent(model, [0, 2], [2, 0, 7], given_kept=[0, 1, 2], samples=30)
    j = sent(model, [0, 1], [6, 5, 0], given_kept=[0, 1], samples=10)
    strategy = letter(aggregation=aggregation)
    for one in (i, j):
        strategy.check(one)
    found = strategy.combine(model, [i, j], round_context())
    expected = units(graph, [(30 * 2 + 10 * 6) / 40, 5, 7])
    assert all(np.allclose(found.weights[name], expected[name]) for name in expected)
    # Each device's model is its mask of it: the shared channel is the mean, its own are as it left them.
    assert gather(i.next_mask, found.weights)["head.weight"].tolist() == [[3, 7]]
    assert gather(j.next_mask, found.weights)["head.weight"].tolist() == [[3, 5]]


def test_three_devices_share_by_holders_or_only_what_all_have() -> None:
    graph = hidden(4)
    model = Model(graph, units(graph, [1, 1, 1, 1]))
    every = [0, 1, 2, 3]
    made = [
        sent(model, [0, 1], [2, 4, 0, 0], given_kept=every),
        sent(model, [0, 1], [4, 8, 0, 0], given_kept=every),
        sent(model, [0, 2], [9, 0, 5, 0], given_kept=every),
    ]
    by_holders = letter().combine(model, made, round_context()).weights["head.weight"]
    assert by_holders.tolist() == [[5, 6, 5, 1]]
    strict = letter(aggregation=HermesAggregation.INTERSECTION).combine(model, made, round_context()).weights
    assert strict["head.weight"].tolist() == [[5, 1, 5, 1]]
    assert strict["hidden.weight"].tolist() == [[5, 5], [1, 1], [5, 5], [1, 1]]
    assert not strict["head.weight"].flags.writeable


def test_who_has_no_say_is_not_counted_among_those_that_took_part() -> None:
    graph = hidden(2)
    model = Model(graph, units(graph, [1, 1]))
    made = [
        sent(model, [0], [3, 0], given_kept=[0, 1]),
        sent(model, [0], [5, 0], given_kept=[0, 1]),
        sent(model, [1], [0, 9], given_kept=[0, 1], samples=0),
    ]
    strict = letter(aggregation=HermesAggregation.INTERSECTION)
    assert strict.combine(model, made, round_context()).weights["head.weight"].tolist() == [[4, 1]]
    assert strict.combine(model, made[2:], round_context()).weights["head.weight"].tolist() == [[1, 1]]


@settings(max_examples=40)
@given(rounds())
def test_the_intersection_is_that_of_a_slow_loop(case: tuple[Model, list[ClientUpdate]]) -> None:
    model, made = case
    heard = [one for one in made if one.result.samples]
    averaged = {name: array + np.array(1, array.dtype) for name, array in model.weights.items()}
    found = _undisputed(model, averaged, made)
    for name, array in model.weights.items():
        held = [set(held_coordinates(c.mask, name)) for c in heard if name in c.mask.trained_tensors]
        for at in np.ndindex(array.shape):
            count = sum(at in one for one in held)
            keeps = 1 < count < len(heard)
            assert found[name][at] == (array if keeps else averaged[name])[at]


def test_devices_start_with_the_whole_model_or_the_widest_part_that_fits() -> None:
    planned_tasks = letter().plan(
        MODEL, [device("a"), device("b", round_seconds=4.0), device("c", peak_bytes=2**20)], round_context()
    )
    assert set(planned_tasks) == {"a", "b"}
    assert planned_tasks["a"].mask.digest == full_mask(GRAPH).digest
    narrow = planned_tasks["b"].mask
    assert narrow.digest == leading_channels(GRAPH, narrow.widths["conv4"] / 256, multiple=8).digest
    assert narrow.cost.parameters < GRAPH.parameters
    rule = rule_of(planned_tasks["a"].rule)
    assert rule == ChannelPruning(
        accuracy_threshold=0.5, target=0.3, rate=0.2, lasso=1e-4, scope=PruningScope.GROUP, multiple=4
    )


def test_masks_only_shrink_until_every_device_is_at_the_target() -> None:
    strategy = letter(descent=Descent(learning_rate=0.01), kept_target=0.3)
    model, devices = strategy.begin(GRAPH, MODEL.weights), [device("a"), device("b", round_seconds=12.0), device("c")]
    shares, before = [], list(devices)
    for number in range(10):
        taking_part = devices if number % 3 else devices[:2]  # c takes part in some rounds only
        model, after, _ = a_round(strategy, model, taking_part, round_context(number), accuracy=right)
        devices = after + devices[len(after) :]
        for old, new in zip(before, devices, strict=True):
            if old.mask is not None and new.mask is not None:
                assert all(set(new.mask.kept[name]) <= set(old.mask.kept[name]) for name in new.mask.kept)
        before = list(devices)
        shares.append([one.mask.cost.parameters / GRAPH.parameters for one in devices if one.mask is not None])
    assert shares[0][0] > 0.6
    assert all(0.28 < share <= 0.3 for share in shares[-1])
    last = strategy.plan(model, devices, round_context(9))
    again = [
        trained(model, name, planned, round_context(9), accuracy=right)[0].next_mask for name, planned in last.items()
    ]
    assert again == [None] * 3


def test_a_device_that_is_not_accurate_keeps_its_channels() -> None:
    _, after, made = a_round(letter(), MODEL, [device()], round_context(), accuracy=wrong, steps=1)
    assert made[0].next_mask is None
    assert after[0].mask is not None
    assert after[0].mask.digest == full_mask(GRAPH).digest


@pytest.mark.parametrize("strategy", [Hermes(), letter()], ids=["sensitivity", "magnitude"])
def test_until_it_was_pruned_a_part_follows_the_number_of_samples(strategy: Hermes) -> None:
    def planned(mask: Mask | None, samples: int) -> Mask:
        one = device(mask=mask, samples=samples, round_seconds=12.0)
        return strategy.plan(MODEL, [one], round_context())["pi-4"].mask

    first = planned(None, 1000)
    assert first.cost.parameters < GRAPH.parameters
    grown = planned(first, 100)
    assert grown.digest == full_mask(GRAPH).digest
    assert planned(grown, 1000).digest == first.digest
    pruned = Mask.of(GRAPH, kept={**first.kept, "conv2": first.kept["conv2"][1:]})
    assert planned(pruned, 100).digest == pruned.digest


def test_a_part_that_no_longer_fits_loses_its_lowest_channels() -> None:
    half = Mask.of(GRAPH, kept={"conv2": range(0, 64, 2), "conv3": range(1, 128, 2)})
    strategy = letter()
    roomy = strategy.plan(MODEL, [device(mask=half)], round_context())["pi-4"]
    assert roomy.mask.digest == half.digest
    assert roomy.predicted is not None
    assert roomy.predicted.seconds is not None
    tight = device(mask=half, round_seconds=roomy.predicted.seconds / 2)
    found = strategy.plan(MODEL, [tight], round_context())["pi-4"]
    assert found.predicted is not None
    assert found.predicted.seconds is not None
    assert 0.9 * roomy.predicted.seconds / 2 < found.predicted.seconds <= roomy.predicted.seconds / 2
    sizes = magnitudes(half, gather(half, MODEL.weights))
    for name, kept in half.kept.items():
        stays = np.isin(kept, found.mask.kept[name])
        if name in sizes and not stays.all():
            assert sizes[name][stays].min() >= sizes[name][~stays].max()
    assert strategy.plan(MODEL, [device(mask=half, peak_bytes=1)], round_context()) == {}


def honest(given_mask: Mask, left: Mask) -> ClientUpdate:
    made = client_update(left, MODEL.weights, random_weights(GRAPH, 1))
    return dataclasses.replace(made, mask=given_mask, next_mask=left)


GIVEN = Mask.of(GRAPH, kept={"conv3": range(0, 128, 2)})
LEFT = Mask.of(GRAPH, kept={"conv3": range(0, 96, 2), "conv4": range(200)})


def test_an_honest_pruned_upload_is_taken() -> None:
    letter().check(honest(GIVEN, LEFT))
    letter().check(honest(GIVEN, GIVEN))
    letter().check(dataclasses.replace(honest(GIVEN, GIVEN), next_mask=None))


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (
            Mask.of(GRAPH, kept={"conv3": [0, 1, 2]}),
            "keeps channels of group 'conv3' that the mask of the plan does not",
        ),
        (full_mask(GRAPH), "keeps channels of group 'conv3' that"),
        (Mask.of(GRAPH, trained=["head"], kept=LEFT.kept), "trains other layers"),
        (Mask.of(GRAPH, kept=GIVEN.kept, held={"head.weight": np.eye(10, 256) > 0}), "holds other weights"),
        (Mask.of(GRAPH, kept={"conv3": [0, 2], "conv4": range(4)}), "pruning stops at a share of 0.3"),
    ],
)
def test_a_mask_that_pruning_cannot_have_made_is_refused(left: Mask, message: str) -> None:
    with pytest.raises(WireFormatError, match=message) as caught:
        letter().check(honest(GIVEN, left))
    assert caught.value.fix


def test_pruning_may_pass_the_target_by_its_last_channel_only() -> None:
    graph = hidden(10)  # every unit has 3 of 30 parameters
    model = Model(graph, units(graph, [1] * 10))
    every = list(range(10))
    for kept, target, fine in ((3, 0.3, True), (3, 0.31, True), (2, 0.3, False), (3, 0.4, False), (4, 0.3, True)):
        made = sent(model, every[:kept], [1] * 10, given_kept=every)
        if fine:
            letter(kept_target=target).check(made)
        else:
            with pytest.raises(WireFormatError, match="pruning stops at a share"):
                letter(kept_target=target).check(made)
    # A device that was given less than the target has no reason to prune at all.
    with pytest.raises(WireFormatError, match="keeps 3 of 30 parameters"):
        letter().check(sent(model, [0], [1] * 10, given_kept=[0, 1]))


def test_tensors_must_have_the_widths_of_the_new_mask() -> None:
    made = honest(GIVEN, LEFT)
    wide = client_update(GIVEN, MODEL.weights, MODEL.weights).tensors
    with pytest.raises(WireFormatError, match=r"shape .* and the plan says"):
        letter().check(dataclasses.replace(made, tensors=wide))
    with pytest.raises(WireFormatError, match=r"shape .* and the plan says"):
        letter().check(dataclasses.replace(made, next_mask=None))
    huge = Dense(np.full(LEFT.shapes["conv3.weight"], 1e30, np.float32))
    with pytest.raises(WireFormatError, match="holds a number beyond"):
        letter().check(dataclasses.replace(made, tensors={**made.tensors, "conv3.weight": huge}))


def test_movement_is_that_of_the_channels_that_are_left() -> None:
    graph = hidden(3)
    model = Model(graph, units(graph, [1, 1, 1]))
    made = sent(model, [0, 2], [3, 50, 1], given_kept=[0, 1, 2])
    assert letter().movement(made) == pytest.approx(np.sqrt(3 * 2.0**2))


@pytest.mark.parametrize(
    ("masks", "distribution"), [("binary", "uniform"), ("signed", "uniform"), ("signed", "gaussian")]
)
def test_bits_of_a_pruned_part_become_the_values_that_the_device_has(masks: str, distribution: str) -> None:
    noise = {"sent": "masked_noise", "noise_masks": masks, "noise_distribution": distribution}
    strategy = strategy_of("hermes", {"prune_by": "magnitude", "learning_rate": 0.02, **noise})
    assert isinstance(strategy, Hermes)
    planned = strategy.plan(MODEL, [device()], round_context())["pi-4"]
    assert isinstance(rule_of(planned.rule), PrunedNoise)
    made, update, body = trained(MODEL, "pi-4", planned, round_context(), accuracy=right)
    strategy.check(made)
    left = made.next_mask
    assert left is not None
    assert left.cost.parameters < 0.7 * GRAPH.parameters
    found = strategy.uplink.values(made)
    assert found.mask is left
    for name, payload in found.tensors.items():
        assert isinstance(payload, Dense)
        assert np.array_equal(payload.array, update.weights[name])
    # One device: its model is what it has, and the channels that it gave up stay as they were.
    combined = strategy.combine(MODEL, [made], round_context())
    cut = gather(left, combined.weights)
    assert all(np.allclose(cut[name], update.weights[name], atol=1e-6) for name in cut)
    gone = np.setdiff1d(np.arange(256), left.kept["conv4"])
    assert np.array_equal(combined.weights["conv4.weight"][gone], MODEL.weights["conv4.weight"][gone])
    values = [np.ravel(update.weights[n] - gather(left, MODEL.weights)[n]) for n in cut]
    assert strategy.movement(made) == pytest.approx(float(np.linalg.norm(np.concatenate(values))), rel=1e-4)
    assert 8 * len(body) / left.cost.parameters < 1.7
    assert isinstance(made.tensors["conv4.weight"], Bits)


def test_bits_at_the_widths_of_the_given_mask_are_refused() -> None:
    strategy = strategy_of("hermes", {"prune_by": "magnitude", "sent": "masked_noise"})
    planned = strategy.plan(MODEL, [device()], round_context())["pi-4"]
    made, _, _ = trained(MODEL, "pi-4", planned, round_context(), accuracy=right, steps=1)
    wide = Bits.of(np.zeros(GRAPH.tensor["conv4.weight"].shape, np.bool_))
    with pytest.raises(WireFormatError, match=r"'conv4.weight' has shape"):
        strategy.check(dataclasses.replace(made, tensors={**made.tensors, "conv4.weight": wide}))
    dense = Dense(np.zeros(made.tensors["conv4.weight"].shape, np.float32))
    with pytest.raises(WireFormatError, match=r"codec dense, and the plan says bits"):
        strategy.check(dataclasses.replace(made, tensors={**made.tensors, "conv4.weight": dense}))


@pytest.mark.parametrize("frozen", ["head", "planned"])
def test_frozen_layers_own_channels_and_bits_go_together(frozen: str) -> None:
    strategy = strategy_of(
        "hermes", {"prune_by": "magnitude", "frozen": frozen, "sent": "masked_noise", "learning_rate": 0.02}
    )
    model, devices = MODEL, [device("a"), device("b", round_seconds=14.5)]
    for number in range(2):
        model, devices, made = a_round(strategy, model, devices, round_context(number), accuracy=right)
        assert len(made) == 2
        for one in made:
            assert one.next_mask is not None
            assert one.next_mask.trained == one.mask.trained <= set(GRAPH.trainable_layers) - {"head"}
            assert "head.weight" not in one.tensors
            assert isinstance(one.tensors["conv4.weight"], Bits)
    assert np.array_equal(model.weights["head.weight"], MODEL.weights["head.weight"])
    assert not np.array_equal(model.weights["conv1.weight"], MODEL.weights["conv1.weight"])
    other_layers = dataclasses.replace(made[0], next_mask=Mask.of(GRAPH, kept=made[0].mask.kept))
    with pytest.raises(WireFormatError, match="trains other layers"):
        strategy.check(other_layers)


def test_devices_fine_tune_what_is_left_of_their_part() -> None:
    assert letter().personalise(MODEL, [device(mask=LEFT)], round_context(10)) == {}
    strategy = strategy_of("hermes", {"prune_by": "magnitude", "fine_tune_epochs": 3})
    planned = strategy.personalise(MODEL, [device(mask=LEFT)], round_context(10))["pi-4"]
    assert planned.mask.digest == LEFT.digest
    assert planned.work.epochs == 3


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.1])
def test_a_model_of_any_size_has_the_channels_of_the_largest_magnitude(fraction: float) -> None:
    found = letter().extract(MODEL, fraction, seed=1)
    share = found.cost.parameters / GRAPH.parameters
    assert 0.95 * fraction < share <= fraction
    sizes = magnitudes(full_mask(GRAPH), MODEL.weights)
    for name, kept in found.kept.items():
        if name in sizes and kept.size < GRAPH.group[name].width:
            assert sizes[name][kept].min() >= np.delete(sizes[name], kept).max()


def test_no_more_channels_go_than_must() -> None:
    graph = hidden(10)  # every unit has 3 of 30 parameters
    model = Model(graph, units(graph, [4, 1, 5, 9, 2, 6, 8, 3, 7, 10]))
    assert letter().extract(model, 0.5, seed=1).kept["hidden"].tolist() == [3, 5, 6, 8, 9]
    assert letter().extract(model, 0.59, seed=1).kept["hidden"].tolist() == [3, 5, 6, 8, 9]


def test_a_size_that_no_part_has_is_refused() -> None:
    with pytest.raises(MaskError, match="not even the narrowest submodel of 'cnn4'"):
        letter().extract(MODEL, 1e-6, seed=1)


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"sent": "eden"}, r"'settings.sent' is 'eden', whose rule neither prunes nor reports"),
        ({"aggregation": "intersection", "overlap": "participants"}, r"'settings.overlap' is 'participants', but with"),
        ({"kept_target": 1.5}, r"'settings.kept_target' must be a fraction"),
    ],
)
def test_what_cannot_be_is_refused(given_settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        strategy_of("hermes", given_settings)


def test_settings_reach_the_rule() -> None:
    found = strategy_of(
        "hermes",
        {
            "prune_by": "magnitude",
            "prune_rate": 0.1,
            "kept_target": 0.5,
            "lasso": 0,
            "prune_scope": "model",
            "weighing": "equal",
        },
    )
    assert isinstance(found, Hermes)
    assert found.averaging == AggregationSettings(weighing=UpdateWeighting.EQUAL)
    planned = found.plan(MODEL, [device()], round_context())["pi-4"]
    assert rule_of(planned.rule) == ChannelPruning(
        rate=0.1, target=0.5, lasso=0.0, scope=PruningScope.MODEL, multiple=4
    )

"""Which part of the global model is judged: what devices hold, and what they held a while ago."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.local_rules import ProbabilisticMasks, Sgd
from edgefl.local_rules.base_networks import joined_networks
from edgefl.masks import Mask, full_mask, leading_channels, union
from edgefl.strategies import FedAvg, Model, SplitMix
from edgefl.strategies.held_part import (
    arrays_beside,
    begun,
    held_part,
    judged_part,
    model_with,
    note_held,
    trains_model,
)
from edgefl.strategies.uplink import rule_settings
from edgefl.wire import BodyKind, decode, encode_weights
from examples.networks import cnn4
from tests.random_models import masks, model_graphs
from tests.strategies.rounds import random_weights

GRAPH = cnn4()
MODEL = begun(Model(GRAPH, random_weights(GRAPH, 0)))
HALF, WHOLE = leading_channels(GRAPH, 0.5), full_mask(GRAPH)


def after(model: Model, masks: Sequence[Mask], number: int) -> Model:
    """Return the model after a round in which devices trained these submodels."""
    return note_held(model, replace(model, weights=dict(model.weights)), masks, number)


def played(*rounds: Sequence[Mask], model: Model = MODEL) -> Model:
    for number, held in enumerate(rounds):
        model = after(model, held, number)
    return model


def test_before_any_update_it_is_the_whole_model() -> None:
    assert held_part(MODEL).digest == WHOLE.digest
    assert held_part(Model(GRAPH, MODEL.weights)).digest == WHOLE.digest


def test_a_width_for_all_is_the_part_that_is_judged() -> None:
    assert held_part(played([HALF, HALF], [HALF])).digest == HALF.digest


def test_a_channel_that_one_device_held_is_in_and_one_that_nobody_held_is_not() -> None:
    own = Mask.of(GRAPH, kept={**HALF.kept, "conv2": [*HALF.kept["conv2"], 50]})
    part = held_part(played([HALF, own, HALF]))
    assert part.digest == own.digest
    assert 50 in part.kept["conv2"]
    assert 51 not in part.kept["conv2"]


def test_frozen_layers_and_weights_that_a_mask_leaves_out_belong_to_it() -> None:
    flags = np.zeros(HALF.shapes["conv1.weight"], np.bool_)
    flags[0] = True
    sparse = Mask.of(GRAPH, trained=["head"], kept=HALF.kept, held={"conv1.weight": flags})
    assert held_part(played([sparse])).digest == HALF.digest


def test_what_devices_lost_goes_when_they_have_been_without_it_for_half_of_the_rounds() -> None:
    rounds = [[WHOLE], [WHOLE], [HALF], [HALF], [HALF], [HALF]]
    widths = [held_part(played(*rounds[:count])).widths["conv1"] for count in range(1, 7)]
    assert widths == [32, 32, 32, 16, 16, 16]


def test_a_wide_device_that_is_rarely_selected_keeps_its_channels_in() -> None:
    rounds = [[WHOLE] if number % 4 == 3 else [HALF] for number in range(12)]
    found = [held_part(played(*rounds[:count])).widths["conv1"] for count in range(7, 13)]
    assert set(found) == {32}


def test_windows_that_roll_over_all_channels_become_the_whole_model() -> None:
    def window(start: int) -> Mask:
        kept = {
            g.name: sorted((start + i) % g.width for i in range(g.width // 2)) for g in GRAPH.groups if g.fixed is None
        }
        return Mask.of(GRAPH, kept=kept)

    parts = [held_part(played(*[[window(8 * n)] for n in range(count)])) for count in (1, 64)]
    assert parts[0].widths["conv1"] == 16
    assert parts[1].digest == WHOLE.digest


def test_a_round_that_leaves_the_weights_alone_trains_nothing() -> None:
    model = played([HALF])
    counted = note_held(model, replace(model, state={"p": np.ones(1)}), [WHOLE], 1)
    assert held_part(counted).digest == HALF.digest
    assert list(counted.state) == ["p"]


@pytest.mark.parametrize(
    ("rule", "samples", "trains"),
    [(Sgd(), 10, True), (Sgd(), 0, False), (ProbabilisticMasks(), 10, False)],
    ids=["samples", "no samples", "mask phase"],
)
def test_only_what_trained_the_model_counts(rule: Sgd | ProbabilisticMasks, samples: int, trains: bool) -> None:
    assert trains_model(rule_settings(rule), samples) is trains


def test_a_strategy_that_makes_a_new_model_loses_no_record() -> None:
    model = played([HALF], [HALF])
    fresh = note_held(model, Model(GRAPH, dict(model.weights), {}), [HALF], 2)
    assert held_part(fresh).digest == HALF.digest


def test_it_is_stored_beside_the_strategys_arrays_and_read_again() -> None:
    model = replace(played([HALF], [HALF]), state={"p": np.arange(3.0)})
    body = encode_weights(arrays_beside(model), {})
    again = model_with(GRAPH, model.weights, decode(body, kind=BodyKind.WEIGHTS).arrays)
    assert list(again.state) == ["p"]
    assert held_part(again).digest == HALF.digest
    assert held_part(after(again, [HALF], 2)).digest == HALF.digest


def test_a_model_stored_without_a_record_counts_as_held_until_now() -> None:
    """An earlier version stored it, in the middle of a federation."""
    model = Model(GRAPH, MODEL.weights)
    assert held_part(model).digest == WHOLE.digest
    for number, width in [(4, 32), (6, 32), (7, 16)]:
        model = after(model, [HALF], number)
        assert held_part(model).widths["conv1"] == width


def test_norms_get_the_multiple_that_they_need() -> None:
    graph = cnn4(norm_groups=8)
    first = Mask.of(graph, kept={"conv1": range(8)})
    last = Mask.of(graph, kept={"conv1": [*range(1, 4), *range(20, 25)]})
    part = held_part(played([first, last], model=begun(Model(graph, random_weights(graph, 0)))))
    assert part.widths["conv1"] % 8 == 0
    assert set(part.kept["conv1"]) >= {*range(8), *range(20, 25)}


@given(st.data())
def test_it_contains_the_last_round_and_is_a_mask_of_the_model(data: st.DataObject) -> None:
    graph = data.draw(model_graphs())
    rounds = data.draw(st.lists(st.lists(masks(graph), min_size=1, max_size=3), min_size=1, max_size=5))
    model = played(*rounds, model=begun(Model(graph, random_weights(graph, 0))))
    part = held_part(model)
    ever = union([one for held in rounds for one in held])
    for group in graph.groups:
        found = set(part.kept[group.name].tolist())
        assert found >= {int(channel) for mask in rounds[-1] for channel in mask.kept[group.name]}
        if group.multiple_of == 1:
            assert found <= set(ever.kept[group.name].tolist())


def test_entries_between_networks_are_not_judged() -> None:
    strategy = SplitMix(base_networks=4)
    mask = joined_networks(GRAPH, [0, 2], 4)
    trained = played([mask])
    assert held_part(trained).widths == mask.widths
    assert judged_part(strategy, trained).digest == mask.digest
    assert [one.digest for one in strategy.networks(mask)] == [
        one.digest for one in strategy.networks(judged_part(strategy, trained))
    ]
    assert judged_part(strategy, MODEL).digest == joined_networks(GRAPH, range(4), 4).digest


def test_without_a_word_of_the_strategy_everything_that_is_held_is_judged() -> None:
    assert judged_part(FedAvg(), played([HALF])).digest == HALF.digest

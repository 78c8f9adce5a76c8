"""Every strategy's next model against a slow transcription of its paper's equation: plain loops, in double precision.

Where a strategy's own file has no such loop, it is here. `test_every_strategy_has_its_equation_and_its_example` keeps
the list: what is registered has a loop, and an example computed by hand (`test_equations_by_hand.py`).
"""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings

from edgefl.local_rules.descent import weight_tensors
from edgefl.masks import full_mask, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import STRATEGIES, ClientUpdate, FedMAP, FedPM, Model, strategy_of
from edgefl.wire import Bits, Counts
from tests.masks.test_slicing import kept_coordinates
from tests.strategies.rounds import ROUND_CONTEXT, counted, random_weights, rounds, slow_mean
from tests.strategies.simulated import device
from tests.strategies.wired import order_of, wired
from tests.values.samples import RESULT


class Proof(NamedTuple):
    """Where a strategy's mathematics is tested: module and function, and its case where there are several."""

    slow: str
    """The slow transcription of its equation."""
    hand: str
    """The example computed by hand."""
    further: tuple[str, ...] = ()
    """Loops and examples of its further equations."""


HOLDERS = "test_equations.test_means_over_holders_are_those_of_a_slow_loop[{}]"
COMPRESSED = "test_compressed_uplink.test_compressed_updates_are_averaged_as_in_a_slow_loop[{}]"
BY_HAND = "test_equations_by_hand.test_compressed_updates_of_two_devices[{}]"
LOCAL = "test_local_only.test_devices_send_no_tensors_and_the_model_stays"
PROOFS: Mapping[str, Proof] = {
    "fedavg": Proof(HOLDERS, "test_running_mean.test_three_devices_by_hand"),
    "fedprox": Proof(HOLDERS, "test_equations_by_hand.test_fedprox_pulls_two_devices_back_and_averages_them"),
    "fedrolex": Proof(HOLDERS, "test_equations_by_hand.test_fedrolex_averages_a_window_that_begins_anew"),
    "fjord": Proof(HOLDERS, "test_fjord.test_a_coordinate_is_averaged_over_those_whose_level_reaches_it"),
    "split_mix": Proof(
        "test_split_mix.test_each_network_is_averaged_as_in_a_slow_loop",
        "test_split_mix.test_two_networks_of_three_devices_by_hand",
    ),
    "joined": Proof(
        "test_joined.test_each_network_is_averaged_over_its_own_devices_as_in_a_slow_loop",
        "test_joined.test_two_networks_of_three_devices_by_hand",
    ),
    "perfedmask": Proof(HOLDERS, "test_perfedmask.test_a_layer_is_the_mean_of_those_that_trained_it_by_samples"),
    "fedbabu": Proof(HOLDERS, "test_equations_by_hand.test_fedbabu_averages_the_body_and_leaves_the_head"),
    "ditto": Proof(HOLDERS, "test_ditto.test_updates_count_alike"),
    "lg_fedavg": Proof(HOLDERS, "test_lg_fedavg.test_two_devices_average_the_shared_layer_and_keep_their_own"),
    "per_fedavg": Proof(HOLDERS, "test_per_fedavg.test_two_devices_meet_where_one_step_is_best"),
    "sub_fedavg": Proof(
        "test_sub_fedavg.test_the_average_is_that_of_a_slow_loop",
        "test_sub_fedavg.test_every_weight_is_the_mean_of_those_that_still_hold_it",
    ),
    "hermes": Proof(
        HOLDERS,
        "test_hermes.test_two_devices_average_what_both_have_and_keep_what_one_has",
        ("test_hermes.test_the_intersection_is_that_of_a_slow_loop",),
    ),
    "heterofl": Proof(
        "test_heterofl.test_any_round_without_masked_loss_is_the_slow_mean",
        "test_heterofl.test_the_mean_is_over_holders_who_all_count_the_same",
        ("test_heterofl.test_a_row_of_the_head_is_the_mean_of_those_that_have_its_class",),
    ),
    "fednova": Proof(
        "test_fednova.test_changes_are_normalised_as_in_a_slow_loop",
        "test_fednova.test_a_device_of_many_steps_counts_for_its_samples_alone",
    ),
    "fedspa": Proof(
        "test_fedspa.test_the_average_is_that_of_a_slow_loop",
        "test_fedspa.test_what_was_lost_is_averaged_over_all_that_took_part",
    ),
    "fedmap": Proof(
        "test_equations.test_fedmaps_belief_is_that_of_a_slow_loop",
        "test_fedmap.test_counts_become_probabilities_as_by_hand",
        ("test_fedmap.test_weights_are_averaged_over_their_holders",),
    ),
    "fedmrn": Proof(
        "test_fedmrn.test_the_next_model_is_equation_five_by_a_slow_loop",
        "test_equations_by_hand.test_fedmrn_adds_the_mean_of_two_devices_masked_noise",
    ),
    "fedpm": Proof(
        "test_equations.test_fedpms_posterior_is_that_of_a_slow_loop", "test_fedpm.test_the_posterior_by_hand"
    ),
    "fedsparsify": Proof(
        "test_fedsparsify.test_a_merge_is_that_of_a_slow_loop",
        "test_fedsparsify.test_the_majority_of_three_devices_by_hand",
        (
            "test_fedsparsify.test_sparsity_grows_by_the_papers_formula",
            "test_fedsparsify.test_the_coordinator_prunes_the_smallest_weights_of_all_layers_together",
        ),
    ),
    "local": Proof(LOCAL, LOCAL),
    **dict.fromkeys(("signsgd", "topk", "terngrad", "drive", "eden", "random_subsampling"), Proof(COMPRESSED, BY_HAND)),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_has_its_equation_and_its_example(name: str) -> None:
    assert name in PROOFS, "write a slow transcription of its equation and an example by hand, and name them here"
    proof = PROOFS[name]
    for place in (proof.slow, proof.hand, *proof.further):
        module, _, function = place.format(name).partition(".")
        function, _, case = function.partition("[")
        test = getattr(importlib.import_module(f"tests.strategies.{module}"), function)
        marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
        cases = [known[0] if isinstance(known, tuple) else known for mark in marks for known in mark.args[1]]
        assert not case or case.removesuffix("]") in cases


# Means over those that held a coordinate


@pytest.mark.parametrize(
    "name",
    [
        *("fedavg", "fedprox", "fedrolex", "fjord", "perfedmask", "fedbabu", "hermes"),
        *("ditto", "lg_fedavg", "per_fedavg"),
    ],
)
@settings(max_examples=8, deadline=None)
@given(case=rounds())
def test_means_over_holders_are_those_of_a_slow_loop(name: str, case: tuple[Model, list[ClientUpdate]]) -> None:
    """w + sum_i n_i (w_i - w) / sum_i n_i over those i that trained the coordinate; in Ditto, LG-FedAvg and Per-FedAvg
    every n is 1. A claim of samples counts for ten times the middle one at most."""
    model, made = case
    if name in ("ditto", "lg_fedavg", "per_fedavg"):
        one = [dataclasses.replace(c.result, samples=min(c.result.samples, 1)) for c in made]
        made = [dataclasses.replace(c, result=result) for c, result in zip(made, one, strict=True)]
    exact, size = slow_mean(model, counted(made))
    if name == "hermes":  # what devices were given is more than what they kept
        made = [dataclasses.replace(c, mask=full_mask(model.graph), next_mask=c.mask) for c in made]
    found = strategy_of(name, {}).combine(model, made, ROUND_CONTEXT).weights
    for tensor, array in exact.items():
        assert np.all(np.abs(found[tensor] - array) <= 1e-6 * (np.abs(array) + size[tensor]) + 1e-6), tensor


# Beliefs


def small() -> ModelGraph:
    build = GraphBuilder("small", channels=7)
    build.linear("head", build.linear("a", build.input, 12), 3, head=True)
    return build.finish()


GRAPH = small()
MASKS = [full_mask(GRAPH), leading_channels(GRAPH, 0.5), leading_channels(GRAPH, 0.25)]


def test_fedmaps_belief_is_that_of_a_slow_loop() -> None:
    """Eq. 9: alpha += m; beta += 1 where m is less than the device's largest; p = (alpha - 1) / (alpha + beta - 2)."""
    strategy = strategy_of("fedmap", {"prior": 3.0, "capacities": "0.5"})
    assert isinstance(strategy, FedMAP)
    model, generator = strategy.begin(GRAPH, random_weights(GRAPH, 0)), np.random.default_rng(1)
    shapes = {"a.weight": (12, 7), "head.weight": (3, 12)}
    drawn = [{name: generator.integers(0, 5, shape) for name, shape in shapes.items()} for _ in range(3)]
    trusts, made = [1.0, 0.5, 1.0], []
    (planned,) = strategy.plan(model, [device()], ROUND_CONTEXT).values()
    for m, trust in zip(drawn, trusts, strict=True):
        tensors = {f"m/{name}": Counts.of(array.astype(np.uint16), 4) for name, array in m.items()}
        result = dataclasses.replace(RESULT, samples=7)
        made.append(ClientUpdate("d", planned.mask, planned.rule, 1, model.weights, result, tensors, trust=trust))
        strategy.check(made[-1])
    after = strategy.combine(model, made, ROUND_CONTEXT)
    (later,) = strategy.plan(after, [device()], ROUND_CONTEXT).values()
    for name, shape in shapes.items():
        for at in np.ndindex(shape):
            alpha = beta = 3.0
            for m, trust in zip(drawn, trusts, strict=True):
                most = max(int(array.max()) for array in m.values())
                alpha += trust * int(m[name][at])
                beta += trust if m[name][at] < most else 0.0
            assert after.state[f"alpha/{name}"][at] == alpha
            assert after.state[f"beta/{name}"][at] == beta
            assert later.extras[f"p/{name}"][at] == pytest.approx((alpha - 1) / (alpha + beta - 2), rel=1e-6)


def test_fedpms_posterior_is_that_of_a_slow_loop() -> None:
    """alpha += m, beta += 1 - m over those that held a weight, a draw being 0.99 or 0.01; theta is the mode."""
    strategy = strategy_of("fedpm", {"prior": 2.0})
    assert isinstance(strategy, FedPM)
    model = strategy.begin(GRAPH, random_weights(GRAPH, 0))
    made = []
    for number, mask in enumerate(MASKS[1:] * 2):
        planned = order_of(mask, strategy.uplink.rule, strategy.extras(model, mask, ROUND_CONTEXT))
        made.append(wired(planned, model.weights, seed=number, samples=5 + number, trust=1 - number / 4).client_update)
        strategy.check(made[-1])
    after, kept = strategy.combine(model, made, ROUND_CONTEXT), 0
    for name in weight_tensors(full_mask(GRAPH)):
        for at in np.ndindex(GRAPH.tensor[name].shape):
            alpha = beta = 2.0
            for one in made:
                payload, places = one.tensors[name], kept_coordinates(one.mask, name)
                assert isinstance(payload, Bits)
                if at in places:
                    m = 0.99 if payload.to_bool().ravel()[places.index(at)] else 0.01
                    alpha, beta = alpha + one.trust * m, beta + one.trust * (1 - m)
            before, heard = float(model.state[f"p/{name}"][at]), alpha + beta > 4
            kept += not heard
            theta = (alpha - 1) / (alpha + beta - 2) if heard else before
            assert after.state[f"p/{name}"][at] == pytest.approx(theta, rel=1e-5)
    assert kept > 0

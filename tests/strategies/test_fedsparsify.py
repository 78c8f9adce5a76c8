"""FedSparsify: its schedule, the majority's weights, the coordinator's pruning, and what devices may send."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError, SchemaError, WireFormatError
from edgefl.local_rules import MagnitudePruning, Sgd, rule_of
from edgefl.masks import Array, Mask, full_mask, gather, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import ClientUpdate, FedSparsify, Model, Participant, PurgeAt, RoundContext, strategy_of
from edgefl.strategies.uplink import rule_settings
from edgefl.values import Budget
from edgefl.wire import Dense, Payload, Sparse
from tests.masks.test_slicing import held_coordinates, kept_coordinates
from tests.strategies.rounds import client_update, random_weights
from tests.values.samples import PROFILE


def small() -> ModelGraph:
    """A matrix of four weights and a head of two."""
    build = GraphBuilder("small", channels=2)
    build.linear("head", build.linear("a", build.input, 2), 1, head=True)
    return build.finish()


GRAPH = small()
SECOND = RoundContext(round=1, rounds=4, seed=1)


def pruned_update(
    mask: Mask, base: dict[str, Array], new: dict[str, Array], kept: dict[str, Array], kept_share: float, samples: int
) -> ClientUpdate:
    """What a device sends of new values of the size of its submodel, and of the weights that it kept."""
    made = client_update(mask, base, base, samples=samples)
    tensors: dict[str, Payload] = {
        name: Sparse.where(new[name], kept[name]) if name in kept else Dense(new[name]) for name in mask.trained_tensors
    }
    rule = rule_settings(MagnitudePruning(kept=kept_share))
    return replace(made, tensors=tensors, rule=rule)


# The schedule


def test_sparsity_grows_by_the_papers_formula() -> None:
    """T = 5, t_0 = 1, S_T = 0.8: progress is 0, 1/4, 1/2, 3/4, 1, and (1 - progress)^3 is 1, 27/64, 1/8, 1/64, 0."""
    strategy = FedSparsify(final_sparsity=0.8)
    expected = [0.0, 0.8 * (1 - 27 / 64), 0.7, 0.8 * (1 - 1 / 64), 0.8]
    assert [strategy.sparsity(number, 5) for number in range(5)] == pytest.approx(expected)


def test_sparsity_grows_every_few_rounds_from_the_first_one() -> None:
    """T = 8, t_0 = 2, F = 2, from 0.5: rounds 2 and 3 prune 0.5, rounds 4 and 5 after a third of the way, and so on."""
    strategy = FedSparsify(final_sparsity=0.9, initial_sparsity=0.5, first_purge=2, purge_every=2)
    steps = [0.9 - 0.4 * left for left in (1.0, (2 / 3) ** 3, (1 / 3) ** 3, 0.0)]
    expected = [0.0, steps[0], steps[0], steps[1], steps[1], steps[2], steps[2], steps[3]]
    assert [strategy.sparsity(number, 8) for number in range(8)] == pytest.approx(expected)


def test_sparsity_may_be_the_same_from_the_first_round_on() -> None:
    strategy = FedSparsify(initial_sparsity=0.97)
    assert {strategy.sparsity(number, 10) for number in range(10)} == {0.97}
    assert FedSparsify().sparsity(0, 1) == 0.97  # a single round is the last one


# Merging


def test_the_majority_of_three_devices_by_hand() -> None:
    """a.weight has four weights: kept by all, by two, by one, by none. The mean counts zeros for what was pruned."""
    base = {t.name: np.ones(t.shape, np.float32) for t in GRAPH.tensors}
    values = np.array([[3, 6], [9, 12]], np.float32)
    votes = [[[1, 1], [1, 0]], [[1, 1], [0, 0]], [[1, 0], [0, 0]]]
    made = []
    for samples, flags in zip((10, 20, 30), votes, strict=True):
        new = {**base, "a.weight": values}
        kept = {"a.weight": np.array(flags, np.bool_), "head.weight": np.ones((1, 2), np.bool_)}
        made.append(pruned_update(full_mask(GRAPH), base, new, kept, 0.5, samples))
    after = FedSparsify().combine(Model(GRAPH, base), made, SECOND).weights
    assert after["a.weight"].tolist() == [[3.0, 6 * 30 / 60], [0.0, 0.0]]
    assert after["head.weight"].tolist() == [[1.0, 1.0]]


def test_half_of_two_devices_is_enough() -> None:
    base = {t.name: np.ones(t.shape, np.float32) for t in GRAPH.tensors}
    made = []
    for flags in ([[1, 1], [0, 0]], [[0, 1], [0, 1]]):
        kept = {"a.weight": np.array(flags, np.bool_), "head.weight": np.ones((1, 2), np.bool_)}
        made.append(pruned_update(full_mask(GRAPH), base, base, kept, 0.5, 10))
    after = FedSparsify().combine(Model(GRAPH, base), made, SECOND).weights
    assert after["a.weight"].tolist() == [[0.5, 1.0], [0.0, 0.5]]


def test_who_does_not_count_in_the_average_has_no_vote_and_who_did_not_prune_kept_all() -> None:
    base = {t.name: np.ones(t.shape, np.float32) for t in GRAPH.tensors}
    first, second = [[1, 1], [0, 0]], [[0, 0], [1, 1]]
    made = []
    for flags, samples in ((first, 100), (second, 0), (second, 0), (second, 0)):
        kept = {"a.weight": np.array(flags, np.bool_), "head.weight": np.ones((1, 2), np.bool_)}
        made.append(pruned_update(full_mask(GRAPH), base, base, kept, 0.5, samples))
    after = FedSparsify().combine(Model(GRAPH, base), made, SECOND).weights
    assert after["a.weight"].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    dense = [pruned_update(full_mask(GRAPH), base, base, {}, 0.5, 100) for _ in range(2)]
    after = FedSparsify().combine(Model(GRAPH, base), [made[0], *dense], SECOND).weights
    assert after["a.weight"].all(), "two of three kept every weight"


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.sampled_from([1.0, 0.5]), st.integers(1, 30), st.integers(0, 99)), min_size=1, max_size=4))
def test_a_merge_is_that_of_a_slow_loop(devices: list[tuple[float, int, int]]) -> None:
    build = GraphBuilder("slow", channels=2)
    build.linear("head", build.linear("b", build.linear("a", build.input, 4), 4), 3, head=True)
    graph = build.finish()
    base, made = random_weights(graph, 1), []
    pruned = ("a.weight", "b.weight", "head.weight")
    for width, samples, seed in devices:
        mask = leading_channels(graph, width)
        new = gather(mask, random_weights(graph, seed))
        flags = {name: np.random.default_rng(seed).random(mask.shapes[name]) < 0.5 for name in pruned}
        made.append(pruned_update(mask, base, new, flags, 0.5, samples))
    after = FedSparsify().combine(Model(graph, base), made, SECOND).weights
    most = 10 * sorted(samples for _, samples, _ in devices)[(len(devices) - 1) // 2]
    for name, before in base.items():
        for place in np.ndindex(before.shape):
            total = weight = 0.0
            votes = had = 0
            for update in made:
                coordinates = kept_coordinates(update.mask, name)
                if place not in coordinates:
                    continue
                payload, at = update.tensors[name], coordinates.index(place)
                kept = isinstance(payload, Dense) or at in payload.indices()  # type: ignore[union-attr]
                whole = payload.array if isinstance(payload, Dense) else payload.to_dense()  # type: ignore[union-attr]
                samples = min(update.result.samples, most)
                total, weight = total + samples * float(whole.ravel()[at]) * kept, weight + samples
                votes, had = votes + kept, had + 1
            mean = total / weight if weight else float(before[place])
            assert after[name][place] == pytest.approx(mean if 2 * votes >= had else 0.0, abs=1e-5), (name, place)


def test_the_coordinator_prunes_the_smallest_weights_of_all_layers_together() -> None:
    """Six weights, and in the last round two thirds are pruned: 9 and -8 are left, whichever layer they are in."""
    base = {t.name: np.zeros(t.shape, np.float32) for t in GRAPH.tensors}
    new = {**base, "a.weight": np.array([[1, 9], [-2, 3]], np.float32), "head.weight": np.array([[-8, 7]], np.float32)}
    strategy = FedSparsify(purge_at=PurgeAt.GLOBAL, final_sparsity=2 / 3)
    last = RoundContext(round=3, rounds=4, seed=1)
    after = strategy.combine(Model(GRAPH, base), [client_update(full_mask(GRAPH), base, new)], last).weights
    assert after["a.weight"].tolist() == [[0.0, 9.0], [0.0, 0.0]]
    assert after["head.weight"].tolist() == [[-8.0, 0.0]]
    first = replace(last, round=0)
    after = strategy.combine(Model(GRAPH, base), [client_update(full_mask(GRAPH), base, new)], first).weights
    assert np.array_equal(after["a.weight"], new["a.weight"])


# Plans


def tasks(
    strategy: FedSparsify, weights: dict[str, Array], number: int, budget: Budget | None = None
) -> dict[str, Mask]:
    found = strategy.plan(
        Model(GRAPH, weights), [Participant("pi", PROFILE, budget or Budget())], RoundContext(number, 4, 1)
    )
    return {name: task.mask for name, task in found.items()}


def test_what_is_pruned_is_not_trained_and_not_given() -> None:
    weights = random_weights(GRAPH, 3)
    weights["a.weight"][0, 1] = 0
    assert not tasks(FedSparsify(), weights, 1)["pi"].held  # nothing was pruned in the first round
    held = tasks(FedSparsify(), weights, 2)["pi"].held
    assert held["a.weight"].tolist() == [[True, False], [True, True]]
    assert set(held) == {"a.weight"}


@pytest.mark.parametrize(("purge_at", "rule"), [(PurgeAt.LOCAL, MagnitudePruning), (PurgeAt.GLOBAL, Sgd)])
def test_devices_prune_as_much_as_the_round_asks_or_not_at_all(purge_at: PurgeAt, rule: type) -> None:
    strategy = FedSparsify(purge_at=purge_at, final_sparsity=0.8)
    model, participants = Model(GRAPH, random_weights(GRAPH, 3)), [Participant("pi", PROFILE, Budget())]
    for number in range(4):
        planned = strategy.plan(model, participants, RoundContext(number, 4, 1))["pi"]
        made = rule_of(planned.rule)
        assert type(made) is (Sgd if number == 0 else rule)
        if isinstance(made, MagnitudePruning):
            assert made.kept == pytest.approx(1 - strategy.sparsity(number, 4))


def test_a_device_that_may_hold_few_weights_waits_until_the_model_is_sparse() -> None:
    weights = random_weights(GRAPH, 3)
    few = Budget(weight_density=0.7)
    assert not tasks(FedSparsify(), weights, 0, few)
    weights["a.weight"][:] = 0
    assert tasks(FedSparsify(), weights, 3, few)


def test_a_submodel_of_any_size_holds_the_largest_weights() -> None:
    build = GraphBuilder("flat", channels=3)
    build.linear("head", build.linear("a", build.input, 4), 2, head=True)
    graph = build.finish()
    model = Model(graph, random_weights(graph, 5))
    others = graph.parameters - 12 - 8
    mask = FedSparsify().extract(model, (others + 5) / graph.parameters, 0)
    assert mask.cost.parameters == others + 5
    sizes = np.concatenate([np.abs(model.weights[name]).ravel() for name in ("a.weight", "head.weight")])
    held = [float(abs(model.weights[n][c])) for n in ("a.weight", "head.weight") for c in held_coordinates(mask, n)]
    assert sorted(held) == sorted(float(size) for size in np.sort(sizes)[-5:])
    with pytest.raises(MaskError, match="norms and biases alone"):
        FedSparsify().extract(model, others / graph.parameters, 0)


# What devices may send


def test_another_number_of_weights_or_pruned_ones_are_refused() -> None:
    base = random_weights(GRAPH, 4)
    whole = full_mask(GRAPH)
    held = np.array([[True, False], [True, True]])
    mask = Mask(GRAPH, whole.trained, whole.kept, {"a.weight": held})
    strategy = FedSparsify()

    def sent(flags: list[list[int]]) -> ClientUpdate:
        kept = {"a.weight": np.array(flags, np.bool_), "head.weight": np.array([[True, False]])}
        return pruned_update(mask, base, base, kept, 0.5, 10)

    strategy.check(sent([[1, 0], [0, 1]]))  # three of six
    with pytest.raises(WireFormatError, match="has 2 weights, but 3 are left by the plan"):
        strategy.check(sent([[1, 0], [0, 0]]))
    with pytest.raises(WireFormatError, match="weights that the mask of the plan does not hold"):
        strategy.check(sent([[1, 1], [0, 0]]))


def test_sparsity_that_shrinks_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"'settings.final_sparsity' is 0.5, but must be below 1, and init"):
        strategy_of("fedsparsify", {"final_sparsity": 0.5, "initial_sparsity": 0.6})
    with pytest.raises(SchemaError, match=r"final_sparsity' is 1"):
        strategy_of("fedsparsify", {"final_sparsity": 1})

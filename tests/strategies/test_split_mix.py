"""Split-Mix: how many networks a device gets, which, their average, and predictions by the mean of logits."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import MaskError, WireFormatError
from edgefl.federation.evaluation import networks_in
from edgefl.local_rules import BaseNetworks, mean_logits, rule_of
from edgefl.local_rules.base_networks import joined_networks
from edgefl.masks import Array, Mask, gather, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import ClientUpdate, Model, Participant, RoundContext, SplitMix, strategy_of
from edgefl.strategies.freezing import Freezing, FrozenLayers
from edgefl.strategies.round_estimate import round_estimates
from edgefl.values import Budget
from edgefl.wire import Dense, Payload
from examples.networks import cnn4
from tests.masks.test_slicing import held_coordinates
from tests.strategies.rounds import ROUND_CONTEXT, client_update, random_weights
from tests.values.samples import PROFILE

GRAPH = cnn4()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))
STRATEGY = SplitMix(base_networks=4)
ONE = joined_networks(GRAPH, [0], 4).cost
WIDTH = GRAPH.group["conv4"].width // 4


def update_of(mask: Mask, base: dict[str, Array], new: dict[str, Array], samples: int, device: str) -> ClientUpdate:
    """What a device sends whose networks have these new values."""
    made = client_update(mask, base, new, samples=samples, device=device)
    part = gather(mask, new, mask.trained_tensors)
    tensors: dict[str, Payload] = {
        name: Dense(array[mask.held[name]] if name in mask.held else array) for name, array in part.items()
    }
    return replace(made, tensors=tensors)


def small() -> ModelGraph:
    build = GraphBuilder("small", channels=1)
    build.linear("head", build.linear("b", build.linear("a", build.input, 2), 2), 1, head=True)
    return build.finish()


def test_two_networks_of_three_devices_by_hand() -> None:
    """With k = 2, network 0 is trained by the first and second device, network 1 by the first and third.

    b.weight is [[network 0, none], [none, network 1]]; all start from 1.
    """
    graph = small()
    base = {t.name: np.ones(t.shape, np.float32) for t in graph.tensors}
    numbers, values, samples = ([0, 1], [0], [1]), (5.0, 2.0, 11.0), (10, 20, 30)
    made = []
    for networks, value, count in zip(numbers, values, samples, strict=True):
        new = {name: array * np.float32(value) for name, array in base.items()}
        made.append(update_of(joined_networks(graph, networks, 2), base, new, count, f"of {networks}"))
    strategy = SplitMix(base_networks=2)
    for update in made:
        strategy.check(update)
    after = strategy.combine(Model(graph, base), made, ROUND_CONTEXT).weights
    first, second = (10 * 5 + 20 * 2) / 30, (10 * 5 + 30 * 11) / 40  # 3 and 9.5
    assert after["b.weight"].tolist() == [[first, 1.0], [1.0, second]]
    assert after["a.weight"].ravel().tolist() == [first, second]
    assert after["head.weight"].ravel().tolist() == [first, second]
    assert after["head.bias"].tolist() == pytest.approx([(10 * 5 + 20 * 2 + 30 * 11) / 60])  # all networks share it


@given(st.lists(st.tuples(st.sets(st.integers(0, 3), min_size=1), st.integers(1, 40)), min_size=1, max_size=4))
def test_each_network_is_averaged_as_in_a_slow_loop(devices: list[tuple[set[int], int]]) -> None:
    build = GraphBuilder("slow", channels=2, positions=3)
    x = build.norm("norm", build.conv("conv", build.input, 9, kernel=1, positions=3), groups=1)
    build.linear("head", build.flatten(build.conv("next", x, 5, kernel=1, positions=3)), 3, head=True)
    graph = build.finish()
    base = random_weights(graph, 1)
    made, news = [], []
    for number, (networks, samples) in enumerate(devices):
        new = random_weights(graph, 10 + number)
        made.append(update_of(joined_networks(graph, networks, 4), base, new, samples, f"d{number}"))
        news.append(new)
    after = STRATEGY.combine(Model(graph, base), made, ROUND_CONTEXT).weights
    middle = sorted(samples for _, samples in devices)[(len(devices) - 1) // 2]
    for name, before in base.items():
        for place in np.ndindex(before.shape):
            total = weight = 0.0
            for update, new, (_, samples) in zip(made, news, devices, strict=True):
                if place in set(held_coordinates(update.mask, name)):
                    total += min(samples, 10 * middle) * float(new[name][place])
                    weight += min(samples, 10 * middle)
            expected = total / weight if weight else before[place]
            assert after[name][place] == pytest.approx(expected, abs=1e-5), (name, place)


def numbers_of(mask: Mask) -> list[int]:
    return sorted({int(channel) // WIDTH for channel in mask.kept["conv4"]})


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_a_device_trains_as_many_networks_as_fit_each_limit(count: int) -> None:
    limits = [
        Budget(trainable_parameters=round((count + 0.5) * ONE.parameters)),
        Budget(kept_fraction=min(1.0, (count + 0.5) * ONE.parameters / GRAPH.parameters)),
    ]
    for budget in limits:
        tasks = STRATEGY.plan(MODEL, [Participant("pi", PROFILE, budget)], ROUND_CONTEXT)
        assert len(numbers_of(tasks["pi"].mask)) == count if count else not tasks


def test_time_is_that_of_the_networks_one_after_the_other() -> None:
    participants = [
        Participant(name, PROFILE, Budget(kept_fraction=(count + 0.5) * ONE.parameters / GRAPH.parameters))
        for name, count in (("one", 1), ("three", 3))
    ]
    tasks = STRATEGY.plan(MODEL, participants, ROUND_CONTEXT)
    seconds = {name: task.predicted.seconds if task.predicted else None for name, task in tasks.items()}
    assert seconds["one"] is not None
    assert seconds["three"] == pytest.approx(3 * seconds["one"])


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_memory_is_that_of_the_whole_arrays_and_the_network_that_runs(count: int) -> None:
    """The entries between the networks have weights, momenta and gradients too."""
    budget = Budget(kept_fraction=min(1.0, (count + 0.5) * ONE.parameters / GRAPH.parameters))
    plan = STRATEGY.plan(MODEL, [Participant("pi", PROFILE, budget, 1000)], ROUND_CONTEXT)["pi"]
    cost = leading_channels(GRAPH, count / 4).cost
    assert plan.mask.widths == leading_channels(GRAPH, count / 4).widths
    expected = PROFILE.cost.peak_bytes(
        activation_bytes=ONE.activation_bytes(plan.work.batch_size),
        parameter_bytes=cost.parameter_bytes + (ONE.parameter_bytes if count > 1 else 0),
        trained_parameters=cost.trained_parameters,
    )
    assert plan.predicted is not None
    assert plan.predicted.peak_bytes == expected
    for limit, number in ((expected, count), (expected - 1, count - 1)):
        budget = Budget(peak_bytes=limit)
        tasks = STRATEGY.plan(MODEL, [Participant("pi", PROFILE, budget, 1000)], ROUND_CONTEXT)
        assert [len(numbers_of(task.mask)) for task in tasks.values()] == ([number] if number else [])


def test_devices_with_the_same_networks_have_the_same_mask() -> None:
    participants = [Participant(f"d{n}", PROFILE, Budget()) for n in range(6)]
    with_all = STRATEGY.submodels(MODEL, round_estimates(GRAPH, participants, ROUND_CONTEXT, 1000), ROUND_CONTEXT)
    assert len({id(mask) for mask in with_all.values()}) == 1


def test_all_networks_are_trained_by_as_many_devices_and_not_by_the_same_ones() -> None:
    participants = [
        Participant(f"d{n}", PROFILE, Budget(kept_fraction=(n % 3 + 1.5) * ONE.parameters / GRAPH.parameters))
        for n in range(7)
    ]
    dealt = []
    for number in range(3):
        tasks = STRATEGY.plan(MODEL, participants, RoundContext(number, 3, number + 1))
        counts = Counter(network for task in tasks.values() for network in numbers_of(task.mask))
        assert set(counts) == {0, 1, 2, 3}
        assert max(counts.values()) - min(counts.values()) <= 1
        assert [len(numbers_of(task.mask)) for task in tasks.values()] == [1, 2, 3, 1, 2, 3, 1]
        dealt.append([numbers_of(task.mask) for task in tasks.values()])
    assert all(one != other for one, other in pairwise(dealt))


def test_a_prediction_is_the_mean_of_the_logits_of_all_networks() -> None:
    """With logits that are the head's weights, network by network."""
    found = networks_in(STRATEGY, MODEL)
    assert len(found) == 4
    logits = mean_logits(lambda one, _: one["head.weight"], found, np.zeros(1))
    blocks = MODEL.weights["head.weight"].reshape(10, 4, -1).transpose(1, 0, 2)
    assert np.allclose(logits, blocks.mean(axis=0), atol=1e-6)
    two = networks_in(STRATEGY, MODEL, joined_networks(GRAPH, [1, 3], 4))
    assert np.array_equal(two[1]["head.weight"], blocks[3])
    assert len(two) == 2


@pytest.mark.parametrize(("head", "trained"), [("train", True), ("freeze", False)])
def test_devices_fine_tune_their_networks_for_themselves(head: str, trained: bool) -> None:
    strategy = strategy_of("split_mix", {"base_networks": 4, "fine_tune_epochs": 2, "fine_tune_head": head})
    tasks = strategy.personalise(MODEL, [Participant("pi", PROFILE, Budget())], RoundContext(10, 10, 1))
    rule = rule_of(tasks["pi"].rule)
    assert isinstance(rule, BaseNetworks)
    assert rule.networks == 4
    assert rule.descent.learning_rate == pytest.approx(0.001)  # after both drops
    assert not rule.sends(tasks["pi"].mask)
    assert ("head" in tasks["pi"].mask.trained) is trained
    assert tasks["pi"].work.epochs == 2
    assert strategy_of("split_mix", {"base_networks": 4}).personalise(MODEL, [], ROUND_CONTEXT) == {}


@pytest.mark.parametrize("share", [0.2, 0.4, 0.7, 1.0])
def test_networks_freeze_the_layers_that_are_planned_for_all_devices(share: float) -> None:
    """PerFedMask with Split-Mix: the weak device trains some layers of each of its networks, the strong one all."""
    strategy = SplitMix(base_networks=4, freezing=Freezing(frozen=FrozenLayers.PLANNED, least_trained=0.25))
    most = round(share * 4 * ONE.parameters)
    participants = [
        Participant("weak", PROFILE, Budget(trainable_parameters=most)),
        Participant("strong", PROFILE, Budget()),
    ]
    masks = {name: task.mask for name, task in strategy.plan(MODEL, participants, ROUND_CONTEXT).items()}
    weak, body = masks["weak"], set(GRAPH.trainable_layers) - {"head"}
    assert masks["strong"].trained == body, "nobody trains the head before the end"
    assert weak.trained <= body
    networks = strategy.networks(weak)
    assert sum(network.cost.trained_parameters for network in networks) <= most
    assert {network.trained for network in networks} == {weak.trained}
    unfrozen = Mask(GRAPH, frozenset(GRAPH.trainable_layers), weak.kept, weak.held)
    assert unfrozen.digest == joined_networks(GRAPH, numbers_of(weak), 4).digest
    figures = strategy.explain(MODEL, participants, ROUND_CONTEXT)
    assert figures["freezing_devices"] == (weak.trained != body)


def test_a_device_gets_more_networks_if_it_may_freeze_layers_of_them() -> None:
    participants = [Participant("pi", PROFILE, Budget(trainable_parameters=round(1.5 * ONE.parameters)))]
    counts = {
        frozen: len(numbers_of(strategy.plan(MODEL, participants, ROUND_CONTEXT)["pi"].mask))
        for frozen in ("none", "planned")
        for strategy in [strategy_of("split_mix", {"base_networks": 4, "frozen": frozen, "least_trained": 0.25})]
    }
    assert counts == {"none": 1, "planned": 2}


def test_a_submodel_of_any_size_is_the_networks_that_fit() -> None:
    for count in (1, 2, 3, 4):
        mask = joined_networks(GRAPH, range(count), 4)
        share = mask.cost.parameters / GRAPH.parameters
        assert STRATEGY.extract(MODEL, share + 1e-6, 0).digest == mask.digest
    with pytest.raises(MaskError, match="not even one of the 4 base networks has at most"):
        STRATEGY.extract(MODEL, 0.9 * ONE.parameters / GRAPH.parameters, 0)


def test_the_rule_knows_into_how_many_networks_the_model_is_split() -> None:
    task = STRATEGY.plan(MODEL, [Participant("pi", PROFILE, Budget())], ROUND_CONTEXT)["pi"]
    rule = rule_of(task.rule)
    assert rule == BaseNetworks(descent=STRATEGY.descent, networks=4)


def test_a_model_too_narrow_for_its_networks_is_refused_at_once() -> None:
    with pytest.raises(MaskError, match="channel group 'a' has 2 channels, too few for 8 networks"):
        SplitMix().begin(small(), {})


def test_a_model_without_channels_to_divide_is_refused_at_once() -> None:
    build = GraphBuilder("linear", channels=3)
    build.linear("head", build.input, 2, head=True)
    graph = build.finish()
    with pytest.raises(MaskError, match="model 'linear' has no channels that could be divided among 8 networks"):
        SplitMix().begin(graph, random_weights(graph, 0))


def test_values_with_the_zeros_between_the_networks_are_refused() -> None:
    mask = joined_networks(GRAPH, [0, 1], 4)
    made = update_of(mask, dict(MODEL.weights), dict(MODEL.weights), 10, "pi")
    whole = replace(made, tensors={**made.tensors, "conv2.weight": Dense(np.zeros(mask.shapes["conv2.weight"], "f4"))})
    with pytest.raises(WireFormatError, match=r"conv2\.weight"):
        STRATEGY.check(whole)

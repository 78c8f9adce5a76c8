"""FedSpa: its average, masks of constant size, first masks that anybody can make again, and what is sent."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError, SchemaError, WireFormatError
from edgefl.federation.capability_check import UNSAID
from edgefl.local_rules import ChannelRegrow, PruneRegrow, TrainingInput, rule_of
from edgefl.local_rules.erk import erk_counts
from edgefl.masks import Mask, Weights, full_mask, gather, leading_channels, random_channels
from edgefl.model_graph import GraphBuilder, ModelGraph, TensorRole
from edgefl.strategies import AggregationSettings, ClientUpdate, FedSpa, Model, Overlap, UpdateWeighting, strategy_of
from edgefl.wire import Dense, Payload, Sparse, measure
from examples.networks import character_lstm, cnn4, preresnet18
from tests.masks.test_slicing import held_coordinates
from tests.random_models import masks, model_graphs
from tests.strategies.rounds import ROUND_CONTEXT, random_weights
from tests.strategies.simulated import a_round, device, round_context, trained
from tests.values.samples import RESULT

GRAPH = cnn4()
MODEL = Model(GRAPH, random_weights(GRAPH, 0))
WEIGHT, CHANNEL = FedSpa(), strategy_of("fedspa", {"granularity": "channel"})


def lost(mask: Mask, base: Weights, differences: Weights, *, samples: int = 10, trust: float = 1.0) -> ClientUpdate:
    """What a device sends whose weights lost so much; `differences` are at the size of the whole model."""
    tensors: dict[str, Payload] = {}
    for name, part in gather(mask, differences, mask.trained_tensors).items():
        tensors[name] = Sparse.where(part, mask.held[name]) if name in mask.held else Dense(part)
    rule = WEIGHT.uplink.rule
    return ClientUpdate("d", mask, rule, 1, base, dataclasses.replace(RESULT, samples=samples), tensors, trust=trust)


def row() -> ModelGraph:
    build = GraphBuilder("row", channels=4)
    build.linear("head", build.input, 1, bias=False, head=True)
    return build.finish()


def test_what_was_lost_is_averaged_over_all_that_took_part() -> None:
    """Eq. 4 by hand: of three devices, all hold the first weight, two the second, one the third, none the fourth."""
    graph = row()
    model = Model(graph, {"head.weight": np.array([[10, 10, 10, 10]], np.float32)})
    made = []
    for held, change, samples in (([1, 1, 0, 0], 3, 5), ([1, 1, 1, 0], 6, 900), ([1, 0, 0, 0], 9, 1)):
        mask = Mask.of(graph, held={"head.weight": np.array([held], np.bool_)})
        made.append(lost(mask, model.weights, {"head.weight": np.full((1, 4), change, np.float32)}, samples=samples))
    found = WEIGHT.combine(model, made, ROUND_CONTEXT).weights["head.weight"]
    assert found.tolist() == [[10 - (3 + 6 + 9) / 3, 10 - (3 + 6) / 3, 10 - 6 / 3, 10]]


def test_what_was_lost_may_be_averaged_over_the_holders_alone() -> None:
    """The same three devices: 18 / 3 of the first weight, 9 / 2 of the second, 6 of the third, none of the fourth."""
    graph = row()
    model = Model(graph, {"head.weight": np.array([[10, 10, 10, 10]], np.float32)})
    made = []
    for held, change, samples in (([1, 1, 0, 0], 3, 5), ([1, 1, 1, 0], 6, 900), ([1, 0, 0, 0], 9, 1)):
        mask = Mask.of(graph, held={"head.weight": np.array([held], np.bool_)})
        made.append(lost(mask, model.weights, {"head.weight": np.full((1, 4), change, np.float32)}, samples=samples))
    found = strategy_of("fedspa", {"overlap": "holders"}).combine(model, made, ROUND_CONTEXT).weights["head.weight"]
    assert found.tolist() == [[4, 5.5, 4, 10]]


@settings(max_examples=40)
@given(st.data())
def test_the_average_is_that_of_a_slow_loop(data: st.DataObject) -> None:
    graph = data.draw(model_graphs())
    model, older = Model(graph, random_weights(graph, 1)), random_weights(graph, 2)
    made = []
    for number in range(data.draw(st.integers(1, 4))):
        base = older if data.draw(st.booleans()) else model.weights
        made.append(lost(data.draw(masks(graph)), base, random_weights(graph, 10 + number), samples=1 + 7 * number))
    found = FedSpa().combine(model, made, ROUND_CONTEXT).weights
    for name, now in model.weights.items():
        if graph.tensor[name].role is TensorRole.STATISTIC:
            continue  # averaged as values; below
        exact = now.astype(np.float64)
        for one in made:
            if name in one.tensors:
                held = held_coordinates(one.mask, name)
                payload: Any = one.tensors[name]
                part = payload.array if isinstance(payload, Dense) else payload.to_dense()
                whole = np.zeros(now.shape)
                whole[one.mask.index(name)] = part
                for at in held:
                    exact[at] -= whole[at] / len(made)
        assert np.allclose(found[name], exact, atol=1e-5)


def test_running_statistics_are_averaged_as_values() -> None:
    build = GraphBuilder("normed", channels=1, positions=4)
    x = build.norm("n", build.conv("a", build.input, 2, kernel=1, positions=4), statistics=True)
    build.linear("head", build.flatten(build.pool(x, positions=1)), 2, head=True)
    graph = build.finish()
    now, older = ({t.name: np.full(t.shape, value, np.float32) for t in graph.tensors} for value in (5, 1))
    change = {t.name: np.full(t.shape, -2, np.float32) for t in graph.tensors}
    found = FedSpa().combine(Model(graph, now), [lost(full_mask(graph), older, change)], ROUND_CONTEXT).weights
    # From 1 to 3: a weight moves by 2, a statistic becomes 3.
    assert np.allclose(found["a.weight"], 7)
    assert np.allclose(found["n.running_mean"], 3)


def test_first_masks_are_random_of_the_density_and_the_same_whenever_they_are_made() -> None:
    strategy = WEIGHT
    early = strategy.plan(MODEL, [device("a"), device("b")], round_context(0, seed=1))
    late = strategy.plan(MODEL, [device("b"), device("c"), device("a")], round_context(7, seed=99))
    assert early["a"].mask.digest == late["a"].mask.digest
    assert early["b"].mask.digest == late["b"].mask.digest
    assert len({planned.mask.digest for planned in late.values()}) == 3
    counts = {name: int(where.sum()) for name, where in early["a"].mask.held.items()}
    wanted = erk_counts(full_mask(GRAPH), 0.5)
    assert counts == {name: count for name, count in wanted.items() if count < GRAPH.tensor[name].size}
    assert early["a"].mask.cost.parameters / GRAPH.parameters == pytest.approx(0.5, abs=1e-4)
    other = strategy_of("fedspa", {"mask_seed": 5}).plan(MODEL, [device("a")], round_context())
    assert other["a"].mask.digest != early["a"].mask.digest


@pytest.mark.parametrize("granularity", ["weight", "channel"])
def test_all_may_start_with_the_same_mask(granularity: str) -> None:
    strategy = strategy_of("fedspa", {"first_masks": "same", "granularity": granularity})
    planned_tasks = strategy.plan(MODEL, [device("a"), device("b")], round_context())
    assert planned_tasks["a"].mask is planned_tasks["b"].mask


def test_a_slow_device_holds_as_large_a_share_of_a_narrower_part() -> None:
    whole = WEIGHT.plan(MODEL, [device("a")], round_context())["a"]
    assert whole.predicted is not None
    assert whole.predicted.seconds is not None
    found = WEIGHT.plan(MODEL, [device("a", round_seconds=whole.predicted.seconds / 3)], round_context())["a"]
    assert found.predicted is not None
    assert found.predicted.seconds is not None
    assert whole.predicted.seconds / 6 < found.predicted.seconds <= whole.predicted.seconds / 3
    part = leading_channels(GRAPH, found.mask.widths["conv4"] / 256, multiple=8)
    assert found.mask.widths == part.widths
    assert found.mask.cost.parameters / part.cost.parameters == pytest.approx(0.5, abs=1e-3)
    # The engine works on whole arrays: weights that are not held save no time.
    dense = strategy_of("fedavg", {}).plan(MODEL, [device("a")], round_context())["a"]
    assert dense.predicted == whole.predicted


def test_a_device_may_be_told_to_hold_less() -> None:
    found = WEIGHT.plan(MODEL, [device("a", weight_density=0.3), device("b", weight_density=0.9)], round_context())
    shares = {name: planned.mask.cost.parameters / GRAPH.parameters for name, planned in found.items()}
    assert shares == {"a": pytest.approx(0.3, abs=1e-3), "b": pytest.approx(0.5, abs=1e-3)}


def test_devices_that_can_train_nothing_are_left_out() -> None:
    few = [device("a", peak_bytes=2**20), device("b"), device("c", peak_bytes=1, mask=full_mask(GRAPH))]
    assert set(WEIGHT.plan(MODEL, few, round_context())) == {"b"}
    assert set(CHANNEL.plan(MODEL, few, round_context())) == {"b"}


def test_the_rule_has_the_papers_settings() -> None:
    planned = WEIGHT.plan(MODEL, [device()], round_context())["pi-4"]
    rule = rule_of(planned.rule)
    assert isinstance(rule, PruneRegrow)
    part = TrainingInput(planned.mask, {}, 1, round=3, rounds=10)
    assert rule.descent.rate(part, 0) == pytest.approx(0.1 * 0.998**3)
    assert rule.descent.weight_decay == 5e-4
    assert rule.initial_rate == 0.5
    assert WEIGHT.averaging == AggregationSettings(overlap=Overlap.PARTICIPANTS, weighing=UpdateWeighting.EQUAL)
    slower = strategy_of("fedspa", {"learning_rate": 0.01, "overlap": "holders"})
    assert isinstance(slower, FedSpa)
    assert slower.descent.decay_factor == 0.998
    assert slower.averaging == AggregationSettings(overlap=Overlap.HOLDERS, weighing=UpdateWeighting.EQUAL)


def test_masks_move_their_size_stays_and_what_is_taken_up_starts_from_the_global_value() -> None:
    model, devices = WEIGHT.begin(GRAPH, MODEL.weights), [device("a"), device("b"), device("c")]
    seen = []
    for number in range(4):
        model, devices, made = a_round(WEIGHT, model, devices, round_context(number, rounds=5))
        seen.append({one.device_id: one.mask for one in made})
    for name in "abc":
        counts = [{n: int(where.sum()) for n, where in taken[name].held.items()} for taken in seen]
        assert all(count == counts[0] for count in counts)
        digests = [taken[name].digest for taken in seen]
        assert len(set(digests)) == 4
    planned_tasks = WEIGHT.plan(model, devices, round_context(4, rounds=5))
    for one in devices:
        assert one.mask is not None
        assert planned_tasks[one.device_id].mask.digest == one.mask.digest
        before, now = (mask.held["conv4.weight"] for mask in (seen[-1][one.device_id], one.mask))
        new = now & ~before
        assert new.any()
        assert gather(one.mask, model.weights)["conv4.weight"][new].all()
    last = [trained(model, name, planned, round_context(4, rounds=5))[0] for name, planned in planned_tasks.items()]
    assert [one.next_mask for one in last] == [None] * 3


@pytest.mark.parametrize("granularity", ["weight", "channel"])
def test_static_masks_stay_and_new_ones_are_refused(granularity: str) -> None:
    strategy = strategy_of("fedspa", {"method": "static", "granularity": granularity})
    model, devices, made = a_round(strategy, MODEL, [device("a")], round_context())
    assert made[0].next_mask is None
    assert devices[0].mask is not None
    assert devices[0].mask.digest == strategy.plan(model, devices, round_context(1))["a"].mask.digest
    with pytest.raises(WireFormatError, match="changes no mask"):
        strategy.check(dataclasses.replace(made[0], next_mask=full_mask(GRAPH)))


def lenet5() -> ModelGraph:
    """Caffe's LeNet5 for 26 letters, as in the zoo."""
    build = GraphBuilder("lenet5", channels=1, positions=28 * 28)
    x = build.pool(build.conv("conv1", build.input, 20, kernel=5, positions=24 * 24, bias=True), positions=12 * 12)
    x = build.pool(build.conv("conv2", x, 50, kernel=5, positions=8 * 8, bias=True), positions=4 * 4)
    build.linear("head", build.linear("fc1", build.flatten(x), 500), 26, head=True)
    return build.finish()


def uploaded(graph: ModelGraph, strategy: Any, *, number: int = 0, older: bool = False) -> tuple[ClientUpdate, bytes]:
    """The update of one device in a round, and its bytes; an older client does not know the setting `values_only`."""
    model = strategy.begin(graph, random_weights(graph, 0))
    one = dataclasses.replace(device(), capabilities=UNSAID if older else None)
    when = round_context(number)
    made, _, body = trained(model, "pi-4", strategy.plan(model, [one], when)["pi-4"], when)
    strategy.check(made)
    return made, body


def test_an_upload_of_static_masks_is_half_of_a_dense_one() -> None:
    graph = lenet5()
    assert graph.parameters == 439_096
    _, dense = uploaded(graph, strategy_of("fedavg", {}))
    made, body = uploaded(graph, strategy_of("fedspa", {"method": "static"}))
    assert len(body) <= 0.505 * len(dense), len(body) / len(dense)
    for name, held in made.mask.held.items():
        payload = made.tensors[name]
        assert isinstance(payload, Dense)
        assert payload.shape == (int(np.count_nonzero(held)),)


def test_an_upload_of_moving_masks_adds_a_bit_for_each_weight() -> None:
    made, body = uploaded(GRAPH, WEIGHT)
    assert made.next_mask is not None
    _, static = uploaded(GRAPH, strategy_of("fedspa", {"method": "static"}))
    bits = sum(-(-held.size // 8) for held in made.mask.held.values())
    sizes = measure(body).tensor_bytes
    assert sum(size for name, size in sizes.items() if name.startswith("held/")) == bits
    assert bits < len(body) - len(static) < bits + 1500


@pytest.mark.parametrize("method", ["static", "dynamic"])
def test_values_without_positions_mean_the_same_as_an_older_clients(method: str) -> None:
    strategy = strategy_of("fedspa", {"method": method})
    (new, short), (old, long) = (uploaded(GRAPH, strategy, older=older) for older in (False, True))
    assert new.rule.settings["values_only"] is True
    assert "values_only" not in old.rule.settings
    assert {name for name, payload in old.tensors.items() if isinstance(payload, Sparse)} == set(old.mask.held)
    assert len(short) < len(long)
    found, wanted = (strategy.combine(MODEL, [one], ROUND_CONTEXT).weights for one in (new, old))
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("change", [-1, 1])
def test_another_number_of_values_than_the_mask_holds_is_refused(change: int) -> None:
    made, _ = uploaded(GRAPH, WEIGHT)
    name = min(made.mask.held)
    values = np.zeros(np.count_nonzero(made.mask.held[name]) + change, np.float32)
    with pytest.raises(WireFormatError, match=f"{name}.*shape"):
        WEIGHT.check(dataclasses.replace(made, tensors={**made.tensors, name: Dense(values)}))


def exchanged(given_mask: Mask, next_mask: Mask | None, strategy: Any = WEIGHT) -> ClientUpdate:
    made = lost(given_mask, MODEL.weights, random_weights(GRAPH, 1, 0.01))
    return dataclasses.replace(made, rule=strategy.uplink.rule, next_mask=next_mask)


HELD = np.arange(2560).reshape(10, 256) % 2 == 0
GIVEN = Mask.of(GRAPH, held={"head.weight": HELD})


def test_an_honest_exchange_is_taken() -> None:
    WEIGHT.check(exchanged(GIVEN, None))
    WEIGHT.check(exchanged(GIVEN, Mask.of(GRAPH, held={"head.weight": ~HELD})))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (Mask.of(GRAPH, held={"head.weight": HELD & (np.arange(256) > 3)}), "holds 1260 weights of 'head.weight', but"),
        (Mask.of(GRAPH, held={"head.weight": HELD | (np.arange(256) < 4)}), "holds 1300 weights of 'head.weight', but"),
        (full_mask(GRAPH), "holds 2560 weights of 'head.weight', but held 1280"),
        (
            Mask.of(GRAPH, held={"head.weight": HELD, "conv1.weight": np.zeros((32, 1, 3, 3), bool)}),
            "holds 0 weights of",
        ),
        (Mask.of(GRAPH, trained=["head"], held={"head.weight": HELD}), "trains other layers"),
        (Mask.of(GRAPH, kept={"conv1": range(16)}, held={"head.weight": HELD}), "other channels of group 'conv1'"),
    ],
)
def test_a_mask_of_another_size_is_refused(found: Mask, message: str) -> None:
    with pytest.raises(WireFormatError, match=message) as caught:
        WEIGHT.check(exchanged(GIVEN, found))
    assert caught.value.fix


def test_frozen_weights_are_not_exchanged() -> None:
    frozen = Mask.of(GRAPH, trained=["conv1"], held={"head.weight": HELD})
    moved = Mask.of(GRAPH, trained=["conv1"], held={"head.weight": ~HELD})
    WEIGHT.check(exchanged(frozen, frozen))
    with pytest.raises(WireFormatError, match="which is frozen"):
        WEIGHT.check(exchanged(frozen, moved))


def test_tensors_must_be_those_of_the_given_mask() -> None:
    made = exchanged(GIVEN, None)
    elsewhere = Sparse.where(np.ones((10, 256), np.float32), ~HELD)
    dense = Dense(np.ones((10, 256), np.float32))
    for wrong, message in (
        (elsewhere, "not have exactly the entries"),
        (dense, r"shape \(10, 256\), and the plan says \(1280,\)"),
    ):
        with pytest.raises(WireFormatError, match=message):
            WEIGHT.check(dataclasses.replace(made, tensors={**made.tensors, "head.weight": wrong}))


def test_movement_is_the_norm_of_what_was_lost() -> None:
    made = exchanged(GIVEN, None)
    parts = [
        p.array if isinstance(p, Dense) else p.values for p in made.tensors.values() if isinstance(p, Dense | Sparse)
    ]
    exact = np.linalg.norm(np.concatenate([part.ravel().astype(np.float64) for part in parts]))
    assert WEIGHT.movement(made) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("graph", [cnn4(), cnn4(norm_groups=4), preresnet18(), character_lstm()], ids=lambda g: g.name)
@pytest.mark.parametrize("density", [0.3, 0.5, 0.8])
def test_channel_masks_have_the_density_that_was_asked_for(graph: ModelGraph, density: float) -> None:
    strategy = strategy_of("fedspa", {"granularity": "channel", "density": density})
    weights = {t.name: np.zeros(t.shape, t.dtype.value) for t in graph.tensors}
    planned_tasks = strategy.plan(Model(graph, weights), [device("a"), device("b")], round_context())
    assert planned_tasks["a"].mask.digest != planned_tasks["b"].mask.digest
    for planned in planned_tasks.values():
        assert 0.98 * density * graph.parameters < planned.mask.cost.parameters <= density * graph.parameters
        assert not planned.mask.held


def test_channel_masks_move_at_constant_cost() -> None:
    model, devices = CHANNEL.begin(GRAPH, MODEL.weights), [device("a"), device("b")]
    kept: list[Mask] = []
    for number in range(4):
        planned = CHANNEL.plan(model, devices, round_context(number, rounds=5))["a"]
        assert isinstance(rule_of(planned.rule), ChannelRegrow)
        model, devices, made = a_round(CHANNEL, model, devices, round_context(number, rounds=5))
        kept.append(planned.mask)
        assert all(one.next_mask is not None for one in made)
    assert len({mask.cost for mask in kept}) == 1
    assert len({mask.digest for mask in kept}) == 4
    # alpha_0 of 0.5: half of the channels were exchanged in the first round.
    came = np.setdiff1d(kept[1].kept["conv4"], kept[0].kept["conv4"]).size
    assert came == min(-(-kept[0].widths["conv4"] // 2), 256 - kept[0].widths["conv4"])


def test_a_slow_device_gets_fewer_channels() -> None:
    roomy = CHANNEL.plan(MODEL, [device("a")], round_context())["a"]
    assert roomy.predicted is not None
    assert roomy.predicted.seconds is not None
    limit = roomy.predicted.seconds / 2
    for mask in (None, roomy.mask):
        found = CHANNEL.plan(MODEL, [device("a", round_seconds=limit, mask=mask)], round_context())["a"]
        assert found.predicted is not None
        assert found.predicted.seconds is not None
        assert 0.9 * limit < found.predicted.seconds <= limit
        if mask is not None:
            assert all(set(found.mask.kept[name]) <= set(mask.kept[name]) for name in mask.kept)


def test_channel_masks_of_another_size_are_refused() -> None:
    half = random_channels(GRAPH, 0.5, np.random.default_rng(0))
    others = Mask.of(GRAPH, kept={n: np.sort((k + 1) % GRAPH.group[n].width) for n, k in half.kept.items()})
    CHANNEL.check(exchanged(half, others, CHANNEL))
    for found, message in (
        (leading_channels(GRAPH, 0.25), "keeps 8 channels of group 'conv1', but had 16"),
        (full_mask(GRAPH), "keeps 32 channels of group 'conv1', but had 16"),
        (Mask.of(GRAPH, kept=half.kept, trained=["head"]), "trains other layers"),
        (Mask.of(GRAPH, kept=half.kept, held={"head.weight": np.zeros((10, 128), bool)}), "not hold every weight of"),
    ):
        with pytest.raises(WireFormatError, match=message):
            CHANNEL.check(exchanged(half, found, CHANNEL))


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.123])
def test_a_model_of_any_size_has_the_largest_weights_of_every_tensor(fraction: float) -> None:
    found = WEIGHT.extract(MODEL, fraction, seed=1)
    share = found.cost.parameters / GRAPH.parameters
    assert fraction - 1e-3 < share <= fraction
    for name, held in found.held.items():
        sizes = np.abs(MODEL.weights[name])
        assert sizes[held].min() >= sizes[~held].max()
    channels = CHANNEL.extract(MODEL, fraction, seed=1)
    assert 0.95 * fraction < channels.cost.parameters / GRAPH.parameters <= fraction
    assert not channels.held


@pytest.mark.parametrize("percent", range(5, 100, 5))
def test_a_model_of_any_size_is_never_larger_than_was_asked_for(percent: int) -> None:
    graph = character_lstm()
    weights = {t.name: np.zeros(t.shape, t.dtype.value) for t in graph.tensors}
    found = WEIGHT.extract(Model(graph, weights), percent / 100, seed=1)
    assert 0 <= percent / 100 * graph.parameters - found.cost.parameters < 10


def test_devices_fine_tune_their_masks() -> None:
    strategy = strategy_of("fedspa", {"fine_tune_epochs": 2})
    assert strategy.personalise(MODEL, [device(mask=GIVEN)], round_context(10))["pi-4"].mask.digest == GIVEN.digest
    assert WEIGHT.personalise(MODEL, [device(mask=GIVEN)], round_context(10)) == {}


def test_a_density_that_the_model_cannot_have_is_refused_before_the_first_round() -> None:
    with pytest.raises(MaskError, match="norms and biases are always held"):
        strategy_of("fedspa", {"density": 0.001}).begin(GRAPH, MODEL.weights)
    with pytest.raises(MaskError, match="not even the narrowest submodel"):
        strategy_of("fedspa", {"density": 1e-6, "granularity": "channel"}).begin(GRAPH, MODEL.weights)
    with pytest.raises(SchemaError, match=r"'settings.density' must be a share above 0"):
        strategy_of("fedspa", {"density": 0})

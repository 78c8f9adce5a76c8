"""Which layers devices train: the head stays, plans fit every budget, and freezing goes on top of channels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError, SchemaError
from edgefl.masks import Mask, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.planning.freezing import PlanningMethod
from edgefl.strategies import Participant, RoundContext, strategy_of
from edgefl.strategies.freezing import DeviceMasks, Freezing, FrozenLayers, body_of
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.widths import Placement, Width, Widths
from edgefl.values import Budget, LocalWork
from examples.networks import cnn4
from tests.random_models import model_graphs
from tests.values.samples import PROFILE

PLANNED = Freezing(frozen=FrozenLayers.PLANNED)
FULL, LEVELS = Widths(width=Width.FULL), Widths(width=Width.LEVELS)


def chain(*sizes: int) -> ModelGraph:
    """Layers in a row of about these sizes, each its own block, and a head."""
    build = GraphBuilder("chain", channels=1)
    x, before = build.input, 1
    for number, size in enumerate(sizes):
        x, before = build.linear(f"l{number}", x, max(1, size // before), bias=False), max(1, size // before)
    build.linear("head", x, 2, bias=False, head=True)
    return build.finish()


def rounds(graph: ModelGraph, budgets: dict[str, Budget], samples: int = 100) -> dict[str, RoundEstimate]:
    return {
        name: RoundEstimate(graph, Participant(name, PROFILE, budget, samples), LocalWork(), 1000)
        for name, budget in budgets.items()
    }


def at(number: int = 0, seed: int = 1) -> RoundContext:
    return RoundContext(number, 100, seed)


FIRST = at()


def parts(
    freezing: Freezing, widths: Widths, graph: ModelGraph, when: RoundContext = FIRST, /, **budgets: Budget
) -> DeviceMasks:
    return freezing.submodels(widths, rounds(graph, budgets), when)


def parameters(most: int) -> Budget:
    return Budget(trainable_parameters=most)


def test_the_head_is_what_writes_the_classes() -> None:
    graph = cnn4()
    assert body_of(graph) == set(graph.trainable_layers) - {"head"}
    build = GraphBuilder("all head", channels=3)
    build.linear("head", build.input, 2, head=True)
    with pytest.raises(MaskError, match="'all head' is all head"):
        body_of(build.finish())


@pytest.mark.parametrize("widths", [FULL, LEVELS, Widths(), Widths(placement=Placement.ROLLING)])
def test_a_frozen_head_is_trained_by_nobody_and_needs_no_budget(widths: Widths) -> None:
    graph = cnn4()
    body = graph.parameters - graph.tensor["head.weight"].size
    found = parts(Freezing(frozen=FrozenLayers.HEAD), widths, graph, a=Budget(), b=parameters(body)).masks
    for mask in found.values():
        assert mask.trained == body_of(graph)
        assert mask.cost.parameters == graph.parameters


def test_with_nothing_frozen_masks_are_those_of_the_channels() -> None:
    graph = cnn4()
    budgets = {"a": Budget(), "b": Budget(round_seconds=3.0)}
    found = parts(Freezing(), LEVELS, graph, **budgets)
    expected = LEVELS.masks(rounds(graph, budgets), RoundContext(0, 100, 1))
    assert {name: mask.digest for name, mask in found.masks.items()} == {n: m.digest for n, m in expected.items()}
    assert found.figures == {}


def test_the_papers_example_of_unit_layers() -> None:
    # Three devices that may train 1, 1 and 4 of four equal layers: both weak ones share a layer. With S = (3, 1, 1, 1)
    # / 3 the strong device pays 1/3 / 1/3 = 1, the weak ones 1/3 each: a bias of 4 * (5/3 - 1) = 8/3 layers.
    graph = chain(4, 4, 4, 4)
    assert [graph.tensor[f"l{n}.weight"].size for n in range(4)] == [4, 4, 4, 4]
    found = parts(PLANNED, FULL, graph, a=parameters(4), b=parameters(4), c=parameters(16))
    trained = {name: set(mask.trained) for name, mask in found.masks.items()}
    assert trained["c"] == {"l0", "l1", "l2", "l3"}
    assert trained["a"] == trained["b"]
    assert len(trained["a"]) == 1
    assert found.figures == {
        "bias": pytest.approx(4 * 8 / 3),
        "bias_bound": pytest.approx(4 * 8 / 3),
        "unused_parameters": 0,
        "untrained_parameters": 0,
        "freezing_devices": 2,
    }


def within(graph: ModelGraph, budgets: dict[str, Budget], found: DeviceMasks) -> bool:
    here = rounds(graph, budgets)
    return all(here[name].fits(mask.cost) for name, mask in found.masks.items())


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_no_device_is_ever_over_budget(data: st.DataObject) -> None:
    graph = data.draw(st.sampled_from([cnn4(), cnn4(norm_groups=4), chain(4, 40, 8, 200, 16)]))
    whole = next(iter(rounds(graph, {"x": Budget()}).values()))
    use = whole.use(Mask.of(graph).cost)
    shares = st.floats(0.05, 1.2)
    budgets = {}
    for number in range(data.draw(st.integers(1, 4))):
        limits: dict[str, Any] = {}
        for limit in ("trainable_parameters", "round_seconds", "peak_bytes", "joules"):
            most = getattr(use, limit)
            if most is not None and data.draw(st.booleans()):
                limits[limit] = type(most)(most * data.draw(shares))
        if data.draw(st.booleans()):
            limits["kept_fraction"] = data.draw(st.floats(0.05, 1))
        budgets[f"d{number}"] = Budget(**limits)
    widths = data.draw(
        st.sampled_from([FULL, LEVELS, Widths(), Widths(width=Width.LEVELS, placement=Placement.ROLLING)])
    )
    freezing = Freezing(
        frozen=FrozenLayers.PLANNED,
        planner=data.draw(st.sampled_from([PlanningMethod.AUTO, PlanningMethod.SEQUENTIAL, PlanningMethod.RANDOM])),
        least_trained=data.draw(st.sampled_from([0.0, 0.5, 1.0])),
    )
    found = parts(freezing, widths, graph, at(data.draw(st.integers(0, 9))), **budgets)
    assert within(graph, budgets, found)
    for mask in found.masks.values():
        assert mask.trained
        assert "head" not in mask.trained
    if found.masks:
        assert found.figures["bias"] >= found.figures.get("bias_bound", 0) - 1e-6


@settings(deadline=None, max_examples=25)
@given(model_graphs(), st.lists(st.floats(0.1, 1), min_size=1, max_size=3))
def test_plans_of_any_model_fit_and_are_the_same_again(graph: ModelGraph, shares: list[float]) -> None:
    budgets = {f"d{n}": parameters(int(share * graph.parameters)) for n, share in enumerate(shares)}
    found = parts(PLANNED, FULL, graph, **budgets)
    assert within(graph, budgets, found)
    turned = dict(reversed(budgets.items()))
    again = parts(PLANNED, FULL, graph, at(seed=77), **turned)
    assert {n: m.digest for n, m in again.masks.items()} == {n: m.digest for n, m in found.masks.items()}


def test_a_device_with_fewer_channels_trains_fewer_layers_of_them() -> None:
    """PerFedMask on HeteroFL's widths: what it keeps is limited, and what it trains even more."""
    graph = cnn4()
    half = leading_channels(graph, 0.5)
    last = half.cost.trained_parameters * 0.8
    weak = Budget(kept_fraction=0.3, trainable_parameters=int(last))
    found = parts(PLANNED, LEVELS, graph, strong=Budget(), weak=weak)
    mask = found.masks["weak"]
    assert mask.widths == half.widths
    assert mask.trained < body_of(graph)
    assert {"conv4", "norm4"} <= mask.trained
    assert mask.cost.trained_parameters <= last
    assert found.masks["strong"].trained == body_of(graph)
    assert found.figures["freezing_devices"] == 1


def test_a_part_is_so_wide_that_enough_of_it_can_be_trained() -> None:
    graph = cnn4()
    weak = parameters(80_000)
    found = {}
    for least in (0.5, 1.0):
        freezing = Freezing(frozen=FrozenLayers.PLANNED, least_trained=least)
        found[least] = parts(freezing, LEVELS, graph, strong=Budget(), weak=weak).masks["weak"]
    # Block 4 has three quarters of the body: at half the width 73,856 of 97,392 parameters, which is enough for a half.
    assert found[0.5].widths["conv4"] == 128
    assert found[0.5].trained < body_of(graph)
    assert found[1.0].widths["conv4"] == 64
    assert found[1.0].trained == body_of(graph)
    whole = parts(PLANNED, FULL, graph, strong=Budget(), weak=weak).masks["weak"]
    assert whole.widths["conv4"] == 256
    assert whole.cost.trained_parameters <= 80_000


def test_blocks_that_devices_cannot_train_together_are_trained_in_turn() -> None:
    graph = chain(4, 4, 4, 4)
    seen: set[str] = set()
    for number in range(8):
        found = parts(PLANNED, FULL, graph, at(number), only=parameters(4))
        assert len(found.masks["only"].trained) == 1
        assert found.figures["untrained_parameters"] == 12
        assert "bias_bound" not in found.figures
        seen |= found.masks["only"].trained
    assert seen == {"l0", "l1", "l2", "l3"}
    pair: list[set[str]] = []
    for number in range(8):
        masks = parts(PLANNED, FULL, graph, at(number), a=parameters(4), b=parameters(4)).masks
        pair += [set(mask.trained) for mask in masks.values()]
    assert set().union(*pair) == {"l0", "l1", "l2", "l3"}


def test_a_block_beyond_every_budget_stays_frozen_and_the_rest_is_planned() -> None:
    graph = chain(4, 400, 4000, 100)
    found = parts(PLANNED, FULL, graph, a=parameters(500), b=parameters(1000))
    assert all("l2" not in mask.trained for mask in found.masks.values())
    assert set().union(*(mask.trained for mask in found.masks.values())) == {"l0", "l1", "l3"}
    assert found.figures["untrained_parameters"] == graph.tensor["l2.weight"].size


def test_devices_that_can_train_nothing_are_left_out() -> None:
    graph = chain(40, 400)
    assert set(parts(PLANNED, FULL, graph, a=parameters(3), b=parameters(10_000)).masks) == {"b"}
    nobody = parts(PLANNED, FULL, graph, a=parameters(3), b=Budget(peak_bytes=1000))
    assert nobody.masks == {}
    assert nobody.figures == {}
    assert parts(PLANNED, FULL, graph).masks == {}


@pytest.mark.parametrize("planner", PlanningMethod)
def test_every_planner_can_be_asked_for(planner: PlanningMethod) -> None:
    graph = chain(4, 40, 8, 200, 16)
    budgets = {"a": parameters(60), "b": parameters(250), "c": Budget()}
    found = parts(Freezing(frozen=FrozenLayers.PLANNED, planner=planner), FULL, graph, **budgets)
    assert within(graph, budgets, found)
    best = parts(PLANNED, FULL, graph, **budgets).figures["bias"]
    assert found.figures["bias"] >= best - 1e-6


def test_chance_changes_from_round_to_round_and_nothing_else_does() -> None:
    graph = chain(8, 8, 8, 8, 8, 8)
    sets = set()
    for seed in range(12):
        freezing = Freezing(frozen=FrozenLayers.PLANNED, planner=PlanningMethod.RANDOM)
        found = parts(freezing, FULL, graph, at(seed=seed), a=parameters(9), b=Budget())
        sets.add(frozenset(found.masks["a"].trained))
    assert len(sets) > 2


def test_samples_weigh_in_the_bias() -> None:
    graph = chain(4, 4)
    here = rounds(graph, {"weak": parameters(4), "strong": Budget()})
    heavy = dict(here)
    heavy["strong"] = RoundEstimate(graph, Participant("strong", PROFILE, Budget(), 900), LocalWork(), 1000)
    found = [PLANNED.submodels(FULL, each, RoundContext(0, 9, 1)).figures["bias"] for each in (here, heavy)]
    # d (sum p_n / min S - 1): weak trains what both train, strong also what it trains alone.
    assert found[0] == pytest.approx(8 * (0.5 / 1 + 0.5 / 0.5 - 1))
    assert found[1] == pytest.approx(8 * (0.1 / 1 + 0.9 / 0.9 - 1))


def test_a_tolerance_of_everything_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"'settings.unused_tolerance' must be below 1"):
        strategy_of("perfedmask", {"unused_tolerance": 1})
    assert np.isclose(PLANNED.unused_tolerance, 0.05)

"""Networks side by side: who trains which, what is averaged, and what is judged."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from edgefl.errors import MaskError
from edgefl.federation.evaluation import networks_in
from edgefl.masks import Array, Mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.strategies import ClientUpdate, Joined, Model, Participant, RoundContext, strategy_of
from edgefl.values import Budget, FieldError, LocalWork
from tests.strategies.rounds import client_update, random_weights
from tests.values.samples import PROFILE


def perceptron() -> ModelGraph:
    builder = GraphBuilder("perceptron", channels=4)
    hidden = builder.linear("hidden", builder.input, 10)
    builder.linear("head", hidden, 3, head=True)
    return builder.finish()


GRAPH = perceptron()
WEIGHTS = random_weights(GRAPH, 1)
NETS = "0.2 x 2, 0.4"
"""Of ten channels: 0 to 3, then 4 and 5, then 6 and 7; the last two belong to nobody."""
CONTEXT = RoundContext(0, 4, seed=3, work=LocalWork(epochs=1, batch_size=4))


def joined() -> Joined:
    found = strategy_of("joined", {"nets": NETS})
    assert isinstance(found, Joined)
    return found


def participants(names: str, **budget: float) -> list[Participant]:
    return [Participant(name, PROFILE, Budget(**budget), samples=10) for name in names]  # type: ignore[arg-type]


def channels(masks: Mapping[str, Mask]) -> dict[str, list[int]]:
    return {device: mask.kept["hidden"].tolist() for device, mask in masks.items()}


def planned(model: Model, some: Sequence[Participant]) -> dict[str, Mask]:
    return {device: task.mask for device, task in joined().plan(model, some, CONTEXT).items()}


def played(model: Model, some: Sequence[Participant]) -> Model:
    """The model after a round in which every device sends what it was given."""
    masks = planned(model, some)
    updates = [client_update(mask, model.weights, model.weights, device=device) for device, mask in masks.items()]
    return joined().combine(model, updates, CONTEXT)


def test_networks_are_blocks_of_channels_widest_first() -> None:
    masks = joined().networks(Mask.of(GRAPH))
    assert [mask.kept["hidden"].tolist() for mask in masks] == [[0, 1, 2, 3], [4, 5], [6, 7]]


def test_a_device_gets_the_widest_network_that_it_can_train_and_narrow_ones_are_shared_evenly() -> None:
    model = joined().begin(GRAPH, WEIGHTS)
    weak = {"kept_fraction": 0.25}
    found = channels(planned(model, [*participants("ab"), *participants("cdef", **weak)]))
    assert found["a"] == found["b"] == [0, 1, 2, 3]
    assert sorted(found[device] for device in "cdef") == [[4, 5], [4, 5], [6, 7], [6, 7]]
    assert planned(model, participants("x", kept_fraction=0.01)) == {}


def test_a_device_keeps_its_network_and_a_late_one_gets_one_at_once() -> None:
    weak = {"kept_fraction": 0.25}
    model = joined().begin(GRAPH, WEIGHTS)
    first = channels(planned(model, participants("cde", **weak)))
    after = played(model, participants("cde", **weak))
    for names in ("edc", "c", "dx", "xyzc"):
        found = channels(planned(after, participants(names, **weak)))
        assert {device: found[device] for device in names if device in first} == {
            device: first[device] for device in names if device in first
        }
    fewest = min(([4, 5], [6, 7]), key=list(first.values()).count)
    assert channels(planned(after, participants("x", **weak)))["x"] == fewest


def test_a_device_that_can_no_longer_train_its_network_gets_a_narrower_one() -> None:
    model = joined().begin(GRAPH, WEIGHTS)
    after = played(model, participants("a"))
    assert channels(planned(after, participants("a")))["a"] == [0, 1, 2, 3]
    assert channels(planned(after, participants("a", kept_fraction=0.25)))["a"] == [4, 5]


def moved_by(step: int) -> dict[str, Array]:
    return {name: array + step for name, array in WEIGHTS.items()}


def test_two_networks_of_three_devices_by_hand() -> None:
    """Network [4, 5] has a device of 10 samples that adds 1 and one of 30 that adds 2, so it moves by 7/4; [6, 7] has a
    device of 10 that adds 4. The bias of the head has no channels: (10 * 1 + 30 * 2 + 10 * 4) / 50 = 2.2."""
    model = joined().begin(GRAPH, WEIGHTS)
    _, narrow, other = joined().networks(Mask.of(GRAPH))
    made = [
        client_update(
            mask, WEIGHTS, {name: array + by for name, array in WEIGHTS.items()}, samples=count, device=device
        )
        for device, mask, by, count in (("c", narrow, 1, 10), ("d", narrow, 2, 30), ("e", other, 4, 10))
    ]
    after = joined().combine(model, made, CONTEXT)
    moved = {name: after.weights[name] - WEIGHTS[name] for name in WEIGHTS}
    assert moved["hidden.bias"] == pytest.approx([0, 0, 0, 0, 1.75, 1.75, 4, 4, 0, 0], abs=1e-6)
    assert moved["head.weight"][:, 4] == pytest.approx(1.75, abs=1e-6)
    assert moved["head.weight"][:, 8] == pytest.approx(0)
    assert moved["head.bias"] == pytest.approx(2.2, abs=1e-6)


def slow_mean(name: str, updates: Sequence[ClientUpdate]) -> Array:
    """Entry by entry: the mean, by samples, over the devices whose network has it."""
    whole = WEIGHTS[name].astype(np.float64)
    found = whole.copy()
    for place in np.ndindex(*whole.shape):
        total = count = 0.0
        for update in updates:
            kept = update.mask.kept["hidden"].tolist()
            axis = {"hidden.weight": 0, "hidden.bias": 0, "head.weight": 1}.get(name)
            if axis is not None and place[axis] not in kept:
                continue
            at = list(place)
            if axis is not None:
                at[axis] = kept.index(place[axis])
            total += update.result.samples * float(update.tensors[name].array[tuple(at)])  # type: ignore[union-attr]
            count += update.result.samples
        if count:
            found[place] = total / count
    return found


def test_each_network_is_averaged_over_its_own_devices_as_in_a_slow_loop() -> None:
    model = joined().begin(GRAPH, WEIGHTS)
    masks = joined().networks(Mask.of(GRAPH))
    updates = [
        client_update(
            masks[number % 3], WEIGHTS, random_weights(GRAPH, 10 + number), samples=5 + number, device=f"d{number}"
        )
        for number in range(7)
    ]
    after = joined().combine(model, updates, CONTEXT)
    for name in WEIGHTS:
        assert after.weights[name] == pytest.approx(slow_mean(name, updates), abs=1e-5), name


def test_what_nobody_trains_is_not_judged() -> None:
    strategy = joined()
    part = strategy.judged(Mask.of(GRAPH))
    assert part.kept["hidden"].tolist() == list(range(8))
    model = strategy.begin(GRAPH, WEIGHTS)
    assert len(networks_in(strategy, model, part)) == 3
    two = strategy.extract(model, 6.5 * 8 / GRAPH.parameters + 3 / GRAPH.parameters, 0)
    assert two.kept["hidden"].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(MaskError, match="not even one"):
        strategy.extract(model, 0.01, 0)


@pytest.mark.parametrize("nets", ["0.5 x 3", "wide", "0.5 x x", "", "0 x 2", "0.01 x 65", "-0.1"])
def test_widths_that_are_none_or_too_many_are_refused(nets: str) -> None:
    with pytest.raises(FieldError, match="nets"):
        strategy_of("joined", {"nets": nets})


def test_a_model_too_narrow_for_its_networks_is_refused() -> None:
    with pytest.raises(MaskError, match="too few for the networks"):
        strategy_of("joined", {"nets": "0.01 x 12"}).begin(GRAPH, WEIGHTS)

"""The widest uniform submodel that fits."""

from collections.abc import Callable

import pytest

from edgefl.errors import MaskError
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import Cost
from edgefl.planning import predict, widest
from edgefl.values import Budget
from examples.networks import cnn4, preresnet18
from tests.values.samples import PROFILE


def parameters(mask: Mask) -> int:
    return mask.cost.parameters


def test_everything_is_kept_if_everything_fits() -> None:
    graph = cnn4()
    assert widest(graph, lambda cost: True).digest == full_mask(graph).digest


def test_the_next_wider_submodel_would_not_fit() -> None:
    graph = preresnet18()
    limit = 0.3 * graph.parameters
    mask = widest(graph, lambda cost: cost.parameters <= limit, multiple=1)
    assert 0.97 * limit < parameters(mask) <= limit
    shares = [mask.widths[group.name] / group.width for group in graph.groups if group.fixed is None]
    assert max(shares) - min(shares) < 1 / 64


def test_wide_layers_get_widths_that_kernels_like() -> None:
    graph = preresnet18()
    mask = widest(graph, lambda cost: cost.parameters <= 0.3 * graph.parameters, multiple=16)
    cuttable = [group for group in graph.groups if group.fixed is None]
    assert all(mask.widths[group.name] % 16 == 0 for group in cuttable)
    assert 0.2 * graph.parameters < parameters(mask) <= 0.3 * graph.parameters


def test_frozen_layers_leave_room_for_width() -> None:
    graph = cnn4()
    trained = [layer for layer in graph.trainable_layers if layer == "head"]

    def fits(cost: Cost) -> bool:
        return cost.backward_multiply_adds < 2_000_000

    some, every = widest(graph, fits, trained=trained), widest(graph, fits)
    assert some.trained == frozenset(trained)
    assert parameters(some) > parameters(every)


def test_costs_that_are_known_are_not_counted_again_and_change_nothing() -> None:
    graph, known = cnn4(), dict[int, Cost]()

    def at_most(share: float) -> Callable[[Cost], bool]:
        return lambda cost: cost.parameters <= share * graph.parameters

    for share in (0.5, 0.2):
        assert widest(graph, at_most(share), known=known).digest == widest(graph, at_most(share)).digest
    counted = dict(known)
    widest(graph, at_most(0.5), known=known)
    assert known == counted


def test_a_device_too_small_for_anything_is_told_so() -> None:
    with pytest.raises(MaskError, match="not even the narrowest submodel"):
        widest(cnn4(), lambda cost: False)


def test_a_prediction_is_the_fit_times_the_work() -> None:
    cost = full_mask(cnn4()).cost
    use = predict(PROFILE, cost, batch=16, steps=10)
    one = PROFILE.cost.step_seconds(
        forward_multiply_adds=16 * cost.forward_multiply_adds,
        backward_multiply_adds=16 * cost.backward_multiply_adds,
        activation_bytes=cost.activation_bytes(16),
        trained_parameters=cost.trained_parameters,
    )
    assert use.round_seconds == pytest.approx(10 * one)
    assert use.peak_bytes == PROFILE.cost.peak_bytes(
        activation_bytes=cost.activation_bytes(16),
        parameter_bytes=cost.parameter_bytes,
        trained_parameters=cost.trained_parameters,
    )
    assert use.trainable_parameters == cost.trained_parameters
    assert Budget(round_seconds=9 * one).exceeded_by(use) == ("round_seconds",)
    assert PROFILE.power is not None
    assert PROFILE.power.busy_watts is not None
    assert use.joules == pytest.approx(PROFILE.power.busy_watts * 10 * one)

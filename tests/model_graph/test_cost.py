"""Costs, computed by hand."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given

from edgefl.errors import MaskError
from edgefl.masks import Mask
from edgefl.model_graph import GraphBuilder, Layer, ModelGraph, TensorRole, TensorSpec, Term, cost_of
from examples.networks import cnn4, preresnet18
from tests.random_models import masked_models


def chain() -> ModelGraph:
    """5 inputs -> 4 -> 3 -> 2 classes, linear without biases."""
    build = GraphBuilder("chain", channels=5)
    x = build.linear("one", build.input, 4, bias=False)
    x = build.linear("two", x, 3, bias=False)
    build.linear("head", x, 2, bias=False, head=True)
    return build.finish()


def test_the_whole_model_costs_what_pencil_and_paper_say() -> None:
    cost = cost_of(chain())
    assert cost.parameters == cost.trained_parameters == 20 + 12 + 6
    assert cost.parameter_bytes == 4 * 38
    assert cost.forward_multiply_adds == 38
    # Weight gradients 20 + 12 + 6, input gradients of all but the first layer 12 + 6.
    assert cost.backward_multiply_adds == 38 + 18
    assert cost.saved_activations == 5 + 4 + 3 + 2
    assert cost.transient_activations == 5 + 4
    assert cost.activation_bytes(batch=8) == 4 * 8 * (14 + 9)


def test_narrower_groups_shrink_both_sides() -> None:
    cost = cost_of(chain(), widths={"one": 2, "two": 1})
    assert cost.parameters == 5 * 2 + 2 * 1 + 1 * 2
    assert cost.forward_multiply_adds == 14
    assert cost.backward_multiply_adds == 14 + 2 + 2
    assert cost.saved_activations == 5 + 2 + 1 + 2


def test_a_frozen_beginning_has_no_backward_pass() -> None:
    cost = cost_of(chain(), trained={"head"})
    assert cost.backward_multiply_adds == 6
    assert cost.trained_parameters == 6
    assert cost.saved_activations == 3 + 2  # the head's input and output
    assert cost.forward_multiply_adds == 38


def test_a_frozen_middle_still_passes_gradients_on() -> None:
    cost = cost_of(chain(), trained={"one"})
    assert cost.backward_multiply_adds == 20 + 12 + 6


def test_nothing_trained_costs_no_backward_pass() -> None:
    cost = cost_of(chain(), trained=())
    assert (cost.backward_multiply_adds, cost.saved_activations, cost.trained_parameters) == (0, 0, 0)


def test_held_weights_count_as_parameters_but_engines_still_multiply_zeros() -> None:
    cost = cost_of(chain(), held={"one.weight": 7})
    assert cost.parameters == 7 + 12 + 6
    assert cost.forward_multiply_adds == 38
    assert cost.held_multiply_adds == 7 + 12 + 6


def test_convolution_multiply_adds_are_weights_times_positions() -> None:
    convolutions = 28**2 * 288 + 14**2 * 18_432 + 7**2 * 73_728 + 3**2 * 294_912
    norms = 28**2 * 32 + 14**2 * 64 + 7**2 * 128 + 3**2 * 256
    assert cost_of(cnn4()).forward_multiply_adds == convolutions + norms + 2_560


def test_running_statistics_are_bytes_but_no_parameters() -> None:
    build = GraphBuilder("tracked", channels=1)
    x = build.norm("norm", build.linear("one", build.input, 3, bias=False), statistics=True)
    build.linear("head", x, 2, bias=False, head=True)
    cost = cost_of(build.finish())
    assert cost.parameters == 3 + 6 + 6
    assert cost.parameter_bytes == 4 * (15 + 6)


def test_products_of_activations_have_two_gradients() -> None:
    graph = chain()
    layers = tuple(
        dataclasses.replace(layer, products=(Term(10, ("one", "one")),)) if layer.name == "two" else layer
        for layer in graph.layers
    )
    attention = dataclasses.replace(graph, layers=layers)
    assert cost_of(attention).forward_multiply_adds == 38 + 160
    assert cost_of(attention).backward_multiply_adds == 56 + 320
    assert cost_of(attention, trained={"head"}).backward_multiply_adds == 6


def test_a_product_with_one_trained_side_has_one_gradient_and_remembers_the_other() -> None:
    graph = ModelGraph(
        "attention",
        (TensorSpec("q", (3, 3), TensorRole.WEIGHT, 1), TensorSpec("k", (3, 3), TensorRole.WEIGHT, 1)),
        (
            Layer("q", "linear", "q", ("q",), (), (Term(10),)),
            Layer("k", "linear", "k", ("k",), (), (Term(1000),)),
            Layer("qk", "attention", "qk", (), ("q", "k"), (Term(7),), (Term(100),)),
        ),
        (),
        5,
    )
    cost = cost_of(graph, trained={"q"})
    assert cost.backward_multiply_adds == 9 + 100
    assert cost.saved_activations == 5 + 10 + 1000 + 7


@pytest.mark.parametrize(
    "arguments",
    [
        {"widths": {"oen": 1}},
        {"widths": {"one": 0}},
        {"widths": {"one": 5}},
        {"trained": {"oen"}},
        {"held": {"one.weight": 21}},
        {"held": {"oen.weight": 1}},
    ],
)
def test_what_is_not_of_the_model_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(MaskError):
        cost_of(chain(), **arguments)


def test_half_width_is_about_a_quarter_of_the_compute() -> None:
    graph = preresnet18()
    half = {group.name: group.width // 2 for group in graph.groups if group.fixed is None}
    ratio = cost_of(graph, half).forward_multiply_adds / cost_of(graph).forward_multiply_adds
    assert 0.25 < ratio < 0.26


@given(masked_models())
def test_cost_counts_what_the_mask_holds(case: tuple[ModelGraph, Mask]) -> None:
    graph, mask = case
    held = {
        t.name: int(mask.held[t.name].sum()) if t.name in mask.held else _size(mask.shapes[t.name])
        for t in graph.tensors
    }
    parameters = [t.name for t in graph.tensors if t.role is not TensorRole.STATISTIC]
    assert mask.cost.parameters == sum(held[name] for name in parameters)
    trained = [name for name in parameters if name in mask.trained_tensors]
    assert mask.cost.trained_parameters == sum(held[name] for name in trained)
    full = cost_of(graph)
    assert mask.cost.forward_multiply_adds <= full.forward_multiply_adds
    assert mask.cost.backward_multiply_adds <= full.backward_multiply_adds
    assert mask.cost.saved_activations <= full.saved_activations


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size

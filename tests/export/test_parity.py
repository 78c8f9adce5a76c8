"""The parity check itself: it must see what is wrong, and forgive rounding alone."""

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import nn

from edgefl.artifacts.cut import GRADIENT
from edgefl.masks import full_mask
from export.describe_graph import describe
from export.engines import onnx_step
from export.parity import Reference, check_parity, compare, random_submodel, reference
from export.trace_model import trace_model
from export.training_graph import training_graph

pytestmark = pytest.mark.usefixtures("one_thread")

IMAGES = torch.zeros(2, 1, 8, 8)


def network() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(36, 3)),
    )


def graph_of(model: nn.Module, example: torch.Tensor) -> onnx.ModelProto:
    return training_graph(model, example)[0]


def given(seed: int = 0) -> Reference:
    return reference(network(), IMAGES, seed=seed)


def test_a_right_graph_holds() -> None:
    model = network()
    parity = check_parity(model, graph_of(model, IMAGES).SerializeToString(), IMAGES)
    assert parity.holds
    assert 0 < parity.gradient_error < 1e-5


def test_a_graph_with_one_wrong_number_does_not_hold() -> None:
    model = network()
    graph = graph_of(model, IMAGES)
    wrong = [node for node in graph.graph.node if node.op_type == "BatchNormalization"]
    for node in wrong:
        for attribute in node.attribute:
            if attribute.name == "epsilon":
                attribute.f *= 100
    assert wrong
    assert not check_parity(model, graph.SerializeToString(), IMAGES).holds


@pytest.mark.parametrize("drop", [nn.Dropout(0.4), nn.Dropout2d(0.4)])
def test_dropout_is_compared_with_the_same_entries_dropped(drop: nn.Module) -> None:
    model = nn.Sequential(
        *(nn.Conv2d(1, 6, 3), nn.ReLU(), drop, nn.Flatten(), nn.Linear(216, 9)),
        *(nn.ReLU(), nn.Dropout(0.2), nn.Linear(9, 3)),
    )
    graph = graph_of(model, IMAGES)
    assert check_parity(model, graph.SerializeToString(), IMAGES).gradient_error < 1e-5
    for constant in graph.graph.initializer:  # another seed's entries: the comparison must notice
        if constant.data_type == onnx.TensorProto.UINT64 and not constant.dims:
            changed = numpy_helper.to_array(constant) ^ np.uint64(1 << 40)
            constant.CopyFrom(numpy_helper.from_array(np.asarray(changed), constant.name))
    assert not check_parity(model, graph.SerializeToString(), IMAGES).holds


def test_a_small_difference_in_the_smallest_gradient_is_seen() -> None:
    known = given()
    right = {name: array for name, array in known.truth.items() if name != "y"}
    smallest = min(
        (n for n in right if n.startswith(GRADIENT) and n != "grad:0.bias"), key=lambda n: abs(right[n]).max()
    )
    wrong = right | {smallest: right[smallest] * (1 + 1e-3)}
    assert compare(known, right).gradient_error == 0
    assert compare(known, wrong).gradient_error == pytest.approx(1e-3)
    assert compare(known, wrong).worst == smallest.removeprefix(GRADIENT)


def test_a_gradient_that_a_norm_makes_zero_is_measured_against_the_others() -> None:
    known = given()
    sizes = {name: float(abs(array).max()) for name, array in known.truth.items() if name.startswith(GRADIENT)}
    assert sizes["grad:0.bias"] < 1e-12 * max(sizes.values())
    noise = np.full(4, 1e-7 * max(sizes.values()))
    assert compare(known, {**known.truth, "grad:0.bias": noise}).gradient_error == pytest.approx(1e-7, rel=1e-3)


def test_a_wrong_loss_is_seen() -> None:
    known = given()
    assert not compare(known, {**known.truth, "loss": known.truth["loss"] * 1.001}).holds


def test_exactly_the_gradients_of_trained_tensors_are_asked_for() -> None:
    known = given()
    head = {name: known.truth[name] for name in ("loss", "grad:5.weight", "grad:5.bias")}
    assert compare(known, head, ["5.weight", "5.bias"]).holds
    assert compare(known, head, ["5.weight"]).worst == "5.bias"
    assert not compare(known, head, ["5.weight"]).holds
    assert not compare(known, head).holds


def test_references_depend_on_their_seed_alone() -> None:
    model = network()
    first, same, other = (reference(model, IMAGES, seed=seed).inputs["x"] for seed in (3, 3, 4))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_a_reference_leaves_the_model_alone() -> None:
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    reference(model, IMAGES)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_random_parts_keep_two_channels_and_train_a_layer() -> None:
    graph = describe(trace_model(network(), IMAGES, training=True), "m")
    generator = np.random.default_rng(0)
    parts = [random_submodel(graph, generator, frozen=0.9) for _ in range(60)]
    assert {width for part in parts for width in part.widths.values()} == {2, 3, 4}
    assert min(len(part.trained) for part in parts) == 1
    assert {layer for part in parts for layer in part.trained} == set(full_mask(graph).trained)
    assert 1 in {w for _ in range(30) for w in random_submodel(graph, generator, least=1).widths.values()}


def test_an_input_that_the_graph_does_not_know_is_no_matter() -> None:
    model = network()
    step = onnx_step(graph_of(model, IMAGES).SerializeToString(), threads=1)
    known = reference(model, IMAGES)
    assert "seed" in known.inputs
    assert compare(known, step(known.inputs)).holds

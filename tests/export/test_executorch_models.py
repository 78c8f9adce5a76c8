"""Models that people have: what a training program computes is what the ONNX graph computes, at every width.

The ONNX graph is compared with PyTorch in its own tests. Steps are traced and run by torch here, which takes a second
each; the few that are compiled and run by ExecuTorch stand for the kernels that the others share.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.errors import ExportError
from edgefl.masks import Mask, gather
from export.describe_graph import describe
from export.executorch import Runner, inference_program, run_step, traced_submodel, training_program
from export.executorch.quiet_output import quiet
from export.executorch.recurrent import MOST_STEPS
from export.executorch.step import trace_step
from export.losses import Loss
from export.ops.dropout import SEED, seed_input
from export.trace_model import trace_model
from export.training_graph import training_graph
from export.zoo.seeding import seeded
from tests.export.executorch_networks import CLASSES, NETWORKS, WORDS, Recurrent, VisionTransformer
from tests.export.parity import _session, assert_close, random_mask

BATCH = 4

pytestmark = pytest.mark.usefixtures("one_thread")


class Case:
    """A network with its ONNX training graph, its weights and a batch."""

    def __init__(self, name: str) -> None:
        build, shape = NETWORKS[name]
        with seeded(0):
            self.model = build()
            self.x = torch.randint(20, (BATCH, *shape)) if name in WORDS else torch.randn(BATCH, *shape)
        self.loss = Loss.MEAN_SQUARED_ERROR if name == "U-Net" else Loss.CROSS_ENTROPY
        exported, traced = training_graph(self.model, self.x, self.loss)
        self.graph = describe(traced, name)
        self.session = _session(exported)
        stored = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        self.weights = {tensor: stored[tensor].detach().numpy().copy() for tensor in self.graph.tensor}

    def inputs(self, mask: Mask, seed: int) -> dict[str, Any]:
        generator = np.random.default_rng(0)
        many = generator.normal(size=self.x.shape).astype(np.float32)
        y = many if self.loss is Loss.MEAN_SQUARED_ERROR else generator.integers(0, CLASSES, BATCH)
        alike = np.full(BATCH, 1 / BATCH, np.float32)
        return {"x": self.x.numpy(), "y": y, "sample_weights": alike, SEED: seed_input(seed)} | gather(
            mask, self.weights
        )

    def by_onnx(self, inputs: dict[str, Any]) -> dict[str, Any]:
        names = [output.name for output in self.session.get_outputs()]
        wanted = [node.name for node in self.session.get_inputs()]
        return dict(zip(names, self.session.run(names, {name: inputs[name] for name in wanted}), strict=True))

    def masks(self) -> list[Mask]:
        """Everything, and random widths of every group, so that no two widths agree by accident."""
        return [Mask.of(self.graph), random_mask(self.graph, np.random.default_rng(3))]


@cache
def case(name: str) -> Case:
    return Case(name)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_traced_step_computes_what_the_onnx_graph_does(name: str) -> None:
    given = case(name)
    parameters = set(dict(given.model.named_parameters()))
    for mask in given.masks():
        small = traced_submodel(given.model, given.x, mask, training=True)
        with quiet():
            step = trace_step(small, given.x, list(given.graph.tensor), parameters, given.loss)
        inputs = given.inputs(mask, 2**63 + 11)
        found = step.graph(*(torch.from_numpy(np.asarray(inputs[name])) for name in step.inputs))
        ours = {name: tensor.detach().numpy() for name, tensor in zip(step.outputs, found, strict=True)}
        theirs = {name: value for name, value in given.by_onnx(inputs).items() if not name.startswith("new:")}
        assert set(theirs) <= set(ours)
        assert_close(ours, theirs)


COMPILED = ("dropout", "GRU")
SLOW = tuple(name for name in NETWORKS if name not in COMPILED)


@pytest.mark.parametrize("name", [*COMPILED, *(pytest.param(name, marks=pytest.mark.thorough) for name in SLOW)])
def test_the_program_computes_what_the_onnx_graph_does(name: str) -> None:
    given = case(name)
    mask = given.masks()[1]
    program = training_program(given.model, given.x, mask, given.loss)
    runner = Runner(program.pte)
    for seed in (5, 6):
        inputs = given.inputs(mask, seed)
        ours, theirs = run_step(program, runner, inputs), given.by_onnx(inputs)
        assert set(ours) == set(theirs)
        assert_close(ours, theirs)


def test_only_a_model_with_dropout_takes_a_seed() -> None:
    for name, expected in (("dropout", True), ("mean of words", False)):
        given = case(name)
        assert traced_submodel(given.model, given.x, Mask.of(given.graph), training=True).draws is expected
        assert not traced_submodel(given.model, given.x, Mask.of(given.graph), training=False).draws


@pytest.mark.parametrize("name", ["vision transformer", "encoder"])
def test_attention_predicts_at_any_width(name: str) -> None:
    given = case(name)
    for mask in given.masks():
        program = inference_program(given.model, given.x, mask, given.weights)
        small = traced_submodel(given.model, given.x[:1], mask, given.weights, training=False)
        with torch.no_grad():
            expected = small(given.x[:1]).numpy()
            whole = given.model.eval()(given.x[:1]).numpy()
        if mask == given.masks()[0]:
            np.testing.assert_allclose(expected, whole, rtol=1e-4, atol=1e-5)
        (found,) = Runner(program.pte)(given.x[:1].numpy())
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_model_keeps_its_mode_and_its_weights() -> None:
    given = case("vision transformer")
    before = {name: tensor.clone() for name, tensor in given.model.state_dict().items()}
    given.model.eval()
    traced_submodel(given.model, given.x, given.masks()[1], training=True)
    assert not any(module.training for module in given.model.modules())
    assert all(torch.equal(before[name], tensor) for name, tensor in given.model.state_dict().items())


def test_a_long_sequence_is_refused_by_the_name_of_its_module_and_its_steps() -> None:
    model, x = Recurrent(nn.LSTM), torch.zeros(2, MOST_STEPS + 1, dtype=torch.int64)
    graph = describe(trace_model(model, x, training=True), "long")
    with pytest.raises(ExportError, match=rf"module 'body' \(LSTM\): lstm runs over {MOST_STEPS + 1} steps") as caught:
        training_program(model, x, Mask.of(graph))
    assert f"at most {MOST_STEPS} steps" in caught.value.fix


def test_a_mask_of_another_model_is_refused() -> None:
    given = case("vision transformer")
    other = VisionTransformer(12)
    graph = describe(trace_model(other, given.x, training=True), "other")
    with pytest.raises(ExportError, match="has no tensor"):
        training_program(nn.Linear(3, 2), given.x, Mask.of(graph))


@pytest.mark.thorough
def test_eight_bit_mobilenet_whose_norms_keep_no_statistics_predicts_much_as_in_floats() -> None:
    with seeded(0):
        model = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8, track_running_stats=False), nn.ReLU()),
            *(nn.Conv2d(8, 8, 3, groups=8), nn.BatchNorm2d(8, track_running_stats=False), nn.ReLU()),
            *(nn.Conv2d(8, 16, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, CLASSES)),
        )
        x = torch.randn(16, 3, 10, 10)
    graph = describe(trace_model(model, x, training=True), "small")
    weights = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items() if name in graph.tensor}
    program = inference_program(model, x, Mask.of(graph), weights, batch=4, calibration=x)
    (found,) = Runner(program.pte)(x[:4].numpy())
    expected = model.eval()(x[:4]).detach().numpy()
    assert program.int8
    assert np.abs(found - expected).max() < 0.1 * np.abs(expected).max()

"""Every model of the zoo, and one that is not in it: the ONNX graph, and a program of ExecuTorch, against PyTorch.

Loss and gradients at full width and at random masks with random frozen layers, many widths on one session, and the
weights after fifty steps. `benchmarks.parity` does the same for everything, VGG16 and ExecuTorch included. Batches are
kept off the kinks of ReLU and max pools (see `export.kink_avoidance`), so that a comparison
is a matter of rounding alone.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.masks import Mask, full_mask
from examples.outside_model import Outsider
from export.engines import Arrays, ExecuTorchParityEngine, OnnxParityEngine, Step
from export.executorch import submodel
from export.model_source import open_source
from export.parity import TOLERANCE, compare, perturb_biases, random_submodel, reference, state_of
from export.sgd_trajectory import distance, follow_trajectory, plan_trajectory
from export.zoo import ZOO, build
from export.zoo.char_lstm import CharLSTM
from export.zoo.mlp import mlp
from export.zoo.mobilenet import _pair

pytestmark = pytest.mark.usefixtures("one_thread")

# VGG16's 134 million parameters take minutes: it is compared by the benchmark, not here.
MODELS = [name for name in ZOO if name != "vgg16"]
BATCH = 4


def small_mobilenet() -> nn.Module:
    """MobileNet's pairs of a depthwise and a pointwise convolution, with both strides."""
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
        *(_pair(8, 12, 2), _pair(12, 16, 1)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)),
    )


SMALL: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
    "outsider": (Outsider, torch.zeros(2, 3, 16, 16)),
    "small perceptron": (lambda: mlp(5, 12), torch.zeros(2, 12)),
    "small mobilenet": (small_mobilenet, torch.zeros(2, 3, 10, 10)),
    "small lstm": (lambda: CharLSTM(20, 20, hidden=(24, 16)), torch.full((2, 9), 19)),
    # The zoo's LSTM on windows of 16 characters: fifty steps of 80 take PyTorch minutes in double precision.
    "short char_lstm": (lambda: build("char_lstm"), torch.full((2, 16), 79)),
}


class Subject:
    """A model, its one ONNX graph in one session, and its weights."""

    def __init__(self, name: str) -> None:
        if name in SMALL:
            torch.manual_seed(0)
            model, self.example = SMALL[name][0](), SMALL[name][1]
        else:
            source = open_source(name)
            model, self.example = source.model, source.example
        self.model = perturb_biases(model).train()
        self.engine = OnnxParityEngine(self.model, self.example, threads=1)
        self.weights = state_of(self.model)

    def assert_matches(self, mask: Mask, step: Step, seed: int) -> None:
        """The loss and the gradients of the trained layers, and no others, are PyTorch's."""
        part = submodel(self.model, mask, self.weights)
        given = reference(part, self.example, batch=BATCH, seed=seed)
        trained = {name for name, _ in part.named_parameters()} & set(mask.trained_tensors)
        parity = compare(given, step(given.inputs), trained)
        assert parity.loss_error <= TOLERANCE
        # MobileNet's 27 norms over a handful of numbers each amplify rounding, PyTorch's too.
        assert parity.gradient_error <= max(TOLERANCE, 2 * parity.own_error), (parity, given.margin)


LARGE = ("mobilenet", "resnet18")
"""Models that a small one or a relative stands for in every run."""


@cache
def subject(name: str) -> Subject:
    return Subject(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.thorough if name in LARGE else ()) for name in MODELS),
        "outsider",
        "small mobilenet",
    ],
)
def test_a_model_matches_whole_and_at_random_masks_with_frozen_layers(name: str) -> None:
    given = subject(name)
    generator = np.random.default_rng(0)
    masks = [
        full_mask(given.engine.graph),
        *(random_submodel(given.engine.graph, generator, frozen=0.5) for _ in range(3)),
    ]
    assert any(len(mask.trained) < len(masks[0].trained) for mask in masks)
    for seed, mask in enumerate(masks):
        given.assert_matches(mask, given.engine.step(mask), seed)


@pytest.mark.slow
def test_executorch_matches_at_a_random_mask_with_frozen_layers() -> None:
    given = subject("small perceptron")
    mask = random_submodel(given.engine.graph, np.random.default_rng(0), frozen=0.5)
    assert len(mask.trained) < len(full_mask(mask.graph).trained)
    engine = ExecuTorchParityEngine(given.model, torch.zeros(BATCH, *given.example.shape[1:]))
    given.assert_matches(mask, engine.step(mask), seed=1)


@pytest.mark.parametrize("name", ["cnn4", "outsider", "small mobilenet", "small lstm"])
def test_one_session_serves_fifty_widths(name: str) -> None:
    given = subject(name)
    generator = np.random.default_rng(1)
    session = given.engine.step(full_mask(given.engine.graph))
    masks = [random_submodel(given.engine.graph, generator) for _ in range(50)]
    assert len({tuple(mask.widths.values()) for mask in masks}) >= 40
    for seed, mask in enumerate(masks):
        assert given.engine.step(mask) is session
        given.assert_matches(mask, session, seed)


@pytest.mark.parametrize("name", ["cnn4", "mlp", "short char_lstm", "small mobilenet"])
def test_fifty_steps_lead_where_pytorch_goes(name: str) -> None:
    given = subject(name)
    walk = plan_trajectory(given.model, given.example, steps=50, batch=BATCH, first_step=0.01)
    reached = follow_trajectory(walk, given.engine.step(full_mask(given.engine.graph)))
    assert walk.moved > 0.02
    assert distance(reached, walk.end) <= 1e-5


def test_a_gradient_that_is_two_percent_too_long_leads_elsewhere() -> None:
    given = subject("small mobilenet")
    right = given.engine.step(full_mask(given.engine.graph))
    walk = plan_trajectory(given.model, given.example, steps=50, batch=BATCH, first_step=0.01)

    def wrong(inputs: Arrays) -> Arrays:
        found = dict(right(inputs))
        found["grad:3.depthwise.weight"] = found["grad:3.depthwise.weight"] * np.float32(1.02)
        return found

    reached = follow_trajectory(walk, wrong)
    assert distance(reached, walk.end) > 1e-4

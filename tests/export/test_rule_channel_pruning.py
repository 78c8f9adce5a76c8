"""Hermes against its Algorithm 1 written out in PyTorch, at full size with masks, and on the exported graph."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.local_rules import Batch, TrainingInput, Update
from edgefl.local_rules.channel_pruning import ChannelPruning
from edgefl.local_rules.descent import Descent
from edgefl.local_rules.group_lasso import group_lasso, group_lasso_gradient
from edgefl.masks import Weights, full_mask, gather, scatter
from export.zoo import build
from tests.export.local_rules.engines import OnnxStep, TorchStep
from tests.export.parity import Exported

pytestmark = pytest.mark.usefixtures("one_thread")

RATE, MOMENTUM, LASSO, PRUNE, TARGET = 0.1, 0.9, 0.01, 0.3, 0.3
STEPS, ROUNDS = 5, 4
Tensors = dict[str, torch.Tensor]


def network() -> nn.Module:
    """Two convolutions, a flattened channel that fans out to four columns, a hidden layer. tanh(0) is 0."""
    torch.manual_seed(4)
    return nn.Sequential(
        nn.Conv2d(2, 5, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(5, 6, 3, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 7),
        nn.Tanh(),
        nn.Linear(7, 3),
    )


def batches(count: int) -> list[Batch]:
    generator = np.random.default_rng(5)
    return [
        Batch(generator.standard_normal((6, 2, 4, 4)).astype(np.float32), generator.integers(0, 3, 6))
        for _ in range(count)
    ]


def penalty(w: Tensors) -> torch.Tensor:
    """Eq. 2, group by group; the four columns of a flattened channel are one group."""
    total = torch.zeros(())
    for name in ("0.weight", "2.weight"):
        for f in range(w[name].shape[0]):
            total = total + torch.linalg.vector_norm(w[name][f])
        for ch in range(w[name].shape[1]):
            total = total + torch.linalg.vector_norm(w[name][:, ch])
    for row in range(w["6.weight"].shape[0]):
        total = total + torch.linalg.vector_norm(w["6.weight"][row])
    for column in range(w["6.weight"].shape[1] // 4):
        total = total + torch.linalg.vector_norm(w["6.weight"][:, 4 * column : 4 * column + 4])
    for row in range(w["8.weight"].shape[0]):
        total = total + torch.linalg.vector_norm(w["8.weight"][row])
    for column in range(w["8.weight"].shape[1]):
        total = total + torch.linalg.vector_norm(w["8.weight"][:, column])
    return total


class Hermes:
    """The paper's device with the whole model, channels switched off by zeros."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.on = {"0": [True] * 5, "2": [True] * 6, "6": [True] * 7}

    def channel(self, group: str, c: int) -> dict[str, Any]:
        """Where a channel lies: weights that write it, weights that read it, its bias."""
        return {
            "0": {"0.weight": c, "2.weight": (slice(None), c), "0.bias": c},
            "2": {"2.weight": c, "6.weight": (slice(None), slice(4 * c, 4 * c + 4)), "2.bias": c},
            "6": {"6.weight": c, "8.weight": (slice(None), c), "6.bias": c},
        }[group]

    def masks(self) -> Tensors:
        masks = {name: torch.ones_like(parameter) for name, parameter in self.model.named_parameters()}
        for group, flags in self.on.items():
            for c in (c for c, on in enumerate(flags) if not on):
                for name, where in self.channel(group, c).items():
                    masks[name][where] = 0
        return masks

    def kept(self) -> int:
        return int(sum(mask.sum() for mask in self.masks().values()))

    def score(self, w: Tensors, group: str, c: int) -> float:
        parts = [w[name][where] for name, where in self.channel(group, c).items() if "weight" in name]
        live = [self.masks()[name][where] for name, where in self.channel(group, c).items() if "weight" in name]
        squares = sum(float((part.double() ** 2).sum()) for part in parts)
        return float(np.sqrt(squares / sum(float(mask.sum()) for mask in live)))

    def prune(self, w: Tensors) -> None:
        whole = sum(parameter.numel() for parameter in self.model.parameters())
        candidates = []
        for group, flags in self.on.items():
            alive = [c for c, on in enumerate(flags) if on]
            scores = sorted((self.score(w, group, c), group, c) for c in alive)
            candidates += scores[: min(round(PRUNE * len(alive)), len(alive) - 1)]
        for _, group, c in sorted(candidates):
            if self.kept() <= TARGET * whole:
                break
            self.on[group][c] = False

    def update(self, w: Tensors, data: list[Batch], accuracy: float) -> Tensors:
        """ClientUpdate of Algorithm 1."""
        whole = sum(parameter.numel() for parameter in self.model.parameters())
        if accuracy > 0.5 and self.kept() > TARGET * whole:
            self.prune(w)
        masks = self.masks()
        w = {name: (array * masks[name]).requires_grad_() for name, array in w.items()}
        optimiser = torch.optim.SGD(w.values(), RATE, MOMENTUM)
        for batch in data:
            logits = torch.func.functional_call(self.model, w, (torch.from_numpy(batch.x),))
            loss = nn.functional.cross_entropy(logits, torch.from_numpy(batch.y)) + LASSO * penalty(w)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for name, array in w.items():
                assert array.grad is not None
                array.grad *= masks[name]
            optimiser.step()
        return {name: array.detach() for name, array in w.items()}


def one_round(rule: ChannelPruning, part: TrainingInput, run: Any, data: list[Batch]) -> Update:
    state = rule.begin(part)
    for batch in data:
        rule.step(part, state, batch, run)
    return rule.finish(part, state, data[0], run)


def test_rounds_of_pruning_and_training_equal_the_algorithm() -> None:
    model = network()
    exported = Exported(model, torch.randn(13, 2, 4, 4))
    rule = ChannelPruning(
        descent=Descent(learning_rate=RATE, momentum=MOMENTUM), rate=PRUNE, target=TARGET, lasso=LASSO
    )
    whole = exported.weights()
    theirs = Hermes(model)
    w = {name: torch.from_numpy(array.copy()) for name, array in whole.items()}
    mask, widths = full_mask(exported.graph), []
    for number in range(ROUNDS):
        data = batches(STEPS * ROUNDS)[number * STEPS : (number + 1) * STEPS]
        accuracy = 0.4 if number == 0 else 0.8
        part = TrainingInput(mask, gather(mask, whole), seed=1, accuracy=lambda weights, a=accuracy: a)  # type: ignore[misc]
        update = one_round(rule, part, TorchStep(model), data)
        w = theirs.update(w, data, accuracy)
        mask = update.mask
        widths.append(dict(mask.widths))
        assert {g: mask.kept[g].tolist() for g in theirs.on} == {
            g: [c for c, on in enumerate(flags) if on] for g, flags in theirs.on.items()
        }
        whole = scatter(mask, update.weights, {name: np.zeros_like(array) for name, array in whole.items()})
        for name, array in whole.items():
            assert np.allclose(array, w[name].numpy(), rtol=1e-3, atol=1e-5), (number, name)
    assert widths[0] == {"0": 5, "2": 6, "6": 7}
    assert widths[1] != widths[2]
    assert 0.2 < update.metrics["kept_fraction"] <= 0.3


def test_the_gradient_of_the_penalty_is_autograd_s() -> None:
    exported = Exported(network(), torch.randn(13, 2, 4, 4))
    mask, weights = full_mask(exported.graph), exported.weights()
    weights["6.weight"][2] = 0  # a row that is gone
    weights["8.weight"][:, 2] = 0
    leaves = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in weights.items()}
    value = penalty(leaves)
    value.backward()  # type: ignore[no-untyped-call]
    names = tuple(name for name in weights if name.endswith("weight"))
    assert group_lasso(mask, weights, names) == pytest.approx(float(value.detach()), rel=1e-5)
    for name in names:
        expected = leaves[name].grad
        assert expected is not None
        assert np.allclose(group_lasso_gradient(mask, name, weights[name]), expected.numpy(), rtol=1e-4, atol=1e-6)


def test_the_shrunk_model_runs_on_the_same_graph() -> None:
    exported = Exported(build("cnn4"), torch.randn(2, 1, 28, 28))
    run = OnnxStep(exported)
    generator = np.random.default_rng(0)
    data = [
        Batch(generator.standard_normal((4, 1, 28, 28)).astype(np.float32), generator.integers(0, 10, 4))
        for _ in range(2)
    ]

    def accuracy(weights: Weights) -> float:
        return 0.9 + 0.01 * float(run(weights, data[0]).correct.mean())

    mask, whole, shares = full_mask(exported.graph), exported.weights(), []
    for _ in range(4):
        part = TrainingInput(mask, gather(mask, whole), seed=1, accuracy=accuracy)
        update = one_round(ChannelPruning(descent=Descent(learning_rate=0.01)), part, run, data)
        mask, whole = update.mask, scatter(update.mask, update.weights, whole)
        shares.append(update.metrics["kept_fraction"])
        # What PyTorch makes of the shrunk weights is what the exported graph makes of them.
        theirs = exported.torch_run(dict(update.weights), torch.from_numpy(data[0].x), torch.from_numpy(data[0].y))
        assert run(update.weights, data[0]).loss == pytest.approx(float(theirs["loss"]), rel=1e-4)
        assert set(update.tensors) == set(exported.graph.tensor)
    # Widths fall by a fifth: 0.64, 0.41, and then only as far as 0.3. In the last round there is nothing to prune.
    assert shares[0] == pytest.approx(0.64, abs=0.02)
    assert shares[1] == pytest.approx(0.41, abs=0.02)
    assert 0.29 < shares[2] <= 0.3
    assert shares[3] == shares[2]

"""FedMAP's mask phase against Algorithms 1 and 2 written out in PyTorch, and on the exported graph."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.local_rules import Batch, State, TrainingInput, Update
from edgefl.local_rules.mask_generation import Gradient
from edgefl.local_rules.probabilistic_masks import Granularity, ProbabilisticMasks, extract
from edgefl.masks import full_mask, gather
from edgefl.noise import derive, unit
from edgefl.wire import Counts
from export.zoo import build
from tests.export.local_rules.engines import OnnxStep, TorchStep, batches, exported, network
from tests.export.parity import Exported

pytestmark = pytest.mark.usefixtures("one_thread")

RATE, GAMMA, STEPS, SEED = 200.0, 0.4, 20, 8
NAMES = ("0.weight", "5.weight", "7.weight")
Lists = dict[str, list[float]]


def probabilities(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(2)
    return {f"p/{name}": generator.uniform(0.2, 0.95, shape).astype(np.float32) for name, shape in shapes.items()}


def mask_generation(p: Lists, step: int, *, shrink: bool) -> tuple[Lists, Lists]:
    """Algorithm 2, entry by entry, and the shrink step of Proposition 4.1."""
    size = sum(len(values) for values in p.values())
    mask = {name: [1.0] * len(values) for name, values in p.items()}
    m = {name: [0.0] * len(values) for name, values in p.items()}
    stream, draw = derive(SEED, "mask", step), 0

    def bernoulli() -> None:
        for name, values in p.items():
            numbers = unit(derive(stream, draw, name), 0, len(values))
            for i, probability in enumerate(values):
                mask[name][i] = float(mask[name][i] == 1 and float(numbers[i]) < probability)
                m[name][i] += mask[name][i]

    while sum(sum(values) for values in mask.values()) > GAMMA * size:
        bernoulli()
        draw += 1
    if shrink:
        bernoulli()
    return mask, m


def phase(
    model: nn.Module, x: dict[str, torch.Tensor], p: Lists, data: list[Batch], exact: bool
) -> tuple[Lists, Lists]:
    """Algorithm 1, lines 6 to 11: returns s and m."""
    s = {name: [math.log(v / (1 - v)) for v in values] for name, values in p.items()}
    for k, batch in enumerate(data):
        now = {name: [1 / (1 + math.exp(-v)) for v in values] for name, values in s.items()}
        mask, m = mask_generation(now, k, shrink=True)
        masked = {name: array.clone() for name, array in x.items()}
        for name in p:
            masked[name] = (x[name] * torch.tensor(mask[name]).reshape(x[name].shape)).requires_grad_()
        logits = torch.func.functional_call(model, masked, (torch.from_numpy(batch.x),))
        nn.functional.cross_entropy(logits, torch.from_numpy(batch.y)).backward()  # type: ignore[no-untyped-call]
        top = max(max(values) for values in m.values())
        for name in p:
            gradient = masked[name].grad
            assert gradient is not None
            for i, (g, w) in enumerate(zip(gradient.reshape(-1).tolist(), x[name].reshape(-1).tolist(), strict=True)):
                q, count = now[name][i], m[name][i]
                slope = count * q * (1 - q) if exact else (q**2 - q ** (2 * count + 2)) / (1 + q)  # Eq. 7
                s[name][i] -= RATE * g * w * (slope if count >= top - 1 else 0.0)
    now = {name: [1 / (1 + math.exp(-v)) for v in values] for name, values in s.items()}
    return s, mask_generation(now, len(data), shrink=False)[1]


def one_round(rule: ProbabilisticMasks, part: TrainingInput, run: Any, data: list[Batch]) -> tuple[State, Update]:
    state = rule.begin(part)
    for batch in data:
        rule.step(part, state, batch, run)
    return state, rule.finish(part, state, data[0], run)


def counts_of(update: Update, name: str) -> np.ndarray:
    payload = update.tensors[f"m/{name}"]
    assert isinstance(payload, Counts)
    return payload.to_array()


@pytest.mark.parametrize("gradient", list(Gradient))
def test_twenty_steps_equal_the_algorithm(gradient: Gradient) -> None:
    model, found = network(), exported()
    mask, weights = full_mask(found.graph), found.weights()
    extras = probabilities({name: mask.shapes[name] for name in NAMES})
    part = TrainingInput(mask, weights, SEED, steps=STEPS, extras=extras)
    rule = ProbabilisticMasks(learning_rate=RATE, capacity=GAMMA, gradient=gradient)
    state, update = one_round(rule, part, TorchStep(model), batches(STEPS))
    x = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    p = {name: [float(v) for v in extras[f"p/{name}"].reshape(-1)] for name in NAMES}
    s, m = phase(model, x, p, batches(STEPS), gradient is Gradient.STRAIGHT_THROUGH)
    for name in NAMES:
        start = np.log(extras[f"p/{name}"] / (1 - extras[f"p/{name}"])).reshape(-1)
        assert np.abs(np.array(s[name]) - start).max() > 0.2  # twenty steps went somewhere
        assert np.allclose(state.memory[f"s:{name}"].reshape(-1), s[name], rtol=1e-3, atol=1e-4), name
        assert counts_of(update, name).reshape(-1).tolist() == m[name], name


def test_the_mask_phase_runs_on_the_exported_graph() -> None:
    found = exported()
    mask = full_mask(found.graph)
    part = TrainingInput(mask, found.weights(), SEED, extras=probabilities({name: mask.shapes[name] for name in NAMES}))
    rule = ProbabilisticMasks(learning_rate=RATE, capacity=GAMMA)
    ours, sent = one_round(rule, part, OnnxStep(found), batches(5))
    theirs, expected = one_round(rule, part, TorchStep(network()), batches(5))
    for name in NAMES:
        assert np.allclose(ours.memory[f"s:{name}"], theirs.memory[f"s:{name}"], rtol=1e-3, atol=1e-4)
        assert np.array_equal(counts_of(sent, name), counts_of(expected, name))


def test_masks_of_channels_run_smaller_models_on_the_same_graph() -> None:
    cnn = Exported(build("cnn4"), torch.randn(2, 1, 28, 28))
    mask, engine = full_mask(cnn.graph), OnnxStep(cnn)
    sizes: list[int] = []

    def run(weights: Any, batch: Batch) -> Any:
        sizes.append(sum(array.size for name, array in weights.items() if "running" not in name))
        return engine(weights, batch)

    shapes = {group.name: (group.width,) for group in cnn.graph.groups}
    extras = {f"p/{name}": np.full(shape, 0.7, np.float32) for name, shape in shapes.items()}
    part = TrainingInput(mask, cnn.weights(), SEED, extras=extras)
    rule = ProbabilisticMasks(learning_rate=5.0, capacity=0.25, granularity=Granularity.CHANNEL)
    generator = np.random.default_rng(0)
    data = [Batch(generator.standard_normal((4, 1, 28, 28)).astype(np.float32), generator.integers(0, 10, 4))] * 3
    state, update = one_round(rule, part, run, data)
    assert max(sizes) <= 0.25 * cnn.graph.parameters + 10  # a counter of batches is no parameter
    learnt = {name: 1 / (1 + np.exp(-state.memory[f"s:{name}"])) for name in shapes}
    assert all(np.abs(p - 0.7).max() > 1e-6 for p in learnt.values())
    assert set(update.tensors) == {f"m/{name}" for name in shapes}
    small = extract(mask, learnt, 0.25, seed=1, granularity=Granularity.CHANNEL)
    assert small.cost.parameters <= 0.25 * cnn.graph.parameters
    assert math.isfinite(engine(gather(small, cnn.weights()), data[0]).loss)

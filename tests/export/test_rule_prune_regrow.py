"""FedSpa against Algorithms 1 and 2 written out in PyTorch, on the exported graph, and against its table of FLOPs."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.local_rules import Batch, TrainingInput, Update
from edgefl.local_rules.descent import Descent
from edgefl.local_rules.erk import erk_counts, erk_mask
from edgefl.local_rules.prune_regrow import PruneRegrow
from edgefl.masks import Mask, full_mask, gather
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.wire import Dense, Sparse
from export.describe_graph import describe
from export.trace_model import trace_model
from export.zoo import ZOO, build
from tests.export.local_rules.engines import OnnxStep, TorchStep, batches, exported, network

pytestmark = pytest.mark.usefixtures("one_thread")

RATE, DECAY, ALPHA = 0.1, 5e-4, 0.5
STEPS, ROUNDS = 5, 4
Tensors = dict[str, torch.Tensor]


def client(model: nn.Module, w: Tensors, m: Tensors, data: list[Batch], last: Batch, t: int) -> tuple[Tensors, Tensors]:
    """The client's loop of Algorithm 1 and Next_Masks of Algorithm 2: returns U and the next masks."""
    trained = set(m)
    start = {name: w[name] * m[name] if name in m else w[name] for name in w}
    now = {name: array.clone() for name, array in start.items()}

    def gradients(batch: Batch) -> Tensors:
        leaves = {name: array.clone().requires_grad_(name in trained) for name, array in now.items()}
        logits = torch.func.functional_call(model, leaves, (torch.from_numpy(batch.x),))
        nn.functional.cross_entropy(logits, torch.from_numpy(batch.y)).backward()  # type: ignore[no-untyped-call]
        for name in set(now) - trained:
            now[name] = leaves[name].detach()  # running statistics, which functional_call changed in place
        return {name: leaves[name].grad for name in trained}  # type: ignore[misc]

    for batch in data:
        for name, g in gradients(batch).items():
            now[name] = now[name] - RATE * m[name] * (g + DECAY * now[name])
    u = {name: start[name] - now[name] for name in now}
    alpha = 0.5 * ALPHA * (1 + math.cos(math.pi * t / (ROUNDS - 1)))
    dense = gradients(last)
    masks = {}
    for name, mask in m.items():
        masks[name] = mask
        if mask.min() < 1:
            count = math.ceil(alpha * int(mask.sum()))
            held = sorted(
                (abs(float(now[name].reshape(-1)[i])), i) for i in mask.reshape(-1).nonzero().flatten().tolist()
            )
            left = mask.reshape(-1).clone()
            for _, i in held[:count]:
                left[i] = 0
            free = sorted((-abs(float(dense[name].reshape(-1)[i])), i) for i in range(left.numel()) if left[i] == 0)
            for _, i in free[:count]:
                left[i] = 1
            masks[name] = left.reshape(mask.shape)
    return u, masks


def one_round(rule: PruneRegrow, part: TrainingInput, run: Any, data: list[Batch], last: Batch) -> Update:
    state = rule.begin(part)
    for batch in data:
        rule.step(part, state, batch, run)
    return rule.finish(part, state, last, run)


def sent(update: Update, name: str) -> np.ndarray:
    payload = update.tensors[name]
    assert isinstance(payload, Dense | Sparse)
    return payload.array if isinstance(payload, Dense) else payload.to_dense()


def tensor_masks(mask: Mask) -> Tensors:
    ones = {t.name: torch.ones(t.shape) for t in mask.graph.tensors if t.role is not TensorRole.STATISTIC}
    return ones | {name: torch.from_numpy(where.astype(np.float32)) for name, where in mask.held.items()}


def test_rounds_of_training_and_exchange_equal_the_algorithms() -> None:
    model, found = network(), exported()
    whole = found.weights()
    w = {name: torch.from_numpy(array.copy()) for name, array in whole.items()}
    mask = erk_mask(full_mask(found.graph), 0.4, seed=6)
    m = tensor_masks(mask)
    rule = PruneRegrow(descent=Descent(learning_rate=RATE, weight_decay=DECAY))
    exchanged = []
    for t in range(ROUNDS):
        data = batches(ROUNDS * (STEPS + 1))[t * (STEPS + 1) : (t + 1) * (STEPS + 1)]
        part = TrainingInput(mask, gather(mask, whole), seed=0, round=t, rounds=ROUNDS)
        update = one_round(rule, part, TorchStep(model), data[:-1], data[-1])
        u, m = client(model, w, m, data[:-1], data[-1], t)
        for name in u:
            ours = sent(update, name)
            assert np.allclose(ours, u[name].numpy(), rtol=1e-3, atol=1e-5), (t, name)
            # Eq. 4 with one participant; the next mask cuts from these dense weights.
            whole[name], w[name] = whole[name] - ours, w[name] - u[name]
        mask = update.mask
        theirs = {name: each.numpy() > 0 for name, each in m.items() if each.min() < 1}
        assert set(mask.held) == set(theirs)
        assert all(np.array_equal(mask.held[name], where) for name, where in theirs.items())
        exchanged.append(update.metrics["exchanged_weights"])
    assert exchanged[0] > exchanged[2] > exchanged[3] == 0


def test_a_sparse_model_trains_on_the_exported_graph() -> None:
    found = exported()
    mask = erk_mask(full_mask(found.graph), 0.5, seed=6)
    part = TrainingInput(mask, gather(mask, found.weights()), seed=0, round=0, rounds=3)
    data = batches(STEPS + 1)
    rule = PruneRegrow(descent=Descent(learning_rate=RATE, weight_decay=DECAY, momentum=0.9))
    ours = one_round(rule, part, OnnxStep(found), data[:-1], data[-1])
    theirs = one_round(rule, part, TorchStep(network()), data[:-1], data[-1])
    assert ours.mask.digest == theirs.mask.digest != mask.digest
    for name in theirs.tensors:
        assert np.allclose(sent(ours, name), sent(theirs, name), rtol=1e-3, atol=1e-5), name
    loss = OnnxStep(found)(ours.weights, data[0]).loss
    assert math.isfinite(loss)
    assert ours.mask.cost.parameters == mask.cost.parameters


def graph_of(name: str) -> ModelGraph:
    with torch.device("meta"):
        return describe(trace_model(build(name), torch.randn(2, *ZOO[name].input_shape), training=True), name)


@pytest.mark.parametrize(
    ("name", "dense", "sparse"), [("vgg11", 229.3, 172.9), ("resnet18", 833.2, 705.1)], ids=["vgg11", "resnet18"]
)
def test_erk_at_half_density_costs_the_flops_of_the_paper(name: str, dense: float, sparse: float) -> None:
    """Table 1, IID, in 1e14. The paper does not say how it counts; its dense rows fix it:

    1,000 rounds of 10 clients, 5 epochs on 500 samples each; a pass forward and twice its cost backward; 2 operations
    for a multiply-add and 1 for a bias. A sparse round has one batch of 128 at full density on top, the mask search.
    """
    mask = full_mask(graph_of(name))
    weights = [tensor for tensor in mask.graph.tensors if len(tensor.shape) > 1]
    counts = erk_counts(mask, 0.5)
    biases = sum(
        tensor.size * max(mask.graph.tensor[other].uses for other in mask.graph.layer[layer].tensors)
        for tensor in mask.graph.tensors
        if tensor.role in (TensorRole.BIAS, TensorRole.HEAD) and len(tensor.shape) == 1
        for layer in [mask.graph.layer_of[tensor.name]]
    )

    def flops(multiply_adds: int) -> int:
        return 3 * (2 * multiply_adds + biases)

    whole = flops(sum(tensor.size * tensor.uses for tensor in weights))
    held = flops(sum(counts[tensor.name] * tensor.uses for tensor in weights))
    assert 1e4 * whole * 2500 / 1e14 == pytest.approx(dense, abs=0.05)
    assert 1e4 * (held * 2500 + whole * 128) / 1e14 == pytest.approx(sparse, abs=0.1)

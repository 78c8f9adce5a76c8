"""Arithmetic, matrix products and reductions against PyTorch."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from edgefl.errors import ExportError
from edgefl.model_graph import Term
from tests.export.parity import Exported, check
from tests.export.test_shapes import CLASSES, Arranged, Function, example, groups


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


SAME = {"one": 12}
"""Both layers were added, so they are one group."""
BOTH = {"one": 12, "two": 12}


@pytest.mark.parametrize(
    ("function", "cut"),
    [
        (lambda a, b: a + b, SAME),
        (lambda a, b: torch.add(a, b, alpha=0.5) + 1 + torch.add(a, 2.0, alpha=3), SAME),
        (lambda a, b: a - 2 * b, SAME),
        (lambda a, b: torch.rsub(a, b, alpha=2) + (1 - a), SAME),
        (lambda a, b: a * b, SAME),
        (lambda a, b: a / (b + 2), SAME),
        (lambda a, b: 3 / (a + 2) + b / 4, SAME),
        (lambda a, b: a * b[:, :1], SAME),
        (lambda a, b: a[:, :1] - b, SAME),
        (lambda a, b: a + b.mean((0, 1)), SAME),
        (lambda a, b: a.mean(0) / (b + 3), SAME),
        (lambda a, b: -a + b.neg(), SAME),
        (lambda a, b: (a + 2) ** 3 + (b + 2) ** 0.5 + a**2 + b**1 + (a + 2) ** -1, SAME),
        (lambda a, b: (a + 2).sqrt() + (b + 2).rsqrt(), SAME),
        (lambda a, b: a.exp() + (b + 2).log(), SAME),
        (lambda a, b: a.abs() + b.square(), SAME),
        (lambda a, b: a.sin() * b.cos(), SAME),
        (lambda a, b: (a + 2).reciprocal() + b, SAME),
        (lambda a, b: a.clamp(-0.3, 0.4) + b.clamp(min=0.1) + b.clamp_max(0.2), SAME),
        (lambda a, b: torch.maximum(a, b) + torch.minimum(a, 2 * b), SAME),
        (lambda a, b: torch.maximum(a, a) * b, SAME),
        (lambda a, b: torch.where(a > b, a, b * 2), SAME),
        (lambda a, b: torch.where(torch.arange(5).reshape(5, 1) % 2 == 0, a, 0.5) + b, SAME),
        (lambda a, b: a.masked_fill(b > 0, 0.25), SAME),
        (lambda a, b: a.masked_fill((a >= 0) & (b <= 0) | ~(a != 0) | (a == b) | (b < -0.5), 0.0), SAME),
        (lambda a, b: a * b.amax(-1, keepdim=True), BOTH),
        (lambda a, b: a + b.amin((1, 2), keepdim=True) + b.max() - b.min(), BOTH),
        (lambda a, b: a * b.max(1)[0].unsqueeze(1), SAME),
        (lambda a, b: a * b.min(-1, keepdim=True).values, BOTH),
        (lambda a, b: a * (b.argmax(-1, keepdim=True) + 1), BOTH),
        (lambda a, b: a * b.sum() + b.mean() + b.sum((0, 2), keepdim=True), BOTH),
        (lambda a, b: a * b.sum(-1, keepdim=True) + b.mean([0, 2]).unsqueeze(-1), BOTH),
        (lambda a, b: a / b.var(-1, keepdim=True) + b.var((1, 2), unbiased=False)[:, None, None], BOTH),
        (lambda a, b: a * b.std(1, keepdim=True) + b.var(), SAME),
        (lambda a, b: (a.transpose(1, 2) @ b).flatten(1).mean(1, keepdim=True).unsqueeze(1) * a, BOTH),
        (lambda a, b: torch.bmm(a @ b.transpose(1, 2), a), SAME),
        (lambda a, b: torch.matmul(a.unsqueeze(1), a[:, 0].unsqueeze(-1).unsqueeze(1)).squeeze(1) * b, BOTH),
        (lambda a, b: a.flatten(0, 1).t().mm(b.flatten(0, 1)).mean(1) + a, BOTH),
        (lambda a, b: a.mean((0, 1)) @ b.mean((0, 1)) + a, SAME),
        (lambda a, b: (a @ b.mean((0, 1))).unsqueeze(-1) * a, SAME),
        (lambda a, b: torch.baddbmm(a, a @ b.transpose(1, 2), b, beta=0.5, alpha=2), SAME),
        (lambda a, b: torch.addmm(b.mean((0, 1)), a[:, 0], a[:, 1].t() @ b[:, 1]).unsqueeze(1), BOTH),
    ],
    ids=range(42),
)
def test_arithmetic_matches(function: Function, cut: dict[str, int]) -> None:
    assert groups(check(Arranged(function, 12, second=12), example(), classes=CLASSES)) == cut


def test_broadcast_channels_are_not_joined() -> None:
    exported = check(Arranged(lambda a, b: a * b.sum(-1, keepdim=True), 12), example(), classes=CLASSES)
    assert groups(exported) == {"one": 12, "two": 6}


def nodes(function: Function) -> list[str]:
    return [node.op_type for node in Exported(Arranged(function, 12), example()).onnx.graph.node]


def test_a_constant_count_needs_no_nodes() -> None:
    """The mean over steps divides by a number; the mean over channels by what they are when the graph runs."""
    plain = nodes(lambda a, b: a * b.sum(1).sum(-1).reshape(-1, 1, 1))
    by_steps = nodes(lambda a, b: a * b.mean(1).sum(-1).reshape(-1, 1, 1))
    assert by_steps.count("Shape") == plain.count("Shape")
    assert nodes(lambda a, b: a * b.mean(-1, keepdim=True)).count("Cast") > plain.count("Cast")


class Shapes(nn.Module):
    """Linear layers on tensors of different ranks."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.first = nn.Linear(3, 8, bias=bias)
        self.second = nn.Linear(8, 6, bias=bias)
        self.third = nn.Linear(5 * 6, CLASSES, bias=bias)

    def forward(self, x: Tensor) -> Any:
        x = torch.relu(self.second(self.first(x).unsqueeze(1))).squeeze(1)
        return self.third(x.transpose(1, 2).flatten(1))


@pytest.mark.parametrize("bias", [True, False])
def test_linear_layers_of_any_rank_match_and_count_positions(bias: bool) -> None:
    exported = check(Shapes(bias), example(), classes=CLASSES)
    assert groups(exported) == {"first": 8, "second": 6}
    uses = {name: exported.graph.tensor[f"{name}.weight"].uses for name in ("first", "second", "third")}
    assert uses == {"first": 5, "second": 5, "third": 1}


class Bare(nn.Module):
    """Matrices that are parameters of the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(3, 8))
        self.w2 = nn.Parameter(torch.randn(6, 8))
        self.b2 = nn.Parameter(torch.randn(6))
        self.w3 = nn.Parameter(torch.randn(6, CLASSES))

    def forward(self, x: Tensor) -> Any:
        x = torch.relu(x @ self.w1) @ self.w2.t() + self.b2
        return x.mean(1) @ self.w3


def test_matrices_outside_of_layers_match_and_are_counted() -> None:
    exported = check(Bare(), example(), classes=CLASSES)
    assert sorted(groups(exported).values()) == [6, 8]
    assert {name: exported.graph.tensor[name].uses for name in ("w1", "w2", "b2", "w3")} == {
        "w1": 5,
        "w2": 5,
        "b2": 0,
        "w3": 1,
    }
    assert all(layer.kind != "unused" for layer in exported.graph.layers)


def test_products_between_activations_are_counted_with_the_layer_before() -> None:
    exported = Exported(Arranged(lambda a, b: torch.bmm(a @ b.transpose(1, 2), a), 12, second=12), example())
    counted = {layer.name: layer.products for layer in exported.graph.layers if layer.products}
    assert counted == {"two": (Term(25, ("one",)), Term(25, ("one",)))}


def test_a_layer_that_is_used_twice_adds_its_gradients() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 3)
            self.mid = nn.Linear(3, 3)
            self.head = nn.Linear(3, CLASSES)

        def forward(self, x: Tensor) -> Any:
            x = torch.tanh(self.body(x))
            x = torch.tanh(self.body(torch.tanh(self.mid(x))))
            return self.head(x.mean(1))

    exported = check(Twice(), example(), classes=CLASSES)
    assert exported.graph.tensor["body.weight"].uses == 10


def test_what_cannot_be_trained_is_said() -> None:
    with pytest.raises(ExportError, match=r"rounding_mode='floor' has no gradient\. Divide without"):
        Exported(Arranged(lambda a, b: a + torch.div(a, 0.3, rounding_mode="floor"), 12), example())

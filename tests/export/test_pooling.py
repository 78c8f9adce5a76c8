"""Pooling: every geometry, with the gradients of PyTorch."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from edgefl.artifacts.cut import cut
from tests.export.parity import Exported, assert_close, check


def around(pool: nn.Module, size: tuple[int, int] = (9, 7)) -> nn.Sequential:
    """A pool between layers that can be cut."""
    torch.manual_seed(0)
    first = nn.Conv2d(2, 6, 1)
    with torch.no_grad():
        features = pool(first(torch.zeros(1, 2, *size))).numel()
    return nn.Sequential(first, pool, nn.Flatten(), nn.Linear(features, 4))


def small(size: tuple[int, ...] = (9, 7)) -> torch.Tensor:
    return torch.randn(3, 2, *size)


MAX_POOLS = {
    "apart": nn.MaxPool2d(2),
    "apart with a gap": nn.MaxPool2d(2, 3),
    "apart and padded": nn.MaxPool2d(3, 3, padding=1),
    "of two sizes": nn.MaxPool2d((3, 2), (1, 2)),
    "overlapping": nn.MaxPool2d(3, 2),
    "overlapping and padded": nn.MaxPool2d(3, 2, padding=1),
    "dilated": nn.MaxPool2d(2, 2, dilation=2),
    "dilated and padded to the end": nn.MaxPool2d(3, 2, padding=1, dilation=2, ceil_mode=True),
    "to the end": nn.MaxPool2d(2, 2, ceil_mode=True),
    "padded to the end": nn.MaxPool2d(3, 2, padding=1, ceil_mode=True),
    "with a last window that would begin in the padding": nn.MaxPool2d(2, 3, padding=1, ceil_mode=True),
}


@pytest.mark.parametrize("name", MAX_POOLS)
def test_max_pooling_matches(name: str) -> None:
    check(around(MAX_POOLS[name]), small(), classes=4)


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.MaxPool2d(3, 2, padding=1)])
def test_of_equal_maxima_the_first_gets_the_gradient(pool: nn.Module) -> None:
    exported = Exported(around(pool), small())
    x = torch.randint(0, 2, (4, 2, 9, 7)).float()
    y = torch.tensor([0, 1, 2, 3])
    weights = exported.weights()
    assert_close(exported.run(weights, x, y), exported.torch_run(weights, x, y))


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.MaxPool2d(3, 2, padding=1), nn.AdaptiveMaxPool2d((3, 7))])
def test_a_relu_before_a_pool_is_computed_after_it_and_matches(pool: nn.Module) -> None:
    first, *rest = around(pool)
    exported = check(nn.Sequential(first, nn.ReLU(inplace=True), *rest), small(), classes=4)
    (rectified,) = [node for node in exported.onnx.graph.node if node.op_type == "Relu"]
    assert rectified.input[0].startswith("MaxPool")
    weights = exported.weights()
    for x in (torch.randint(-1, 2, (4, 2, 9, 7)).float(), torch.full((4, 2, 9, 7), -1.0)):  # equals, zeros
        y = torch.tensor([0, 1, 2, 3])
        assert_close(exported.run(weights, x, y), exported.torch_run(weights, x, y))


class Fork(nn.Module):
    """A rectified value that is pooled and also read as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.pool, self.head = nn.Conv2d(2, 6, 1), nn.MaxPool2d(2), nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = torch.relu(self.first(x))
        out: torch.Tensor = self.head(torch.cat([self.pool(seen).mean((2, 3)), seen.mean((2, 3))], 1))
        return out


def test_a_rectified_value_that_others_read_too_matches() -> None:
    check(Fork(), small(), classes=4)


@pytest.mark.parametrize("apart", [True, False])
def test_the_gradient_of_windows_apart_needs_no_scatter(apart: bool) -> None:
    exported = Exported(around(nn.MaxPool2d(2) if apart else nn.MaxPool2d(2, 1)), small())
    kinds = {node.op_type for node in exported.onnx.graph.node}
    assert ("MaxUnpool" in kinds, "ScatterElements" in kinds) == (apart, not apart)


@pytest.mark.parametrize("size", [(12, 14), (13, 15)])
def test_large_pools_of_two_by_two_find_the_first_maximum_themselves(size: tuple[int, int]) -> None:
    exported = check(around(nn.MaxPool2d(2), size), small(size), classes=4)
    assert all(len(node.output) == 1 for node in exported.onnx.graph.node if node.op_type == "MaxPool")
    weights = exported.weights()
    for x in (torch.randint(0, 2, (4, 2, *size)).float(), torch.zeros(4, 2, *size)):  # many equals
        y = torch.tensor([0, 1, 2, 3])
        assert_close(exported.run(weights, x, y), exported.torch_run(weights, x, y))


def test_a_pool_whose_gradient_is_cut_keeps_no_indices() -> None:
    exported = Exported(around(nn.MaxPool2d(3, 2)), small())
    kept = cut(exported.onnx, ["3.weight"]).graph.node
    assert [len(node.output) for node in kept if node.op_type == "MaxPool"] == [1]


AVERAGE_POOLS = {
    "side by side": (nn.AvgPool2d(2), (8, 6)),
    "side by side with a rest": (nn.AvgPool2d(2), (9, 7)),
    "overlapping": (nn.AvgPool2d(3, 2), (9, 7)),
    "padded": (nn.AvgPool2d(3, 2, padding=1), (9, 7)),
    "padded without counting it": (nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), (9, 7)),
    "to the end": (nn.AvgPool2d(3, 2, ceil_mode=True), (8, 6)),
    "padded to the end": (nn.AvgPool2d(4, 3, padding=2, ceil_mode=True), (8, 6)),
    "padded to the end without counting it": (
        nn.AvgPool2d(4, 3, padding=2, ceil_mode=True, count_include_pad=False),
        (8, 6),
    ),
    "of two sizes": (nn.AvgPool2d((3, 2), (1, 2)), (9, 7)),
    "with its own divisor": (nn.AvgPool2d(3, 2, padding=1, divisor_override=5), (9, 7)),
    "adaptive to one": (nn.AdaptiveAvgPool2d(1), (9, 7)),
    "adaptive with equal windows": (nn.AdaptiveAvgPool2d((3, 7)), (9, 7)),
    "adaptive with unequal windows": (nn.AdaptiveAvgPool2d((4, 5)), (9, 7)),
    "adaptive to more than there is": (nn.AdaptiveAvgPool2d((12, 9)), (9, 7)),
    "adaptive along one axis": (nn.AdaptiveAvgPool2d((None, 2)), (9, 7)),
}


@pytest.mark.parametrize("name", AVERAGE_POOLS)
def test_average_pooling_matches(name: str) -> None:
    pool, size = AVERAGE_POOLS[name]
    check(around(pool, size), small(size), classes=4)


@pytest.mark.parametrize("size", [(3, 7), (1, 1), (4, 3), (12, 5)])
def test_adaptive_max_pooling_matches(size: tuple[int, int]) -> None:
    check(around(nn.AdaptiveMaxPool2d(size)), small(), classes=4)


class Sequence(nn.Module):
    """A linear layer along a sequence, channels turned forward, and a pool."""

    def __init__(self, pool: Callable[[torch.Tensor], torch.Tensor], length: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.pool = nn.Conv2d(2, 6, (1, 1)), pool
        self.head = nn.Linear(6 * length, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.pool(self.first(x).flatten(2)).flatten(1))
        return result


SEQUENCE_POOLS = {
    "max": (nn.MaxPool1d(2), 5),
    "overlapping max": (nn.MaxPool1d(3, 1, padding=1), 10),
    "average": (nn.AvgPool1d(2), 5),
    "overlapping average": (nn.AvgPool1d(3, 2, padding=1), 5),
    "adaptive average": (nn.AdaptiveAvgPool1d(4), 4),
    "adaptive max": (nn.AdaptiveMaxPool1d(5), 5),
    "uneven adaptive max": (nn.AdaptiveMaxPool1d(4), 4),
}


@pytest.mark.parametrize("name", SEQUENCE_POOLS)
def test_pooling_of_sequences_matches(name: str) -> None:
    pool, length = SEQUENCE_POOLS[name]
    check(Sequence(pool, length), small((5, 2)), classes=4)

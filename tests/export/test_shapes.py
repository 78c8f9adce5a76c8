"""Operations that arrange, constants that a model makes, and what is refused by name."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from edgefl.errors import ExportError
from export.training_graph import training_graph
from tests.export.parity import Exported, check

WIDTH, OTHER, CLASSES = 12, 6, 4
Function = Callable[..., Tensor]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


class Arranged(nn.Module):
    """A function of the outputs of two layers, read by a third. Tensors are batch x 5 x width."""

    def __init__(self, function: Function, reads: int, second: int = OTHER) -> None:
        super().__init__()
        self.one = nn.Linear(3, WIDTH)
        self.two = nn.Linear(3, second)
        self.function = function
        self.head = nn.Linear(reads, CLASSES)

    def forward(self, x: Tensor) -> Any:
        out = self.function(torch.tanh(self.one(x)), torch.tanh(self.two(x)))
        return self.head(out.flatten(2).sum(1) if out.dim() > 2 else out)


def groups(exported: Exported) -> dict[str, int]:
    return {group.name: group.width for group in exported.graph.groups}


def example() -> Tensor:
    return torch.randn(3, 5, 3)


FREE = {"one": WIDTH, "two": OTHER}
"""Both layers may be cut, each as it likes."""


@pytest.mark.parametrize(
    ("function", "reads", "cut"),
    [
        pytest.param(lambda a, b: torch.cat([a, b], -1), 18, FREE, id="cat of channels"),
        pytest.param(lambda a, b: torch.cat([b, a, b], 2), 24, FREE, id="cat of one twice"),
        pytest.param(lambda a, b: torch.cat([a, a], -1), 24, {"one": 12}, id="cat of equals"),
        pytest.param(lambda a, b: torch.cat([a, b.mean(-1, True).expand_as(a)], 1), 12, {"one": 12}, id="cat of steps"),
        pytest.param(lambda a, b: torch.stack([a, a * 2], 1).flatten(1, 2), 12, {"one": 12}, id="stack"),
        pytest.param(lambda a, b: torch.stack([a, a], -1), 24, {"one": 12}, id="stack of channels"),
        pytest.param(lambda a, b: a.transpose(1, 2).flatten(1), 60, {"one": 12}, id="flatten channels first"),
        pytest.param(lambda a, b: a.flatten(1), 60, {"one": 12}, id="flatten channels last"),
        pytest.param(lambda a, b: a.permute(0, 2, 1).reshape(len(a), -1), 60, {"one": 12}, id="permute"),
        pytest.param(lambda a, b: a.unflatten(-1, (3, -1)).transpose(-1, -2), 12, {"one": 4}, id="unflatten"),
        pytest.param(lambda a, b: a.view(a.shape[0], -1, a.shape[2]).contiguous().clone(), 12, {"one": 12}, id="view"),
        pytest.param(
            lambda a, b: a.reshape(-1, a.shape[2]).view(-1, 5, a.shape[2]), 12, {"one": 12}, id="merge with the batch"
        ),
        pytest.param(
            lambda a, b: a.unsqueeze(1).squeeze(1).unsqueeze(-1).squeeze().reshape(len(a), 5, -1),
            12,
            {"one": 12},
            id="squeeze",
        ),
        pytest.param(lambda a, b: a.unsqueeze(1).squeeze((1,)), 12, {"one": 12}, id="squeeze of several"),
        pytest.param(lambda a, b: a[:, 1:4] + a[:, ::2] + a[:, -1:], 12, {"one": 12}, id="slices of steps"),
        pytest.param(lambda a, b: a[:, 2] - a.select(1, -1), 12, {"one": 12}, id="select"),
        pytest.param(lambda a, b: a.narrow(1, 1, 3), 12, {"one": 12}, id="narrow"),
        pytest.param(lambda a, b: torch.cat(a.split([2, 3], 1)[::-1], 1), 12, {"one": 12}, id="split by sizes"),
        pytest.param(lambda a, b: a.split(2, 1)[2], 12, {"one": 12}, id="split"),
        pytest.param(lambda a, b: a.unbind(1)[3], 12, {"one": 12}, id="unbind"),
        pytest.param(lambda a, b: a.flip(1) * torch.arange(5.0)[:, None], 12, {"one": 12}, id="flip"),
        pytest.param(lambda a, b: a[:, :1].expand(-1, 4, -1), 12, {"one": 12}, id="expand"),
        pytest.param(lambda a, b: a.mean(1, keepdim=True).expand_as(a) * a, 12, {"one": 12}, id="expand as"),
        pytest.param(lambda a, b: a.repeat(1, 2, 3), 36, {"one": 12}, id="repeat"),
        pytest.param(lambda a, b: nn.functional.pad(a, (0, 0, 2, 1), value=0.5), 12, {"one": 12}, id="pad steps"),
        pytest.param(lambda a, b: nn.functional.pad(a, (1, 2)), 15, {"one": 12}, id="pad channels"),
        pytest.param(lambda a, b: a * a.detach(), 12, {"one": 12}, id="detach"),
        pytest.param(lambda a, b: a.to(torch.float32).float().to("cpu"), 12, {"one": 12}, id="cast"),
        pytest.param(lambda a, b: a * (a > 0).float() + (a > 0).to(a.dtype), 12, {"one": 12}, id="flags as numbers"),
        pytest.param(lambda a, b: a[..., :8], 8, {}, id="slice of channels"),
        pytest.param(lambda a, b: a[..., ::2], 6, {}, id="every other channel"),
        pytest.param(lambda a, b: a[..., 3], 5, {}, id="one channel"),
        pytest.param(lambda a, b: a.flip(-1), 12, {}, id="channels in reverse"),
        pytest.param(lambda a, b: a.transpose(1, 2).reshape(len(a), 10, 6).flatten(1), 60, {}, id="channels torn"),
    ],
)
def test_arrangements_match(function: Function, reads: int, cut: dict[str, int]) -> None:
    exported = check(Arranged(function, reads), example(), classes=CLASSES)
    assert groups(exported) == {"two": OTHER} | cut


def test_parts_of_a_concatenation_can_still_be_cut() -> None:
    def taken_apart(a: Tensor, b: Tensor) -> Tensor:
        both = torch.cat([a, b], -1)
        first, second = torch.split(both, [a.shape[-1], b.shape[-1]], -1)
        return torch.cat([second * 2, first], -1) + torch.cat([both[..., a.shape[-1] :], a], -1)

    assert groups(check(Arranged(taken_apart, 18), example(), classes=CLASSES)) == FREE


def test_thirds_of_a_layer_share_their_channels() -> None:
    def thirds(a: Tensor, b: Tensor) -> Tensor:
        first, second, third = a.chunk(3, -1)
        return first * second + third * b.mean()

    assert groups(check(Arranged(thirds, 4), example(), classes=CLASSES)) == {"one": 4, "two": OTHER}


def test_channels_that_meet_the_parts_of_a_concatenation_are_those() -> None:
    def added(a: Tensor, b: Tensor) -> Tensor:
        return torch.cat([a[..., :6] * 1, b], -1) + a

    # Half of `one` is cut out of it, so that `one` is whole; it is added to `two`, which then is whole as well.
    assert groups(check(Arranged(added, 12), example(), classes=CLASSES)) == {}


def test_a_shuffle_of_channels_matches() -> None:
    def shuffled(a: Tensor, b: Tensor) -> Tensor:
        return torch.unflatten(a, -1, (3, -1)).transpose(-1, -2).flatten(-2) * b.mean()

    assert groups(check(Arranged(shuffled, 12), example(), classes=CLASSES)) == {"one": 4, "two": OTHER}


class Token(nn.Module):
    """A learned token before the sequence, learned positions, a learned scale: parameters of no torch layer."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.places = nn.Parameter(torch.randn(1, 8, WIDTH))
        self.scale = nn.Parameter(torch.randn(WIDTH))
        self.single = nn.Parameter(torch.randn(1))
        self.body = nn.Linear(3, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)
        self.fixed: Tensor
        self.register_buffer("fixed", torch.randn(6, WIDTH))

    def forward(self, x: Tensor) -> Any:
        x = self.body(x)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        x = x + self.places[:, : x.shape[1]] + self.fixed
        return self.head((torch.tanh(x) * self.scale * self.single)[:, 0])


def test_parameters_outside_of_layers_are_layers_of_their_own() -> None:
    exported = check(Token(), example(), classes=CLASSES)
    assert list(groups(exported).values()) == [WIDTH]
    layers = exported.graph.layer
    assert {"token", "places", "scale", "single"} <= set(layers)
    assert all(layers[name].kind != "unused" for name in layers if name != "fixed")
    assert exported.graph.tensor["scale"].uses == 6
    assert exported.graph.tensor["places"].uses == 0


def test_constants_of_the_model_fit_every_batch_and_width() -> None:
    def mixed(a: Tensor, b: Tensor) -> Tensor:
        flags = torch.ones(5, 5).tril().bool()
        state = torch.zeros(a.shape[0], 1, a.shape[2])
        steps = torch.arange(5, dtype=torch.float32).reshape(1, 5, 1).expand(a.shape[0], 5, 1)
        weights = torch.full((5, 5), 0.5).masked_fill(~flags, 0.0)
        begun = torch.cat([state + 2, torch.ones_like(a)], 1)
        return weights @ a * steps + begun[:, 1:] * torch.tensor(3.0) + a.new_full((1, a.shape[-1]), 0.25)

    assert groups(check(Arranged(mixed, 12), example(), classes=CLASSES)) == FREE


def test_channels_of_size_one_are_constant_and_match() -> None:
    def gated(a: Tensor, b: Tensor) -> Tensor:
        return a * torch.sigmoid(b)

    assert groups(check(Arranged(gated, 12, second=1), example(), classes=CLASSES)) == {"one": WIDTH}


def test_writing_into_a_part_of_a_tensor_is_refused() -> None:
    def written(a: Tensor, b: Tensor) -> Tensor:
        a = a.clone()
        a[:, 0].mul_(2.0)
        return a

    with pytest.raises(ExportError, match=r"aten.mul_.Tensor in .*writes into a tensor that is read again later.*cat"):
        Exported(Arranged(written, 12), example())


def test_writing_a_whole_tensor_in_place_matches() -> None:
    def written(a: Tensor, b: Tensor) -> Tensor:
        a = a * 2
        a += b.mean(-1, keepdim=True)
        a *= 3
        return a.div_(2).clamp_(-1, 1)

    check(Arranged(written, 12), example(), classes=CLASSES)


class Inner(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return torch.cumsum(x, 1)


def test_an_unknown_operation_is_named_with_its_module() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), Inner()))
    with pytest.raises(
        ExportError, match=r"aten\.cumsum\.default in module '1\.1' \(Inner\) cannot be exported.*Write"
    ):
        training_graph(model, torch.randn(3, 3))

    class Whole(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return torch.cumsum(x, 1)

    with pytest.raises(ExportError, match=r"aten\.cumsum\.default in module the model itself \(Whole\)"):
        training_graph(Whole(), torch.randn(3, 3))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: a[1:], "the batch is sliced. Treat every sample alike"),
        (lambda a, b: a.flip(0), "the batch is reversed"),
        (lambda a, b: nn.functional.pad(a, (0, 0, 1, 1), mode="reflect"), "mode 'reflect'.*Pad with zeros"),
        (lambda a, b: nn.functional.pad(a, (0, 0, -1, 0)), r"padding by \[0, 0, -1, 0\] would crop.*Slice"),
        (lambda a, b: a.double().float(), "float32 would become float64.*Keep activations in float32"),
        (lambda a, b: a[:, 3:3], "the slice from 3 to 3 is empty"),
        (lambda a, b: a.reshape(-1, 5, 1, 12)[..., 0, :].reshape(12, -1).t(), "batch"),
        (lambda a, b: a * torch.randn(12), r"aten\.randn"),
        (lambda a, b: a + torch.arange(len(a)).reshape(-1, 1, 1), r"aten\.add.*the model itself.*number of samples"),
    ],
    ids=range(9),
)
def test_refusals_say_what_to_do(function: Function, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        Exported(Arranged(function, WIDTH), example())

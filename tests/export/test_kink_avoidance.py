"""Batches off the kinks: biases move a little, kinks come to lie in gaps, and float32 then agrees with float64."""

import copy
from collections.abc import Sequence

import pytest
import torch
from torch import nn

from export.kink_avoidance import CLEAR, CLOSE, move_off_kinks, shift_biases, smooth_batch
from export.zoo.mobilenet import _pair

pytestmark = pytest.mark.usefixtures("one_thread")


def inputs_of(model: nn.Module, kinks: Sequence[nn.Module], x: torch.Tensor) -> list[torch.Tensor]:
    """What goes into some modules, channels first."""
    found: list[torch.Tensor] = []
    hooks = [kink.register_forward_pre_hook(lambda _, args: found.append(args[0].clone())) for kink in kinks]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return [values.movedim(1, 0).flatten(1) for values in found]


BIASES = {"1.bias", "3.norm1.bias", "3.norm2.bias", "4.bias", "7.bias"}
"""Those before a kink of the network below."""


def network() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), _pair(8, 12, 1)),
        *(nn.Conv2d(12, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 144, 512), nn.ReLU(), nn.Linear(512, 5)),
    ).double()


def images(samples: int = 16) -> torch.Tensor:
    return torch.randn(samples, 3, 14, 14, dtype=torch.float64)


def test_every_input_is_clear_of_its_kink_and_both_sides_are_taken() -> None:
    model, x = network(), images()
    relus = [module for module in model.modules() if isinstance(module, nn.ReLU)]
    near = [float(rows.abs().min() / rows.square().mean().sqrt()) for rows in inputs_of(model, relus, x)]
    assert min(near) < CLEAR / 10
    _, margin = move_off_kinks(model, x)
    assert margin >= CLEAR
    for rows in inputs_of(model, relus, x):
        sizes = rows.square().mean(1).sqrt()
        sizes = sizes.clamp(min=float(0.1 * sizes.square().mean().sqrt()))
        assert float((rows.abs().amin(1) / sizes).min()) >= margin * 0.999
        assert bool((rows > 0).any())
        assert bool((rows < 0).any())


def test_moves_are_small_and_can_be_taken_back() -> None:
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    shifts, _ = move_off_kinks(model, images())
    assert {"1.bias", "4.bias"} <= set(shifts) <= BIASES
    assert max(float(move.abs().median()) for move in shifts.values()) < 0.02
    shift_biases(model, shifts, back=True)
    for name, tensor in model.state_dict().items():
        assert torch.allclose(tensor, before[name], rtol=1e-12, atol=1e-15)


def test_running_statistics_are_left_alone() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).double()
    before = [buffer.clone() for buffer in model.buffers()]
    move_off_kinks(model, torch.randn(4, 1, 6, 6, dtype=torch.float64))
    assert all(torch.equal(buffer, old) for buffer, old in zip(model.buffers(), before, strict=True))


def test_a_sum_of_branches_is_settled_by_the_bias_of_one() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.relu(self.norm(self.conv(x)) + x)

    shifts, margin = move_off_kinks(Residual().double(), images(64))
    assert set(shifts) == {"norm.bias"}
    assert margin >= CLEAR


def test_both_kinks_of_relu6_are_avoided() -> None:
    layer, kink = nn.Linear(6, 16), nn.ReLU6()
    model, x = nn.Sequential(layer, kink).double(), torch.randn(512, 6, dtype=torch.float64) * 5
    _, margin = move_off_kinks(model, x)
    assert margin >= CLEAR
    (rows,) = inputs_of(model, [kink], x)
    sizes = rows.square().mean(1).sqrt()
    assert bool((rows > 6).any())
    assert float(((rows - 6).abs().amin(1) / sizes).min()) >= CLEAR * 0.999


def test_a_silent_channel_leaves_the_kink_it_sits_on() -> None:
    layer = nn.Linear(4, 3)
    model = nn.Sequential(layer, nn.ReLU()).double()
    with torch.no_grad():
        layer.weight[1] = 0
        layer.bias[1] = 0
    shifts, margin = move_off_kinks(model, torch.randn(8, 4, dtype=torch.float64))
    assert float(shifts["0.bias"][1].abs()) > 0
    assert margin >= CLEAR


def test_a_kink_without_a_bias_is_measured() -> None:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.ReLU()).double()
    x = torch.randn(5, 3, dtype=torch.float64)
    x[2] = 0
    shifts, margin = move_off_kinks(model, x)
    assert shifts == {}
    assert margin == 0


def test_a_batch_whose_pool_is_too_close_is_drawn_again() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)).double()
    good = torch.randn(2, 1, 4, 4)
    bad = good.clone()
    bad[0, 0, 0, :2] = torch.tensor([5.0, 5.0 + 1e-6])
    drawn = iter([bad, good])
    assert move_off_kinks(model, bad.double())[1] < CLOSE
    smooth = smooth_batch(model, lambda: next(drawn))
    assert smooth.x is good
    assert smooth.margin >= CLOSE


def test_single_precision_agrees_once_a_batch_is_settled() -> None:
    """One input is put on a kink, as near as single precision can tell: the gradients differ, and then they do not."""
    layer = nn.Linear(4, 6)
    model = nn.Sequential(layer, nn.ReLU(), nn.Linear(6, 3)).double()
    x = torch.randn(3, 4, dtype=torch.float32).double()
    with torch.no_grad():
        layer.bias[2] -= layer(x)[1, 2] - 1e-12
    assert disagreement(model, x) > 1e-2
    move_off_kinks(model, x)
    assert disagreement(model, x) < 1e-5


def disagreement(model: nn.Module, x: torch.Tensor) -> float:
    gradients = []
    for made, given in ((model, x), (copy.deepcopy(model).float(), x.float())):
        made.zero_grad()
        nn.functional.cross_entropy(made(given), torch.tensor([0, 1, 2])).backward()  # type: ignore[no-untyped-call]
        gradients.append([parameter.grad for parameter in made.parameters() if parameter.grad is not None])
    return max(float((a - b).abs().max() / a.abs().max()) for a, b in zip(*gradients, strict=True))

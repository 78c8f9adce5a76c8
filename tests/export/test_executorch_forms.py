"""The forms of the lowering table compute what torch computes: traced steps, run by torch itself, against autograd."""

import pytest
import torch
from torch import Tensor, nn

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.errors import ExportError
from edgefl.values import SAMPLE_WEIGHTS
from export.executorch.quiet_output import quiet
from export.executorch.step import TracedStep, trace_step
from export.losses import LABEL_MASK, Loss

COLOUR = (4, 3, 11, 11)


def layers(*modules: nn.Module) -> nn.Module:
    """A network with the given layers between a convolution that needs their input gradient and a linear head."""
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *modules, nn.Flatten(), nn.LazyLinear(5))


def ready(model: nn.Module, x: Tensor) -> nn.Module:
    """Weights from a seed, all of them away from zero and one."""
    torch.manual_seed(0)
    with quiet():
        model(x)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.train()


def traced(model: nn.Module, x: Tensor, trained: set[str] | None = None, loss: Loss = Loss.CROSS_ENTROPY) -> TracedStep:
    names = [*dict(model.named_parameters()), *dict(model.named_buffers())]
    with quiet():
        return trace_step(model, x, names, set(names) if trained is None else trained, loss)


def run(step: TracedStep, model: nn.Module, **given: Tensor) -> dict[str, Tensor]:
    alike = {SAMPLE_WEIGHTS: torch.full((len(given["x"]),), 1 / len(given["x"]))}
    tensors = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()} | alike | given
    return dict(zip(step.outputs, step.graph(*(tensors[name] for name in step.inputs)), strict=True))


def assert_equal(found: Tensor, expected: Tensor, name: str, tolerance: float = 1e-4) -> None:
    assert found.shape == expected.shape, name
    scale = max(float(expected.abs().max()), 1e-2)  # a bias before a norm has no gradient but rounding
    assert float((found.double() - expected.double()).abs().max()) <= tolerance * scale, name


CASES = {
    "convolutions": lambda: layers(nn.Conv2d(8, 6, 3), nn.Conv2d(6, 7, 3, padding=1, bias=False), nn.Conv2d(7, 6, 1)),
    "strides": lambda: layers(nn.Conv2d(8, 6, 3, stride=2, padding=1), nn.Conv2d(6, 4, 1, stride=3)),
    "unequal sides": lambda: layers(nn.Conv2d(8, 6, (5, 2), stride=(3, 2), padding=(2, 0), dilation=(1, 3))),
    "dilation and stride share a factor": lambda: layers(nn.Conv2d(8, 6, 3, stride=2, dilation=2, padding=3)),
    "groups": lambda: layers(nn.Conv2d(8, 12, 3, stride=2, groups=4), nn.Conv2d(12, 6, 2, groups=2)),
    "depthwise": lambda: layers(
        nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=8)
    ),
    "transposed convolutions": lambda: layers(
        nn.ConvTranspose2d(8, 6, 3),
        nn.ConvTranspose2d(6, 4, (3, 4), stride=(2, 3), padding=1, output_padding=(1, 2), groups=2, dilation=(2, 1)),
    ),
    "max pools": lambda: layers(nn.ReLU(), nn.MaxPool2d(2), nn.MaxPool2d((2, 3), ceil_mode=True)),
    "overlapping max pools": lambda: layers(
        nn.MaxPool2d(3, stride=2, padding=1), nn.MaxPool2d(2, stride=1, dilation=3)
    ),
    "average pools": lambda: layers(
        nn.AvgPool2d(2, ceil_mode=True), nn.AvgPool2d(2), nn.AvgPool2d(2, divisor_override=3)
    ),
    "overlapping average pools": lambda: layers(
        nn.AvgPool2d(3, stride=2, padding=1), nn.AvgPool2d(3, 2, 1, count_include_pad=False)
    ),
    "adaptive average pools": lambda: layers(
        nn.Conv2d(8, 8, 2), nn.AdaptiveAvgPool2d((5, 2)), nn.Tanh(), nn.AdaptiveAvgPool2d(1)
    ),
    "batch norm": lambda: layers(nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 121, 7), nn.BatchNorm1d(7)),
    "batch norm without statistics": lambda: layers(nn.BatchNorm2d(8, track_running_stats=False)),
    "batch norm without weights": lambda: layers(nn.BatchNorm2d(8, affine=False)),
    "group norm": lambda: layers(nn.GroupNorm(4, 8), nn.GroupNorm(2, 8, affine=False)),
    "instance norm": lambda: layers(nn.InstanceNorm2d(8, affine=True)),
    "layer norm": lambda: layers(nn.LayerNorm((8, 11, 11))),
    "activations": lambda: layers(nn.ReLU6(), nn.LeakyReLU(0.2), nn.GELU(), nn.SiLU(), nn.Hardswish(), nn.Tanh()),
}


@pytest.mark.parametrize("case", CASES)
def test_a_form_has_torchs_loss_gradients_and_statistics(case: str) -> None:
    x, y = torch.randn(COLOUR, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 4, 2, 2])
    model = ready(CASES[case](), x)
    found = run(traced(model, x), model, x=x, y=y)

    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)
    loss.backward()  # type: ignore[no-untyped-call]
    assert_equal(found["loss"], loss.detach(), "loss")
    assert torch.equal(found["correct"], logits.argmax(1) == y)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert_equal(found[GRADIENT + name], parameter.grad, name)
    for name, buffer in model.named_buffers():
        assert_equal(found[NEW_STATISTIC + name], buffer, name)


def test_convolutions_of_sequences_are_those_of_flat_images() -> None:
    x, y = torch.randn(3, 4, 19), torch.tensor([0, 1, 2])
    body = nn.Sequential(nn.Conv1d(4, 6, 5, stride=2, padding=1), nn.ConvTranspose1d(6, 4, 3, stride=2, groups=2))
    model = ready(nn.Sequential(body, nn.Flatten(), nn.LazyLinear(5)), x)
    found = run(traced(model, x), model, x=x, y=y)
    nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert_equal(found[GRADIENT + name], parameter.grad, name)


def test_a_tie_in_a_max_pool_goes_to_the_first_as_in_torch() -> None:
    x, y = torch.ones(2, 3, 4, 4), torch.tensor([0, 1])
    model = ready(nn.Sequential(nn.Conv2d(3, 2, 1), nn.MaxPool2d(3, 1), nn.Conv2d(2, 2, 2), nn.Flatten()), x)
    found = run(traced(model, x), model, x=x, y=y)
    nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert_equal(found[GRADIENT + name], parameter.grad, name)


def test_frozen_tensors_have_neither_gradient_nor_statistics_and_cost_no_backward_pass() -> None:
    x = torch.randn(COLOUR)
    model = ready(layers(nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 6, 3)), x)
    whole, head = traced(model, x), traced(model, x, {"5.weight", "5.bias"})
    assert [name for name in head.outputs if name.startswith(GRADIENT)] == ["grad:5.weight", "grad:5.bias"]
    assert not any(name.startswith(NEW_STATISTIC) for name in head.outputs)
    assert len(head.graph.graph.nodes) < 0.7 * len(whole.graph.graph.nodes)


def test_mean_squared_error_has_no_correctness() -> None:
    x, y = torch.randn(COLOUR), torch.randn(4, 5)
    model = ready(layers(nn.Tanh()), x)
    step = traced(model, x, loss=Loss.MEAN_SQUARED_ERROR)
    assert step.outputs[:2] == ("loss", "grad:0.weight")
    assert_equal(run(step, model, x=x, y=y)["loss"], nn.functional.mse_loss(model(x), y).detach(), "loss")


def test_masked_cross_entropy_hides_labels() -> None:
    x, y, mask = torch.randn(COLOUR), torch.tensor([0, 1, 0, 1]), torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0])
    model = ready(layers(), x)
    found = run(traced(model, x, loss=Loss.MASKED_CROSS_ENTROPY), model, x=x, y=y, **{LABEL_MASK: mask})
    assert_equal(found["loss"], nn.functional.cross_entropy(model(x) * mask, y).detach(), "loss")
    assert not found["grad:2.bias"][2:4].any()


@pytest.mark.parametrize(
    ("model", "x", "words"),
    [
        (nn.Sequential(nn.Conv3d(1, 2, 2), nn.Flatten()), torch.randn(2, 1, 3, 3, 3), "in 3 dimensions"),
        (layers(nn.AdaptiveAvgPool2d(4)), torch.randn(COLOUR), "from 11 x 11 to 4 x 4"),
        (nn.Conv2d(3, 2, 3), torch.randn(COLOUR), "cross-entropy needs logits"),
        (nn.LSTM(3, 2), torch.randn(2, 4, 3), "returns a tuple"),
    ],
)
def test_what_cannot_be_lowered_is_refused_by_name(model: nn.Module, x: Tensor, words: str) -> None:
    with pytest.raises(ExportError, match=words):
        traced(ready(model, x), x)

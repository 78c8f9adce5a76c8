"""The training graph as a whole: losses, determinism, the cut."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from torch import nn

from edgefl.artifacts.cut import GRADIENT, cut
from edgefl.errors import ExportError, MaskError
from export.describe_graph import describe
from export.losses import Loss
from export.training_graph import training_graph
from export.zoo import build
from tests.export.parity import assert_close


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4))


def run(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    wanted = {node.name for node in session.get_inputs()}
    found = session.run(names, {name: array for name, array in feed.items() if name in wanted})
    return dict(zip(names, found, strict=True))


def weights(model: nn.Module) -> dict[str, np.ndarray]:
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


def torch_gradients(model: nn.Module, loss: torch.Tensor) -> dict[str, np.ndarray]:
    model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    grads = {GRADIENT + n: p.grad.numpy() for n, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach().numpy(), **grads}


def test_a_label_mask_silences_the_labels_that_a_device_lacks() -> None:
    model = small()
    graph, _ = training_graph(model, torch.randn(13, 5), Loss.MASKED_CROSS_ENTROPY)
    x, y = torch.randn(7, 5), torch.tensor([0, 2, 0, 2, 2, 0, 0])
    mask = torch.tensor([1.0, 0.0, 1.0, 0.0])
    expected = nn.functional.cross_entropy(model(x).masked_fill(mask == 0, 0), y)
    feed = {"x": x.numpy(), "y": y.numpy(), "label_mask": mask.numpy(), **weights(model)}
    assert_close(run(graph, feed), torch_gradients(model, expected))


def test_the_mean_squared_error_matches() -> None:
    model = small()
    graph, _ = training_graph(model, torch.randn(13, 5), Loss.MEAN_SQUARED_ERROR)
    x, y = torch.randn(7, 5), torch.randn(7, 4)
    ours = run(graph, {"x": x.numpy(), "y": y.numpy(), **weights(model)})
    assert_close(ours, torch_gradients(model, nn.functional.mse_loss(model(x), y)))
    assert "correct" not in ours


def test_cross_entropy_of_anything_but_logits_is_refused() -> None:
    with pytest.raises(ExportError, match=r"logits of shape \(batch, classes\)"):
        training_graph(nn.Conv2d(3, 4, 1), torch.randn(13, 3, 4, 4))


def test_a_tensor_cannot_have_the_name_of_another_input() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.y = nn.Parameter(torch.ones(5, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.y

    with pytest.raises(ExportError, match="a tensor named 'y', which is the name of another input"):
        training_graph(Named(), torch.randn(13, 5))


def test_two_exports_are_identical_bytes() -> None:
    first, second = (training_graph(build("cnn4"), torch.randn(13, 1, 28, 28))[0] for _ in range(2))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)


def test_the_graph_holds_no_weights() -> None:
    graph, _ = training_graph(build("mlp"), torch.randn(13, 561))
    assert len(graph.SerializeToString()) < 20_000


def test_a_cut_graph_keeps_wanted_gradients_and_drops_the_work_of_others() -> None:
    model = small()
    graph, walked = training_graph(model, torch.randn(13, 5))
    x, y = torch.randn(7, 5), torch.randint(0, 4, (7,))
    feed = {"x": x.numpy(), "y": y.numpy(), **weights(model)}
    whole = run(graph, feed)
    part = cut(graph, ["4.weight", "4.bias"])
    onnx.checker.check_model(part)
    found = run(part, feed)
    assert sorted(found) == ["correct", "grad:4.bias", "grad:4.weight", "loss"]
    assert all(np.array_equal(found[name], whole[name]) for name in found)
    assert sum(node.op_type == "Gemm" for node in part.graph.node) == 3 + 1
    assert sum(node.op_type == "Gemm" for node in graph.graph.node) == 3 + 3 + 2
    assert describe(walked, "small").trainable_layers == ("0", "2", "4")


def test_a_cut_for_nothing_keeps_the_loss_alone() -> None:
    graph, _ = training_graph(small(), torch.randn(13, 5))
    part = cut(graph, [])
    assert [output.name for output in part.graph.output] == ["loss", "correct"]
    with pytest.raises(MaskError, match=r"no gradient of tensor '9.weight'"):
        cut(graph, ["9.weight"])

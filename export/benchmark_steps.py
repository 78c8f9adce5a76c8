"""What `edgefl bench` needs torch for: PyTorch's own training step, and programs compiled for ExecuTorch.

The step runs in a process of its own (`edgefl.bench.engine_worker`), which makes the samples, so that all engines get
the same. The benchmark itself compiles the programs before it measures.
"""

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import torch
from torch import nn

from edgefl.artifacts.bundle import Bundle
from edgefl.masks import Array, Mask, Weights
from edgefl.values import Program
from export.executorch import inference_program
from export.executorch.program import compile_program
from export.losses import Loss
from export.model_source import ModelSource, open_source
from export.personal_files import training_spec

__all__ = ["compiled_prediction", "compiled_step", "eager_step"]


def compiled_prediction(source: ModelSource, mask: Mask, weights: Weights, calibration: Array | None = None) -> bytes:
    """Return a program that predicts one sample, in 8-bit integers if calibration samples are given."""
    samples = None if calibration is None else torch.from_numpy(calibration.copy())
    return inference_program(source.model, source.example, mask, weights, calibration=samples).pte


def compiled_step(source: ModelSource, bundle: Bundle, mask: Mask, batch: int) -> tuple[Program, bytes]:
    """Return a program that trains a mask's submodel on batches of this size, and its description."""
    spec = training_spec(bundle, mask, batch)
    return compile_program(source.model, source.example, bundle.graph, spec, loss=Loss(bundle.manifest.loss))


def eager_step(
    target: str,
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    *,
    threads: int,
    classes: int | None = None,
    sample: str | None = None,
    weights: str | None = None,
) -> tuple[Callable[[], object], float, str]:
    """Return a step (loss and all gradients, no optimiser), its first loss, and the name of PyTorch."""
    torch.set_num_threads(threads)
    model = open_source(target, classes=classes, sample=sample, weights=weights).model.train()
    features, labels = torch.from_numpy(x), torch.from_numpy(y)

    def step() -> torch.Tensor:
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(features), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    return step, float(step()), f"PyTorch {torch.__version__}, eager"

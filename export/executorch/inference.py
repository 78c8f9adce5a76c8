"""The inference program of one mask: its channels really removed, batch norm folded, delegated to XNNPACK.

It takes x, one sample by default, and returns what the model returns.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from edgefl.errors import EdgeFLError, ExportError
from edgefl.masks import Mask, Weights
from edgefl.values import Digest
from export.executorch.folding import fold_batch_norms
from export.executorch.quiet_output import first_line, quiet
from export.executorch.source_modules import module_using
from export.executorch.toolchain import compile_delegated, quantised
from export.executorch.traced_submodel import traced_submodel

__all__ = ["InferenceProgram", "inference_program"]


@dataclass(frozen=True, slots=True)
class InferenceProgram:
    """An ExecuTorch program that predicts. Its method `forward` takes x and returns the prediction."""

    pte: bytes
    batch: int
    """The number of samples that x must have."""
    mask: Digest
    """The mask that it was compiled for."""
    int8: bool
    """Whether its layers use 8-bit integers."""


def inference_program(
    model: nn.Module,
    example: Tensor,
    mask: Mask,
    weights: Weights,
    *,
    batch: int = 1,
    calibration: Tensor | None = None,
) -> InferenceProgram:
    """Compile a mask's submodel for inference, with the kept channels of the whole model's weights inside.

    The example gives the shape of a sample. With a calibration batch the program is quantised to 8-bit integers: it
    should be a few dozen real samples, from which the ranges of activations are taken.
    """
    if batch < 1:
        raise ExportError(f"the batch size is {batch}", fix="Give a number of at least 1.")
    sample = example[:1].expand(batch, *example.shape[1:]).contiguous()
    with quiet(), torch.no_grad():
        small = traced_submodel(model, sample, mask, weights, training=False)
        small.requires_grad_(False)
        try:
            fold_batch_norms(small)
            ready: nn.Module = small if calibration is None else quantised(small, calibration, sample)
        except EdgeFLError:
            raise
        except Exception as error:
            raise ExportError(
                f"torch.export cannot trace {type(model).__name__}: {first_line(error)}",
                fix="Remove control flow that depends on data from its forward method.",
            ) from error
        pte = compile_delegated(ready, (sample,), lambda operation: module_using(small, sample, operation))
    return InferenceProgram(pte, batch, mask.digest, calibration is not None)

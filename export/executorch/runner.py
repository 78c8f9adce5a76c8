"""Runs ExecuTorch programs in this process, for parity checks, tests and benchmarks. Devices have their own engine."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from edgefl.errors import ExportError
from edgefl.values import SAMPLE_WEIGHTS
from export.executorch.quiet_output import quiet
from export.executorch.training import TrainingProgram

__all__ = ["Runner", "run_step"]

Arrays = Mapping[str, npt.NDArray[Any]]


class Runner:
    """A loaded program. Calling it runs its method `forward`."""

    def __init__(self, pte: bytes) -> None:
        self._pte = pte  # the runtime points into these bytes: without them the process crashes
        with quiet():
            from executorch.extension.pybindings import portable_lib

            self._module = portable_lib._load_for_executorch_from_buffer(pte)

    def __call__(self, *inputs: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Run the program on arrays, and return arrays that the caller owns."""
        tensors = [torch.from_numpy(np.require(array, requirements=["C", "W"])) for array in inputs]
        return [np.array(tensor.numpy()) for tensor in self.run(tensors)]

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run the program on tensors. Its outputs are overwritten by the next run."""
        try:
            with quiet():
                found: list[torch.Tensor] = self._module.run_method("forward", tuple(tensors), clone_outputs=False)
        except RuntimeError as error:
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
            raise ExportError(
                f"the program failed on inputs of shape {shapes}: {error}",
                fix="Use the program's own batch size, and the weights of its mask.",
            ) from error
        return found


def run_step(program: TrainingProgram, runner: Runner, given: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Run one step with inputs by name, and return its outputs by name. Without weights all samples count alike."""
    alike = np.full(program.batch, 1 / program.batch, np.float32)
    found = runner(*({SAMPLE_WEIGHTS: alike, **given}[name] for name in program.inputs))
    return dict(zip(program.outputs, found, strict=True))

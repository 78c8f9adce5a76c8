"""An ExecuTorch program in memory: what its file says of its inputs and outputs, and running it.

A file comes from elsewhere. The runtime checks its structure, and `check_inputs` and `check_outputs` what its
description says of it. A file that makes the runtime crash all the same ends the process that trains, not the agent.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from edgefl.errors import ExportError
from edgefl.masks import Array

__all__ = ["LoadedProgram", "TensorForm", "import_runtime", "quiet", "unlike"]

_DTYPES = {0: "uint8", 3: "int32", 4: "int64", 6: "float32", 7: "float64", 11: "bool"}
"""ExecuTorch's numbers of dtypes."""

TensorForm = tuple[tuple[int, ...], str]
"""Shape and dtype of a tensor."""


class LoadedProgram:
    """A loaded program file."""

    def __init__(self, pte: bytes) -> None:
        self._pte = pte  # the runtime points into these bytes: without them the process crashes
        runtime = import_runtime()
        with quiet():
            try:
                # The file comes from elsewhere: let the runtime check its structure before it follows offsets in it.
                self._module: Any = runtime._load_for_executorch_from_buffer(
                    pte, program_verification=runtime.Verification.InternalConsistency
                )
                about = self._module.method_meta("forward")
                self.inputs = [_tensor(about.input_tensor_meta(at)) for at in range(about.num_inputs())]
                self.outputs = [_tensor(about.output_tensor_meta(at)) for at in range(about.num_outputs())]
            except (RuntimeError, IndexError, KeyError, ValueError) as error:
                problem = str(error).partition("\n")[0]
                raise ExportError(f"ExecuTorch cannot load the program: {problem}", fix="Download it again.") from None

    def check_inputs(self, names: tuple[str, ...], expected: Mapping[str, TensorForm]) -> None:
        """Raise unless the file has inputs of these names, shapes and dtypes, in this order."""
        _check("input", names, self.inputs, expected)

    def check_outputs(self, names: tuple[str, ...], expected: Mapping[str, TensorForm]) -> None:
        """Raise unless the file has outputs of these names, shapes and dtypes, in this order."""
        _check("output", names, self.outputs, expected)

    def run(self, inputs: list[Array]) -> list[Array]:
        """Run the program. Its outputs are overwritten by the next run."""
        import torch  # noqa: TID251

        tensors = tuple(torch.from_numpy(np.require(array, requirements=["C", "W"])) for array in inputs)
        try:
            found = self._module.run_method("forward", tensors, clone_outputs=False)
        except RuntimeError as error:
            raise ExportError(
                f"ExecuTorch cannot run the program: {str(error).partition(chr(10))[0]}",
                fix="Check that the samples have the model's shape, and their labels its classes.",
            ) from None
        return [tensor.numpy() for tensor in found]


def _tensor(about: Any) -> TensorForm:
    return tuple(about.sizes()), _DTYPES[about.dtype()]


def _check(kind: str, names: tuple[str, ...], found: list[TensorForm], expected: Mapping[str, TensorForm]) -> None:
    if len(names) != len(found):
        raise unlike(f"it has {len(found)} {kind}s, and not {len(names)}")
    for name, like in zip(names, found, strict=True):
        if name in expected and like != expected[name]:
            raise unlike(f"its {kind} {name!r} is {like[1]} {like[0]}, and not {expected[name][1]} {expected[name][0]}")


def unlike(problem: str) -> ExportError:
    """Return the error about a file that does not match its description."""
    return ExportError(f"the program is not what its description says: {problem}", fix="Compile it again.")


def import_runtime() -> Any:
    """Import the runtime's binding: the extension itself, since its Python module imports the whole compiler."""
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its packages use deprecated features of Python, torch and each other
        import torch  # noqa: F401, TID251  the extension finds its libraries there
        from executorch.extension.pybindings import _portable_lib  # noqa: TID251

        return _portable_lib


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discard what the runtime's libraries print while they load."""
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
